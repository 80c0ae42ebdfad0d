"""scikit-learn's own checks on every baseline."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from coxfield.baselines import HarmonicFunctions, ParzenClassifier, SVMClassifier, VariationalGPClassifier

FEW = (0.3, 1.0, 3.0)  # length scales: the checks fit hundreds of times
ESTIMATORS = [
    HarmonicFunctions(length_scales=FEW),
    HarmonicFunctions(1.0, class_mass_normalisation=True, missing_label=None),
    ParzenClassifier(),
    SVMClassifier(length_scales=FEW),
    VariationalGPClassifier(n_restarts=0),
]


def expected_failures(estimator):
    """Name of the check -> reason."""
    if isinstance(estimator, HarmonicFunctions) and estimator.missing_label == -1:
        reason = "it uses -1 as a class, but -1 means an unknown label; with missing_label=None the check passes"
        return {"check_classifiers_classes": reason}
    return {}


# Some checks warn that they are skipped. Their assertions still count.
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)

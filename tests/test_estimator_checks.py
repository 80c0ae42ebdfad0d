"""scikit-learn's own checks on every estimator of the package."""

import pytest
from sklearn.gaussian_process.kernels import Matern
from sklearn.utils.estimator_checks import parametrize_with_checks

from coxfield import LGCPClassifier

ESTIMATORS = [
    LGCPClassifier(),
    LGCPClassifier(selection="loo_log_loss"),
    LGCPClassifier(Matern(2.0), selection=None),
]


def expected_failures(estimator):
    """Name of the check -> reason. There are none."""
    return {}


# Some checks warn that they are skipped; what they assert still counts.
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)

"""scikit-learn's own checks on every estimator of the package."""

import pytest
from sklearn.gaussian_process.kernels import Matern
from sklearn.utils.estimator_checks import parametrize_with_checks

from coxfield import LGCPClassifier, PermanentalClassifier, SLGCPClassifier

ESTIMATORS = [
    LGCPClassifier(),
    LGCPClassifier(bank="simple"),
    LGCPClassifier(selection="loo_error"),
    LGCPClassifier(selection="loo_log_loss"),
    LGCPClassifier(selection="pseudo_likelihood"),
    LGCPClassifier(Matern(2.0), selection=None),
    SLGCPClassifier(),
    SLGCPClassifier(missing_label=None),
    SLGCPClassifier(Matern(2.0), selection=None, missing_label=None),
    SLGCPClassifier(inference="marginals", random_state=0, missing_label=None),
    SLGCPClassifier(Matern(2.0), inference="perturb_and_map", selection=None, random_state=0, missing_label=None),
    PermanentalClassifier(),
    PermanentalClassifier(Matern(2.0), selection=None),
]
WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")


def expected_failures(estimator):
    """Name of the check -> reason."""
    if isinstance(estimator, SLGCPClassifier):
        reason = "it uses -1 as a class, but -1 means an unknown label; with missing_label=None the check passes"
        unknown = {"check_classifiers_classes": reason} if estimator.missing_label == -1 else {}
        reason = "a row without weight still shapes the graphs, and a row that is there twice shapes them more"
        unknown |= dict.fromkeys(WEIGHTS, reason)
        reason = "a label field counts each label once, and says so"
        field = estimator.kernel is not None or estimator.inference != "auto"
        return unknown | ({"check_sample_weights_not_overwritten": reason} if field else {})
    if estimator.selection is None:
        return {}
    reason = (
        "leave-one-out removes a point with all its weight, but only one of several equal rows, which its copies then "
        "predict; so another length scale is chosen; with selection=None these checks pass"
    )
    found = dict.fromkeys(WEIGHTS, reason)
    if estimator.selection == "loo_log_loss":
        found["check_class_weight_classifiers"] = (
            "weights shift the odds by exactly 1e7, and one kernel that has found larger odds near its points keeps "
            "its class there; a weighted fit would give it up"
        )
    return found


# Some checks warn that they are skipped. Their assertions still count.
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # or scikit-learn leaves out its checks of array libraries
    check(estimator)

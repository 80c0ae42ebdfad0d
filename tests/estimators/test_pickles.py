"""A classifier that was pickled or copied gives the same predictions, and a pickle holds the points once."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, Matern

from covariance_doubles import RowCovariance, SumCovariance
from coxfield import LGCPClassifier, PermanentalClassifier, SLGCPClassifier
from coxfield.kernels.radial import recognise
from coxfield.kernels.transforms import Member

RNG = np.random.default_rng(0)
Y = np.array(["a", "b", "c"])[np.arange(30) % 3]
X = RNG.normal(size=(30, 2)) + 2 * np.eye(3, 2)[np.arange(30) % 3]
NEW = RNG.normal(size=(8, 2))
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 2.0], size=30)
SOME = np.where(np.arange(30) < 9, Y, "")
PER_CLASS = {"a": RBF(0.8), "b": 2.0 * Matern(1.0), "c": RBF(0.8)}
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "class_scores")
LEAVE_ONE_OUT = ("loo_class_scores", "loo_predict_proba", "loo_predict")
# Few draws make rough distributions, which are as good a test as any.
pytestmark = pytest.mark.filterwarnings(
    "ignore::coxfield.estimators.trivial.TrivialLabellingWarning",
    "ignore::coxfield.estimators.trivial.ChainsDisagreeWarning",
)


def restored(clf):
    return pickle.loads(pickle.dumps(clf))


def assert_same_predictions(clf, again, new=NEW):
    for method in METHODS:
        np.testing.assert_array_equal(getattr(again, method)(new), getattr(clf, method)(new))


SUPERVISED = {
    "mixture": {},
    "mixture of own members": {"kernel": [Member(transform=PCA(1)), Member(Matern(0.7)), Member(RBF(0.5) + RBF(2.0))]},
    "mixture along a path": {"kernel": Matern(1.0), "length_scales": [1.0, 0.5]},
    "selected": {"selection": "loo_error"},
    "as it is": {"kernel": Matern(0.7), "selection": None},
    "per class": {"kernel": PER_CLASS, "selection": None, "mean": {"b": 0.3}},
    "per class, learned": {"kernel": PER_CLASS, "selection": "pseudo_likelihood"},
    "called": {"kernel": RBF(0.5) + RBF(2.0), "selection": None},
    "a sum": {
        "kernel": SumCovariance((recognise(RBF(0.5), 2), recognise(RBF(2.0), 2)), (1.0, 0.4)),
        "selection": None,
    },
}


@pytest.mark.parametrize("params", SUPERVISED.values(), ids=SUPERVISED)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["hard labels", "weights"])
@pytest.mark.parametrize("repeat", [restored, copy.deepcopy], ids=["pickle", "copy"])
def test_the_supervised_classifier(params, weights, repeat):
    clf = LGCPClassifier(**params).fit(X, Y, sample_weight=weights)
    again = repeat(clf)
    assert_same_predictions(clf, again)
    for method in LEAVE_ONE_OUT:
        np.testing.assert_array_equal(getattr(again, method)(), getattr(clf, method)())
    np.testing.assert_equal(getattr(again, "mixture_", None), getattr(clf, "mixture_", None))


@pytest.mark.parametrize("repeat", [restored, copy.deepcopy], ids=["pickle", "copy"])
def test_a_mixture_by_itself(repeat):
    mixture = LGCPClassifier().fit(X, Y).kernel_
    values = mixture(NEW)
    np.testing.assert_array_equal(repeat(mixture)(NEW), values)
    assert repeat(mixture).ladders[0].name == mixture.ladders[0].name


@pytest.mark.parametrize("form", [np.float32, sparse.csr_array], ids=["float32", "sparse"])
@pytest.mark.parametrize("selection", ["mixture", None])
def test_the_kind_of_numbers_stays(form, selection):
    clf = LGCPClassifier(RBF(0.7), selection=selection).fit(form(X), Y)
    again = restored(clf)
    assert_same_predictions(clf, again)
    assert again.predict_proba(NEW).dtype == clf.predict_proba(NEW).dtype


@pytest.mark.parametrize("inference", ["map", "marginals"])
@pytest.mark.parametrize("kernel", [RBF(0.8), PER_CLASS], ids=["shared", "per class"])
def test_the_semi_supervised_classifier(inference, kernel):
    how = {"selection": None, "missing_label": "", "inference": inference, "n_draws": 100, "random_state": 0}
    clf = SLGCPClassifier(kernel, **how).fit(X, SOME)
    soft = (np.count_nonzero(clf.label_distributions_, axis=1) > 1).any()
    assert soft == (inference == "marginals")
    again = restored(clf)
    assert_same_predictions(clf, again)
    assert_same_predictions(clf, again.classifier_)
    np.testing.assert_array_equal(again.label_distributions_, clf.label_distributions_)
    for method in LEAVE_ONE_OUT:
        np.testing.assert_array_equal(getattr(again.classifier_, method)(), getattr(clf.classifier_, method)())


def test_points_addressed_by_row_number():
    rows = np.arange(30.0)[:, None]
    clf = LGCPClassifier(RowCovariance(RBF(0.8)(X)), selection=None).fit(rows[:20], Y[:20])
    assert_same_predictions(clf, restored(clf), rows[20:])


def test_the_permanental_classifier():
    clf = PermanentalClassifier(RBF(0.8), selection=None).fit(X, Y)
    assert_same_predictions(clf, restored(clf))


def test_a_mixture_shares_the_points_with_its_classifier():
    many = RNG.normal(size=(2000, 40))
    clf = LGCPClassifier(length_scales=[8.0, 6.0, 4.0]).fit(many, many[:, 0] > 0)
    clf.predict_proba(1e6 * many[:1])  # far from all points, where more is held to compute with care
    assert len(pickle.dumps(clf)) < 1.5 * many.nbytes
    for again in (restored(clf), copy.deepcopy(clf)):
        assert again.kernel_.X is again.X_fit_


def test_files_hold_the_points_once():
    many = RNG.normal(size=(2000, 20))
    clf = LGCPClassifier(RBF(3.0), selection=None).fit(many, np.arange(2000) % 2)
    assert len(pickle.dumps(clf)) < 1.5 * many.nbytes
    soft = SLGCPClassifier(RBF(3.0), selection=None, inference="marginals", n_draws=16, random_state=0)
    soft.fit(many[:300], np.where(np.arange(300) < 10, np.arange(300) % 2, -1))
    assert len(pickle.dumps(soft)) < 1.5 * many[:300].nbytes


def test_a_second_round_changes_nothing():
    clf = restored(restored(LGCPClassifier().fit(X, Y, sample_weight=WEIGHTS)))
    assert_same_predictions(LGCPClassifier().fit(X, Y, sample_weight=WEIGHTS), clf)


@pytest.mark.parametrize("estimator", [LGCPClassifier, SLGCPClassifier, PermanentalClassifier])
def test_what_was_not_fitted_stays_so(estimator):
    with pytest.raises(NotFittedError):
        restored(estimator()).predict(NEW)
    assert restored(estimator().set_params(selection=None)).selection is None

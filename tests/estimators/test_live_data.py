"""Training rows that come and go. Random sequences are in `test_live_sequences`, traces in `test_traces`."""

import copy
import io
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.engine.training import ALIKE
from coxfield.io import model_file
from tolerances import assert_close

RNG = np.random.default_rng(0)
N, D = 60, 3
X = RNG.normal(size=(N, D))
Y = np.array(["a", "b", "c"])[np.arange(N) % 3]
NEW = RNG.normal(size=(7, D))
WEIGHTS = RNG.uniform(0.5, 2.0, size=N)
OWN = {"a": RBF(1.0), "b": 0.5 * Matern(1.5), "c": RBF(1.0)}
MODELS = {
    "kernel": {"kernel": RBF(0.8), "selection": None},
    "kernels": {"kernel": OWN, "selection": None},
    "called": {"kernel": RBF(0.8) + DotProduct(0.5), "selection": None},
    "paper": {"selection": "loo_error"},
    "mixture": {},
    "part": {"selection_part": 0.7, "random_state": 0},
}
pytestmark = pytest.mark.filterwarnings("ignore:X is sparse, so the mixture has no members on whitened features")
TERMS = 50 * N  # roundings of distances, exponentials and sums


def fresh(clf, points, y, weights=None):
    """A single fit with the covariance and the means of another classifier."""
    means = dict(zip(clf.classes_.tolist(), clf.mean_.tolist(), strict=True))
    return LGCPClassifier(clf.kernel_, mean=means, selection=None).fit(points, y, weights)


def assert_same_model(clf, rows, points=X, weights=None):
    """The classifier is that of a single fit on some rows, and leave-one-out knows which row is which."""
    kept = None if weights is None else weights[rows]
    single = fresh(clf, points[rows], Y[rows], kept)
    assert clf.classes_.tolist() == single.classes_.tolist()
    assert clf.classes_[clf.y_fit_].tolist() == Y[rows].tolist()
    expected = single.class_scores(NEW)
    assert_close(clf.class_scores(NEW), expected, terms=TERMS, scale=np.abs(expected).max())
    if not hasattr(clf, "mixture_"):  # a mixture that was given knows nothing of the rows it was learned from
        expected = single.loo_class_scores()
        assert_close(clf.loo_class_scores(), expected, terms=TERMS, scale=np.abs(expected).max())


def test_one_row_at_a_time_makes_few_blocks():
    clf = LGCPClassifier(RBF(0.8), selection=None).fit(X[:6], Y[:6])
    for row in range(6, N):
        clf.partial_fit(X[row : row + 1], Y[row : row + 1])
        assert len(clf._training.rows.blocks) <= 1 + 2 * (ALIKE - 1)  # fewer than ALIKE of one row, and of ALIKE rows
    assert_same_model(clf, np.arange(N))


def test_many_classes_come_and_go():
    y = np.arange(N) // 2
    clf = LGCPClassifier(RBF(0.8), selection=None).fit(X[:4], y[:4])
    for start in range(4, N, 4):
        clf.partial_fit(X[start : start + 4], y[start : start + 4], classes=y[start : start + 4])
    single = LGCPClassifier(RBF(0.8), selection=None).fit(X, y)
    assert clf.classes_.tolist() == single.classes_.tolist()
    assert_close(clf.class_scores(NEW), single.class_scores(NEW), terms=TERMS)
    unannounced = LGCPClassifier(RBF(0.8), selection=None).fit(X, y).forget(np.arange(10, N))
    assert unannounced.classes_.tolist() == [0, 1, 2, 3, 4]
    single = LGCPClassifier(RBF(0.8), selection=None).fit(X[:10], y[:10])
    assert_close(unannounced.class_scores(NEW), single.class_scores(NEW), terms=TERMS)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_files_go_on_where_the_object_was(name, form, tmp_path):
    if form == "sparse" and name == "called":
        pytest.skip("scikit-learn's kernels take no sparse points")
    points, gone, path = X if form == "dense" else sparse.csr_array(X), [3, 17, 55], tmp_path / "model.skops"
    clf = LGCPClassifier(**MODELS[name]).fit(points[:50], Y[:50]).partial_fit(points[50:], Y[50:]).forget(gone)
    model_file.save(clf, path, target="y", features=["u", "v", "w"])
    assert_same_model(clf, np.setdiff1d(np.arange(N), gone), points)
    expected = clf.class_scores(NEW)
    for again in (model_file.load(path).model, pickle.loads(pickle.dumps(clf))):
        assert_close(again.class_scores(NEW), expected, terms=TERMS, scale=np.abs(expected).max())
        again.forget([0]).partial_fit(X[:1], Y[:1])


def test_the_array_of_the_user_is_not_touched():
    given = X.copy()
    clf = LGCPClassifier(RBF(0.8), selection=None).fit(given, Y)
    clf.partial_fit(given[:5], Y[:5]).forget([0, 1, 61])
    np.testing.assert_array_equal(given, X)
    other = copy.copy(clf)
    expected = other.class_scores(NEW)
    clf.forget([5, 6])
    np.testing.assert_array_equal(other.class_scores(NEW), expected)
    later = copy.deepcopy(clf).forget([0])
    assert len(later.y_fit_) + 1 == len(clf.y_fit_)


def test_a_kernel_that_somebody_holds_is_not_touched():
    clf = LGCPClassifier().fit(X, Y)
    held, before = clf.kernel_, clf.kernel_.X.copy()
    clf.forget([0, 1])
    np.testing.assert_array_equal(held.X, before)
    assert clf.kernel_.n_reference == N - 2


def test_the_last_row_of_a_class_may_leave():
    clf = LGCPClassifier(RBF(0.8), selection=None).fit(X, Y)
    clf.forget(np.flatnonzero(Y == "b"))
    assert clf.classes_.tolist() == ["a", "c"]
    kept = np.flatnonzero(Y != "b")
    single = LGCPClassifier(RBF(0.8), selection=None).fit(X[kept], Y[kept])
    assert_close(clf.class_scores(NEW), single.class_scores(NEW), terms=TERMS)
    announced = LGCPClassifier(RBF(0.8), selection=None).partial_fit(X, Y, classes=["a", "b", "c", "d"])
    assert announced.forget(np.flatnonzero(Y == "b")).classes_.tolist() == ["a", "b", "c", "d"]
    assert_close(announced.class_scores(NEW)[:, [0, 2]], single.class_scores(NEW), terms=TERMS)
    assert_close(announced.class_scores(NEW)[:, [1, 3]], np.full((7, 2), 0.5))  # C(0) / 2
    back = announced.partial_fit(X[Y == "b"], Y[Y == "b"])
    assert back.classes_.tolist() == ["a", "b", "c", "d"]
    own = LGCPClassifier(OWN, selection=None).fit(X, Y).forget(np.flatnonzero(Y == "a"))
    kernels = {label: OWN[label] for label in "bc"}
    kept = np.flatnonzero(Y != "a")
    single = LGCPClassifier(kernels, selection=None).fit(X[kept], Y[kept])
    assert_close(own.class_scores(NEW), single.class_scores(NEW), terms=TERMS)
    assert sorted(own.kernel_) == ["b", "c"]


def test_a_new_class_has_the_mean_of_its_share_if_means_are_learned():
    some = np.flatnonzero(Y != "c")
    clf = LGCPClassifier().fit(X[some], Y[some])
    means = clf.mean_.copy()
    new = np.flatnonzero(Y == "c")
    clf.partial_fit(X[new[:2]], Y[new[:2]], classes=["c"])
    assert clf.classes_.tolist() == ["a", "b", "c"]
    assert_close(clf.mean_, [*means, np.log(2 / 42)])
    assert_close(pickle.loads(pickle.dumps(clf)).partial_fit(X[:1], Y[:1]).mean_, [*means, np.log(2 / 43)])
    clf.partial_fit(X[new[2:]], Y[new[2:]])  # so many that all means are learned again
    assert not clf._arrived.any()
    learned = clf.mean_
    assert_close(clf.partial_fit(X[:1], Y[:1]).mean_, learned)


def test_the_first_call_is_fit():
    one, other = LGCPClassifier().fit(X, Y), LGCPClassifier().partial_fit(X, Y, classes=["a", "b", "c", "d"])
    assert other.classes_.tolist() == ["a", "b", "c", "d"]
    expected = one.class_scores(NEW)
    assert_close(other.class_scores(NEW)[:, :3], expected, terms=TERMS, scale=np.abs(expected).max())
    assert np.isfinite(other.predict_proba(NEW)).all()


@pytest.mark.parametrize("name", ["paper", "mixture", "part"])
def test_reselect_is_fit_on_all_rows(name):
    clf = LGCPClassifier(**MODELS[name]).fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:]).forget([0, 40]).reselect()
    kept = np.setdiff1d(np.arange(N), [0, 40])
    single = LGCPClassifier(**MODELS[name]).fit(X[kept], Y[kept])
    expected = single.class_scores(NEW)
    assert_close(clf.class_scores(NEW), expected, terms=TERMS, scale=np.abs(expected).max())
    assert clf.loo_error_ == single.loo_error_


def state_of(clf):
    stream = io.BytesIO()
    pickle.dump(clf, stream)
    return stream.getvalue()


REFUSED = [
    (lambda clf: clf.forget([60]), "there is no training row 60: rows are counted from 0 to 59"),
    (lambda clf: clf.forget([-1]), "there is no training row -1"),
    (lambda clf: clf.forget([0.5]), r"rows must be places of training rows, such as \[0, 5\], got \[0.5\]"),
    (lambda clf: clf.forget(["a"]), "rows must be places of training rows"),
    (lambda clf: clf.forget([True, False]), "rows has 2 entries, but there are 60 training rows"),
    (lambda clf: clf.forget(np.arange(60)), "0 training rows of 0 classes would be left"),
    (lambda clf: clf.forget(np.flatnonzero(Y != "a")), "20 training rows of 1 classes would be left"),
    (lambda clf: clf.partial_fit(X[:1], ["d"]), r"the class 'd', which is new: announce it by classes=\['d'\]"),
    (lambda clf: clf.partial_fit(X[:1], [1]), "y holds the class 1, which is new"),
    (
        lambda clf: clf.partial_fit(X[:1], ["a"], classes=[1]),
        "classes holds '1', but the known classes are such as 'a'",
    ),
    (lambda clf: clf.partial_fit(X[:1], ["a"], classes=[None]), "classes holds a blank value"),
    (lambda clf: clf.partial_fit(X[:1, :2], ["a"]), "X has 2 features, but LGCPClassifier is expecting 3"),
    (lambda clf: clf.partial_fit(np.full((1, 3), np.inf), ["a"]), "infinity"),
    (lambda clf: clf.partial_fit(X[:2], ["a"]), "inconsistent numbers of samples"),
    (lambda clf: clf.partial_fit(X[:1], ["a"], sample_weight=[1e30]), r"sample_weight up to 1e\+30 cannot be compared"),
    (lambda clf: clf.partial_fit(X[:1], ["a"], sample_weight=[-1]), "sample_weight must not be negative"),
]


@pytest.mark.parametrize("name", ["kernel", "mixture"])
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused_changes_nothing(name, number):
    wrong, sentence = REFUSED[number]
    clf = LGCPClassifier(**MODELS[name]).fit(X, Y)
    before = state_of(clf)
    with pytest.raises(ValueError, match=sentence):
        wrong(clf)
    assert state_of(clf) == before


def test_a_new_class_needs_a_kernel_if_each_class_has_its_own():
    clf = LGCPClassifier(OWN, selection=None).fit(X, Y)
    with pytest.raises(ValueError, match="the class 'd' has no kernel"):
        clf.partial_fit(X[:1], ["d"], classes=["d"])


def test_all_rows_from_which_a_mixture_was_chosen_may_leave():
    clf = LGCPClassifier().fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:]).forget(np.arange(30))
    assert len(clf.y_fit_) == 30
    assert np.isfinite(clf.predict_proba(X)).all()


def test_a_failing_first_call_leaves_a_new_object():
    clf = LGCPClassifier()
    with pytest.raises(ValueError, match="two classes"):
        clf.partial_fit(X[:2], ["a", "a"])
    assert not hasattr(clf, "classes_")


def test_soft_labels_are_refused():
    y = np.where(np.arange(N) < 59, X[:, 0] > 0, -1)
    clf = SLGCPClassifier(RBF(1.0), selection=None).fit(X, y).classifier_
    for method in (lambda: clf.forget([0]), lambda: clf.partial_fit(X[:1], [0]), clf.reselect):
        with pytest.raises(ValueError, match="needs one label per training row"):
            method()


def test_nothing_to_do():
    clf = LGCPClassifier(RBF(0.8), selection=None).fit(X, Y)
    before = state_of(clf)
    clf.forget([]).forget(np.zeros(N, bool)).partial_fit(X[:2], Y[:2], sample_weight=[0.0, 1.0]).forget([N])
    assert len(clf.y_fit_) == N
    assert_same_model(clf, np.arange(N))
    assert len(before) > 0


def test_a_part_that_has_none_of_a_class_is_refused():
    rare = np.array(["a", "b"])[(np.arange(N) == 0).astype(int)]
    with pytest.raises(ValueError, match=r"selection_part=0.1 has drawn 6 of 60 rows and none of the class 'b'"):
        LGCPClassifier(selection_part=0.1, random_state=1).fit(X, rare)
    for share in (0, 1.5, "half", True):
        with pytest.raises(ValueError, match="selection_part must be a number above 0 and at most 1"):
            LGCPClassifier(selection_part=share).fit(X, Y)


def test_rows_that_the_covariance_was_not_chosen_from_calibrate():
    clf = LGCPClassifier(selection="loo_error", selection_part=0.5, random_state=0).fit(X, Y)
    assert len(clf._calibrators()) == 30
    assert_same_model(clf, np.arange(N))
    clf.partial_fit(X[:4], Y[:4])
    assert len(clf._calibrators()) == 34
    assert len(LGCPClassifier().fit(X, Y)._calibrators()) == N

"""Random histories of a classifier: rows, classes and weights come and go, and somebody reads between the steps."""

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from coxfield import LGCPClassifier
from coxfield.engine import training
from tolerances import assert_close

pytestmark = pytest.mark.filterwarnings("ignore:X is sparse, so the mixture has no members on whitened features")
RNG = np.random.default_rng(3)
N, FIRST, D = 72, 40, 3
X, NEW = RNG.normal(size=(N, D)), RNG.normal(size=(7, D))
WEIGHTS = RNG.uniform(0.5, 2.0, size=N)
FEWEST = 13  # of the first rows that stay: more than a part of 0.7 leaves out, so that some have chosen the covariance
TERMS = 50 * N  # roundings of distances, exponentials and sums
KERNEL = RBF(0.8)
PARTLY = {"selection_part": 0.7, "random_state": 0}
MODELS = {
    "kernel": {"kernel": KERNEL, "selection": None},
    "called": {"kernel": RBF(0.8) + DotProduct(0.5), "selection": None},
    "paper": {"selection": "loo_error"},
    "mixture": {"length_scales": [0.5, 1.0, 2.0]},
    "part": {"length_scales": [0.5, 1.0, 2.0], **PARTLY},
}
READERS = {
    "scores": lambda clf: clf.class_scores(NEW),
    "loo": lambda clf: clf.loo_class_scores(),
    "sets": lambda clf: clf.predict_set(NEW, 0.8),
    "quality": lambda clf: clf.label_quality(),
    "reasons": lambda clf: clf.contributions(NEW, 3),
    "pickle": lambda clf: pickle.dumps(clf),
    "copy": lambda clf: copy.copy(clf),
}


@dataclass(frozen=True)
class History:
    """What happens to a classifier, and which rows are there in the end."""

    n_classes: int
    steps: list
    """Pairs of what happens and its argument."""
    there: list
    announced: set

    @property
    def y(self):
        """The labels of all rows: any row may have any class, and every class is among the first rows."""
        return np.arange(N) % self.n_classes


@st.composite
def histories(draw, *, keep_classes=False):
    """Steps that add rows, remove rows or read; a class may lose all its rows, and come back if it is announced."""
    k = draw(st.sampled_from([2, 3, 9]))
    y, there, coming, announced, steps = np.arange(N) % k, list(range(FIRST)), list(range(FIRST, N)), set(), []
    for _ in range(draw(st.integers(1, 8))):
        what = draw(st.sampled_from(["add", "forget", "class", "read"]))
        if what == "read":
            steps.append((what, draw(st.sampled_from(sorted(READERS)))))
        elif what == "add" and coming:
            rows = coming[: draw(st.integers(1, len(coming)))]
            there, coming = there + rows, coming[len(rows) :]
            if not keep_classes:
                announced |= set(y[rows].tolist())
            steps.append((what, rows))
        else:
            places = draw(st.lists(st.integers(0, len(there) - 1), min_size=1, max_size=8, unique=True))
            if what == "class" and not keep_classes:
                places = np.flatnonzero(y[there] == draw(st.integers(0, k - 1))).tolist()
            left = [row for place, row in enumerate(there) if place not in places]
            present = set(y[left].tolist())
            enough = len(present) == k if keep_classes else len(present) >= 2
            if places and enough and sum(row < FIRST for row in left) >= FEWEST:
                steps.append(("forget", places))
                there = left
    return History(k, steps, there, announced)


def follow(clf, history, points, weights):
    """Live through a history; all new labels are announced, unless no class ever leaves."""
    y = history.y
    clf.fit(points[:FIRST], y[:FIRST], None if weights is None else weights[:FIRST])
    for what, argument in history.steps:
        if what == "add":
            classes = sorted(set(y[argument].tolist()) & history.announced) or None
            some = None if weights is None else weights[argument]
            clf.partial_fit(points[argument], y[argument], classes=classes, sample_weight=some)
        elif what == "forget":
            clf.forget(argument)
        else:
            READERS[argument](clf)
    return clf


def assert_single_fit(clf, history, points, weights, kernels=None):
    """The scores are those of a single fit on what is left, with the same covariance and means."""
    y, there = history.y, history.there
    means = {c: mean for c, mean in zip(clf.classes_.tolist(), clf.mean_.tolist(), strict=True) if c in y[there]}
    single = LGCPClassifier(clf.kernel_ if kernels is None else kernels, mean=means, selection=None)
    single.fit(points[there], y[there], None if weights is None else weights[there])
    present = np.isin(clf.classes_, single.classes_)
    assert set(clf.classes_.tolist()) == set(single.classes_.tolist()) | history.announced
    assert clf.classes_[clf.y_fit_].tolist() == y[there].tolist()
    found, expected = clf.class_scores(NEW), single.class_scores(NEW)
    # Float32 distances of short length scales carry their rounding into exponents of this size.
    condition = 10 if found.dtype == np.float32 else 1
    assert_close(found[:, present], expected, terms=TERMS, scale=np.abs(expected).max(), condition=condition)
    if not hasattr(clf, "mixture_"):  # a mixture that was given knows nothing of the rows it was learned from
        expected = single.loo_class_scores()
        scale = np.abs(expected).max()
        assert_close(clf.loo_class_scores()[:, present], expected, terms=TERMS, scale=scale, condition=condition)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=12, deadline=None)
@given(
    history=histories(),
    weighted=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    spare=st.sampled_from([training.SPARE, -(10**6)]),  # by the latter, rows are numbered anew whenever some leave
)
def test_any_history_of_dense_rows(name, history, weighted, dtype, spare):
    points, weights = X.astype(dtype), WEIGHTS if weighted else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "SPARE", spare)
        clf = follow(LGCPClassifier(**MODELS[name]), history, points, weights)
    np.testing.assert_array_equal(clf.X_fit_, points[history.there])
    assert_single_fit(clf, history, points, weights)


@pytest.mark.parametrize("name", ["kernel", "paper", "mixture", "part"])
@settings(max_examples=8, deadline=None)
@given(history=histories(), weighted=st.booleans(), dtype=st.sampled_from([np.float32, np.float64]))
def test_any_history_of_sparse_rows(name, history, weighted, dtype):
    points, weights = sparse.csr_array(np.where(np.abs(X) < 0.3, 0, X).astype(dtype)), WEIGHTS if weighted else None
    clf = follow(LGCPClassifier(**MODELS[name]), history, points, weights)
    assert (clf.X_fit_ != points[history.there]).nnz == 0
    assert_single_fit(clf, history, points, weights)


@settings(max_examples=20, deadline=None)
@given(history=histories(keep_classes=True), weighted=st.booleans(), form=st.booleans())
def test_any_history_with_a_kernel_per_class(history, weighted, form):
    shared = 0.5 * Matern(1.5)
    kernels = {c: KERNEL if c == 0 else shared if c % 2 else RBF(0.5 + c) for c in range(history.n_classes)}
    points, weights = sparse.csr_array(X) if form else X, WEIGHTS if weighted else None
    clf = follow(LGCPClassifier(kernels, selection=None), history, points, weights)
    assert_single_fit(clf, history, points, weights, kernels)


@settings(max_examples=15, deadline=None)
@given(history=histories())
def test_reasons_of_any_history_are_those_of_a_single_fit(history):
    clf = follow(LGCPClassifier(KERNEL, selection=None), history, X, WEIGHTS)
    single = LGCPClassifier(KERNEL, selection=None).fit(
        X[history.there], history.y[history.there], WEIGHTS[history.there]
    )
    present = np.isin(clf.classes_, single.classes_)
    one, other = clf.contributions(NEW, 4), single.contributions(NEW, 4)
    assert one.rows[:, present].tolist() == other.rows.tolist()
    assert_close(one.shares[:, present], other.shares, terms=20, condition=10)
    assert (one.rows[:, ~present] == -1).all()

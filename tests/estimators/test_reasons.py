"""Contributions of training rows: exact terms of the class scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from coxfield import LGCPClassifier
from reference import kernel_value
from tolerances import assert_close

RNG = np.random.default_rng(1)
X, NEW = RNG.normal(size=(40, 3)), RNG.normal(size=(6, 3))
Y = np.array(["a", "b", "c"])[np.arange(40) % 3]
WEIGHTS = RNG.uniform(0.5, 2.0, size=40)
OWN = {"a": RBF(1.0), "b": 0.5 * Matern(1.5), "c": RBF(1.0)}
KERNELS = {"one": 2.0 * RBF(0.8), "own": OWN, "called": RBF(0.8) + DotProduct(0.1)}


def assert_adds_up(clf, reasons, points):
    """Shares and rest are the class scores, to 1e-10 of the largest term."""
    expected = clf.class_scores(points)
    found = reasons.shares.sum(axis=2) + reasons.rest
    scale = np.abs(expected) + np.abs(reasons.shares).sum(axis=2)
    assert (np.abs(found - expected) <= 1e-10 * scale).all()


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("name", KERNELS)
def test_terms_by_double_loop(name, weights):
    clf = LGCPClassifier(KERNELS[name], selection=None).fit(X, Y, weights)
    reasons = clf.contributions(NEW, top=4)
    for q, x in enumerate(NEW):
        for c, label in enumerate("abc"):
            kernel = KERNELS[name][label] if name == "own" else KERNELS[name]
            rows = np.flatnonzero(label == Y)
            terms = np.array([kernel_value(kernel, x, X[i]) * (1 if weights is None else weights[i]) for i in rows])
            order = np.argsort(-terms)[:4]
            assert reasons.rows[q, c].tolist() == rows[order].tolist()
            assert_close(reasons.shares[q, c], terms[order], terms=20, condition=10)
            prior = kernel_value(kernel, x, x) / 2 if name != "called" else 0.0  # it cancels, see `prior_terms`
            assert_close(reasons.prior[q, c], prior, terms=5, scale=1.0)
            assert_close(
                reasons.rest[q, c], prior + terms.sum() - terms[order].sum(), terms=80, scale=np.abs(terms).sum() + 1
            )
    assert_adds_up(clf, reasons, NEW)


@pytest.mark.parametrize("options", [{}, {"selection": "loo_error"}, {"selection_part": 0.6, "random_state": 0}])
def test_the_covariances_in_use(options):
    clf = LGCPClassifier(**options).fit(X, Y)
    reasons = clf.contributions(NEW, top=40)
    values = clf.kernel_(NEW, X)
    for c, label in enumerate("abc"):
        count = int(np.sum(label == Y))
        assert (reasons.rows[:, c, count:] == -1).all()
        assert (reasons.shares[:, c, count:] == 0).all()
        rows = reasons.rows[:, c, :count]
        assert all(sorted(row) == np.flatnonzero(label == Y).tolist() for row in rows.tolist())
        assert_close(reasons.shares[:, c, :count], np.take_along_axis(values, rows, axis=1), terms=500, condition=10)
        assert (np.diff(reasons.shares[:, c, :count], axis=1) <= 0).all()
    assert_adds_up(clf, reasons, NEW)


def test_sparse_points():
    points = np.where(np.abs(X) < 0.5, 0, X)
    dense, thin = (LGCPClassifier(RBF(0.8), selection=None).fit(data, Y) for data in (points, sparse.csr_array(points)))
    one, other = dense.contributions(NEW, 5), thin.contributions(sparse.csr_array(NEW), 5)
    assert_close(one.shares, other.shares, terms=20, condition=10)
    assert_adds_up(thin, other, NEW)


@pytest.mark.parametrize("scale", [1e-2, 1e-3, 1e3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_that_underflow_have_their_nearest_rows_as_witnesses(scale, dtype):
    clf = LGCPClassifier(RBF(scale), selection=None).fit(X.astype(dtype), Y)
    reasons = clf.contributions(NEW, top=2)
    for c, label in enumerate("abc"):
        rows = np.flatnonzero(label == Y)
        d2 = np.square(NEW.astype(dtype)[:, None].astype(float) - X.astype(dtype)[rows].astype(float)).sum(axis=2)
        nearest, found = rows[np.argsort(d2, axis=1)[:, :2]], reasons.rows[:, c]
        if scale < 1:
            assert found.tolist() == nearest.tolist()
        else:  # in single precision several rows may be equally loud
            place = np.searchsorted(rows, found)
            loudness, best = (
                np.exp(-v / (2 * scale**2)) for v in (np.take_along_axis(d2, place, 1), np.sort(d2)[:, :2])
            )
            assert_close(np.sort(loudness), np.sort(best), terms=20, dtype=dtype)
    if dtype == np.float64:
        assert_adds_up(clf, reasons, NEW)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 30), st.integers(1, 700), st.integers(0, 2**32 - 1))
def test_the_largest_of_many_rows_are_found(top, n, seed):
    rng = np.random.default_rng(seed)
    points, y = rng.normal(size=(n + 2, 2)), np.r_[0, 1, rng.integers(2, size=n)]
    clf = LGCPClassifier(RBF(1.0), selection=None).fit(points, y)
    reasons = clf.contributions(points[:3], top=top)
    values = np.exp(-np.square(points[:3, None] - points).sum(axis=2) / 2)
    for c in (0, 1):
        best = -np.sort(-np.where(y == c, values, -1), axis=1)[:, :top]
        best = np.pad(best, ((0, 0), (0, top - best.shape[1])), constant_values=-1)
        assert_close(reasons.shares[:, c], np.where(best < 0, 0, best), terms=10, condition=20)


@st.composite
def fitted(draw):
    """A classifier, queries and labels: dense or sparse, both precisions, from terms that vanish to terms all alike."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, classes, dtype = (
        draw(st.integers(6, 200)),
        draw(st.integers(2, 5)),
        draw(st.sampled_from([np.float32, np.float64])),
    )
    y, points, queries = rng.permutation(np.arange(n) % classes), rng.normal(size=(n, 3)), rng.normal(size=(5, 3))
    points, queries = (np.where(np.abs(each) < 0.3, 0, each).astype(dtype) for each in (points, queries))
    if draw(st.booleans()):
        points, queries = sparse.csr_array(points), sparse.csr_array(queries)
    kernel = 2.0 * RBF(10.0 ** draw(st.integers(-4, 3)))
    means = dict(zip(range(classes), rng.normal(size=classes).tolist(), strict=True))
    weights = rng.uniform(0.1, 3.0, size=n) if draw(st.booleans()) else None
    return LGCPClassifier(kernel, mean=means, selection=None).fit(points, y, weights), queries, y


@settings(max_examples=60, deadline=None)
@given(fitted(), st.integers(1, 12))
def test_shares_and_rest_are_the_scores(case, top):
    clf, queries, y = case
    reasons = clf.contributions(queries, top)
    if clf.X_fit_.dtype == np.float64:
        assert_adds_up(clf, reasons, queries)
    else:  # class_scores returns numbers of this precision, and the sums over tiles have it
        expected = clf.class_scores(queries)
        scale = np.abs(expected) + np.abs(reasons.shares).sum(axis=2)
        assert_close(reasons.shares.sum(axis=2) + reasons.rest, expected, terms=len(y), scale=scale, dtype=np.float32)
    named = reasons.rows >= 0
    assert (named.sum(axis=2) == np.minimum(top, np.bincount(y))).all()
    assert (y[reasons.rows] == np.arange(len(clf.classes_))[:, None])[named].all()
    assert (np.diff(reasons.shares, axis=2) <= 0).all()
    others = reasons.rest - reasons.prior  # of rows that are not named, whose terms are not negative
    scale = np.abs(reasons.prior) + reasons.shares.sum(axis=2)
    # The sums come from products of points, whose rounding is that of squared norms in units of the length scale.
    norms = 1 + 50 / clf.kernel_.k2.length_scale**2
    options = {"terms": len(y), "scale": scale, "condition": norms, "dtype": clf.X_fit_.dtype}
    assert_close(np.minimum(others, 0), np.zeros_like(others), **options)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.filterwarnings("ignore:X is sparse, so the mixture has no members on whitened features")
@pytest.mark.parametrize("far", [1.0, 30.0, 1e4])
def test_shares_of_a_mixture_and_rest_are_the_scores(container, far):
    clf = LGCPClassifier(length_scales=[0.3, 1.0, 3.0]).fit(container(X), Y)
    queries = container(far * NEW)
    assert_adds_up(clf, clf.contributions(queries, 3), queries)


def test_rows_that_came_later_and_rows_that_left():
    clf = LGCPClassifier(RBF(0.8), selection=None).fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:]).forget([0, 1, 35])
    kept = np.setdiff1d(np.arange(40), [0, 1, 35])
    single = LGCPClassifier(RBF(0.8), selection=None).fit(X[kept], Y[kept])
    one, other = clf.contributions(NEW, 6), single.contributions(NEW, 6)
    assert one.rows.tolist() == other.rows.tolist()
    assert_close(one.shares, other.shares, terms=20, condition=10)


def test_the_table_lists_all_entries():
    clf = LGCPClassifier(RBF(0.8), selection=None).fit(X[:5], ["a", "a", "a", "b", "b"])
    table = clf.contributions(NEW[:2], top=3).table()
    assert set(table) == {"query", "class", "rank", "row", "share"}
    assert len(table["row"]) == 2 * (3 + 2)
    assert table["class"].tolist() == ["a", "a", "a", "b", "b"] * 2


@pytest.mark.parametrize("top", [0, -1, 2.5, "all"])
def test_a_number_of_rows_that_makes_no_sense_is_refused(top):
    clf = LGCPClassifier(RBF(0.8), selection=None).fit(X, Y)
    with pytest.raises(ValueError, match="top must be a whole number of at least 1, got"):
        clf.contributions(NEW, top=top)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("options", [{}, {"selection": "loo_error"}, {"selection_part": 0.6, "random_state": 0}])
def test_training_rows_are_explained_by_the_others(options, weights):
    clf = LGCPClassifier(**options).fit(X, Y, weights)
    rows = [5, 39, 5, 0]
    reasons = clf.loo_contributions(rows, top=39)
    expected = clf.loo_class_scores()[rows]
    assert_close(reasons.shares.sum(axis=2) + reasons.rest, expected, terms=500, scale=np.abs(expected).max() + 1)
    for q, row in enumerate(rows):
        assert row not in reasons.rows[q]
        named = reasons.rows[q][reasons.rows[q] >= 0]
        assert sorted(named.tolist()) == [other for other in range(40) if other != row]
    assert clf.loo_contributions(np.arange(40) == 5, top=2).rows.tolist() == [reasons.rows[0, :, :2].tolist()]


def test_terms_of_training_rows_by_double_loop():
    clf = LGCPClassifier(RBF(0.8), selection=None).fit(X, Y)
    reasons = clf.loo_contributions([7], top=3)
    for c, label in enumerate("abc"):
        rows = np.flatnonzero((label == Y) & (np.arange(40) != 7))
        terms = np.array([kernel_value(RBF(0.8), X[7], X[i]) for i in rows])
        order = np.argsort(-terms)[:3]
        assert reasons.rows[0, c].tolist() == rows[order].tolist()
        assert_close(reasons.shares[0, c], terms[order], terms=20, condition=10)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "rows names no training row"),
        ([40], "there is no training row 40"),
        ([True, False], "rows has 2 entries, but there are 40 training rows"),
        (["a"], "rows must be places of training rows"),
    ],
)
def test_training_rows_that_are_not_there_are_refused(rows, sentence):
    clf = LGCPClassifier(RBF(0.8), selection=None).fit(X, Y)
    with pytest.raises(ValueError, match=sentence):
        clf.loo_contributions(rows)

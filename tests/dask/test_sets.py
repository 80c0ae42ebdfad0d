"""Guaranteed sets on shards are those of one machine."""

import pickle

import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.dask import DaskLGCPClassifier
from local_cluster import calls, cluster, counted_chunks
from shard_cases import CASES, D, M, N, case, chunked, points
from tolerances import rounding

CHUNKS = {"dense": 7, "float32": 40, "weights": N}  # of training points; otherwise 25


def shards(X, y, weights=None, size=25, kernel=None):
    clf = DaskLGCPClassifier(RBF(1.0) if kernel is None else kernel, selection=None)
    return clf.fit(chunked(X, size), chunked(y, size), chunked(weights, size))


def both(name):
    of = case(name)
    here = LGCPClassifier(of.kernel, selection=None).fit(of.X, of.y, of.weights)
    size = CHUNKS.get(name, 25)
    return of, here, shards(of.X, of.y, of.weights, size, of.kernel), size


def dense(X):
    return (X.toarray() if sparse.issparse(X) else X).astype(float)


def covariances(of, classes, X):
    """C_c between points and queries, shape (n_classes, points, queries)."""
    kernels = [of.kernel[c] for c in classes] if isinstance(of.kernel, dict) else [of.kernel] * len(classes)
    return np.stack([kernel(X, dense(of.Q)) for kernel in kernels])


def margin(of, size):
    """How near log odds are that may count as ties, for scores of size 1: 4 times the error of a score.

    Each of the two odds is a difference of two scores, and both computations may err. Scores are sums of values whose
    squared distances err by eps (8 + sqrt(d)) |z|^2 for each of two points; the bound in use may be 4 times as large.
    Coordinates z begin at the mean of a shard.
    """
    X, Q = dense(of.X) / of.length, dense(of.Q) / of.length
    origins = [X[k : k + size].mean(axis=0) * (not sparse.issparse(of.X)) for k in range(0, N, size)] + [X.mean(axis=0)]
    norms = max(np.square(np.concatenate([X, Q]) - origin).sum(axis=1).max() for origin in origins)
    terms = N + 4 * (8 + np.sqrt(D)) * 2 * norms
    return 4 * rounding(1.0, dtype=of.X.dtype, terms=terms)


def odds(scores, y):
    """Log odds against one label per row."""
    rivals, own = scores.astype(float), (np.arange(len(y)), y)
    mine = rivals[own]
    rivals[own] = -np.inf
    return logsumexp(rivals, axis=1) - mine


def bounds(of, here, size, per_class):
    """The least and the largest counts that rounding allows, by adding covariances to scores; shape (2, M, C)."""
    kept = np.arange(N) if of.weights is None else np.flatnonzero(of.weights)
    y, k = np.searchsorted(here.classes_, of.y[kept]), covariances(of, here.classes_, dense(of.X)[kept])
    before, predicted = here.loo_class_scores(), here.class_scores(of.Q)
    sizes, asked = (np.abs(scores).max(axis=1) for scores in (before, predicted))
    unit, found = margin(of, size), np.empty((2, *predicted.shape), int)
    for t, c in np.ndindex(predicted.shape):
        after = before.astype(float)
        after[:, c] += k[c, :, t]
        worse = odds(after, y) - odds(predicted[[t]], [c])
        near = unit * (2 + sizes + np.abs(k[c, :, t]) + asked[t])
        counts = y == c if per_class else np.ones(len(y), bool)
        found[:, t, c] = [1 + np.count_nonzero(counts & (worse >= by)) for by in (near, -near)]
    return found


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_p_values_and_sets_are_those_of_one_machine(name, per_class):
    of, here, there, size = both(name)
    kept = of.y if of.weights is None else of.y[of.weights > 0]
    calibrating = np.unique(kept, return_counts=True)[1] if per_class else len(kept)
    found = there.set_p_values(chunked(of.Q, 15), per_class=per_class).compute()
    expected = here.set_p_values(of.Q, per_class=per_class)
    if name == "underflow":  # nothing is known of any class, so that all points are ties
        assert (found == 1).all()
        assert (expected == 1).all()
        return
    low, high = bounds(of, here, size, per_class)
    ranks = np.rint(found * (calibrating + 1))
    assert ((low <= ranks) & (ranks <= high)).all()
    clear = low == high
    assert clear.mean() > (0.75 if name in ("float32", "sparse") else 0.9)  # several sparse points are 0: these tie
    np.testing.assert_array_equal(found[clear], expected[clear])
    for coverage in (0.5, 0.9):
        sets = there.predict_set(chunked(of.Q, 15), coverage, per_class=per_class).compute()
        np.testing.assert_array_equal(sets[clear], here.predict_set(of.Q, coverage, per_class=per_class)[clear])
        assert sets.dtype == bool


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("sizes", [(N,), (1, 88, 1), (40, 0, 50), (0, 30, 60, 0)])
def test_chunks_do_not_matter(sizes, per_class):
    X, y, Q = points()
    here = LGCPClassifier(RBF(0.8), selection=None).fit(X, y).set_p_values(Q, per_class=per_class)
    clf = DaskLGCPClassifier(RBF(0.8), selection=None)
    clf.fit(da.from_array(X, chunks=(sizes, D)), da.from_array(y, chunks=(sizes,)))
    assert len(clf._shards) == len(sizes)
    asked = da.from_array(Q, chunks=((10, 0, 30), D))
    np.testing.assert_array_equal(clf.set_p_values(asked, per_class=per_class).compute(), here)


def test_a_class_of_one_shard_with_a_kernel_of_its_own():
    X, y, Q = points()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    kernels = {0: RBF(0.7), 1: 0.5 * RBF(1.5), 2: 2.0 * RBF(0.4)}
    here = LGCPClassifier(kernels, selection=None).fit(X, y)
    there = shards(X, y, size=15, kernel=kernels)
    for per_class in (False, True):
        found = there.set_p_values(chunked(Q, 15), per_class=per_class).compute()
        np.testing.assert_array_equal(found, here.set_p_values(Q, per_class=per_class))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_a_duplicate_is_a_tie_whatever_shard_it_is_in(dtype, scale):
    """Each training point is asked again, with its label: at least it and its copy fit as badly."""
    X, y, _ = points(dtype=dtype)
    X = (X + scale * np.random.default_rng(0).normal(size=D)).astype(dtype)
    X[60:] += dtype(3 * scale)  # far from the mean of the other shards
    found = shards(X, y, size=20, kernel=RBF(0.7)).set_p_values(chunked(X, 35)).compute()
    assert (found[np.arange(N), y] * (N + 1)).min() > 1.5


@pytest.mark.parametrize("outlier", [False, True])
def test_rounding_never_makes_p_values_smaller(outlier):
    """Single precision beside the same points in double precision; an outlier makes its shard compute with care."""
    X, y, Q = points(dtype=np.float32)
    X[::2] += 40
    Q[::2] += 40
    X[0] = 400 if outlier else X[0]
    found = shards(X, y, size=35, kernel=3.0 * RBF(1.0)).set_p_values(chunked(Q, 15)).compute()
    exact = LGCPClassifier(3.0 * RBF(1.0), selection=None).fit(X.astype(float), y).set_p_values(Q.astype(float))
    assert (found >= exact).all()
    assert (found > exact).any()
    assert (found - exact).mean() < 0.1


@pytest.mark.parametrize("per_class", [False, True])
def test_the_guarantee_holds_for_every_set_of_points(per_class):
    """Each of n + 1 points is the new one in turn. Exactly this share of them must be covered, without any chance."""
    X, y, _ = points()
    X, y, own = X[:16], y[:16], np.empty(16)
    X[5], y[5] = X[4], y[4]
    for i in range(16):
        kept = np.arange(16) != i
        found = shards(X[kept], y[kept], size=6).set_p_values(X[[i]], per_class=per_class)
        own[i] = found[0, y[i]]
    for some in [y == c for c in range(3)] if per_class else [np.ones(16, bool)]:
        n = np.count_nonzero(some)
        for excluded in range(1, n):
            assert np.count_nonzero(own[some] * n > excluded + 0.5) >= n - excluded


def test_nothing_of_the_queries_is_computed_before_it_is_asked_for(tmp_path):
    X, y, Q = points()
    clf, asked = shards(X, y), counted_chunks(Q, 15, tmp_path)
    sets, p_values = clf.predict_set(asked), clf.set_p_values(asked)
    assert calls(tmp_path) == 0
    assert isinstance(sets, da.Array)
    assert sets.chunks == p_values.chunks == ((15, 15, 10), (3,))
    assert (sets.dtype, p_values.dtype) == (bool, float)
    assert sets.compute().shape == (M, 3)
    assert calls(tmp_path) == 3
    names = {str(key[0] if isinstance(key, tuple) else key).rsplit("-", 1)[0] for key in dict(sets.dask)}
    assert {"lgcp-sums", "lgcp-set-counts", "lgcp-set-join", "lgcp-predict-set"} <= names


def test_numpy_arrays_give_numpy_arrays():
    X, y, Q = points()
    found = DaskLGCPClassifier(RBF(1.0), selection=None).fit(X, y).predict_set(Q, 0.8)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, LGCPClassifier(RBF(1.0), selection=None).fit(X, y).predict_set(Q, 0.8))


def test_all_rows_calibrate_after_a_selection():
    X, y, Q = points()
    options = {"selection": "loo_log_loss", "length_scales": [0.5, 1.0], "selection_rows": 30, "random_state": 0}
    there = DaskLGCPClassifier(**options).fit(chunked(X, 25), chunked(y, 25))
    here = LGCPClassifier(there.kernel_, selection=None).fit(X, y)
    np.testing.assert_array_equal(there.set_p_values(Q), here.set_p_values(Q))


def test_leave_one_out_is_computed_once_and_forgotten_by_another_fit():
    X, y, Q = points()
    clf = shards(X, y)
    first, held = clf.set_p_values(Q), clf._left_out_fits
    assert len(held) == 4
    clf.predict_set(chunked(Q, 15))
    assert clf._left_out_fits is held
    clf.fit(chunked(X[:50], 25), chunked(y[:50], 25))
    np.testing.assert_array_equal(clf.set_p_values(Q), shards(X[:50], y[:50]).set_p_values(Q))
    assert (clf.set_p_values(Q) != first).any()


def test_a_copy_starts_again():
    X, y, Q = points()
    clf = shards(X, y)
    first = clf.set_p_values(Q)
    copy = pickle.loads(pickle.dumps(clf))
    assert not hasattr(copy, "_left_out_fits")
    assert hasattr(clf, "_left_out_fits")
    np.testing.assert_array_equal(copy.set_p_values(Q), first)


def test_what_a_closed_cluster_held_is_computed_again():
    X, y, Q = points()
    clf = shards(X, y)
    with cluster(processes=False, n_workers=1, host=None):
        first, held = clf.set_p_values(Q), clf._left_out_fits
        np.testing.assert_array_equal(clf.set_p_values(Q), first)
        assert clf._left_out_fits is held
    np.testing.assert_array_equal(clf.set_p_values(Q), first)
    assert clf._left_out_fits is not held


@pytest.mark.parametrize("coverage", [0, 1, 1.5, float("nan"), "0.9", None, True])
def test_a_bad_coverage_gets_the_sentence_of_one_machine(coverage):
    X, y, Q = points()
    with pytest.raises(ValueError, match="coverage must be a number") as expected:
        LGCPClassifier(RBF(1.0), selection=None).fit(X, y).predict_set(Q, coverage)
    clf = shards(X, y)
    with pytest.raises(ValueError, match="coverage must be a number") as found:
        clf.predict_set(chunked(Q, 15), coverage)
    assert str(found.value) == str(expected.value)
    assert not hasattr(clf, "_left_out_fits")  # the long work has not begun


def test_a_query_with_nan_is_named_by_column_and_chunk():
    X, y, Q = points()
    clf = shards(X, y)
    Q[17, 2] = np.nan
    for method in (clf.predict_set, clf.set_p_values):
        with pytest.raises(ValueError, match="Input X contains NaN: column 2 in row 2 of chunk 1"):
            method(chunked(Q, 15)).compute()


def test_wrong_columns_and_no_fit():
    X, y, Q = points()
    clf = shards(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but DaskLGCPClassifier is expecting 3"):
        clf.predict_set(chunked(Q, 10)[:, :2])
    with pytest.raises(NotFittedError):
        DaskLGCPClassifier().set_p_values(chunked(Q, 10))

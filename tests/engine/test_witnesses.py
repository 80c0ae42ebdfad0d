"""The largest terms of class sums, beside a sort of all terms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from coxfield import threads
from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import store_distributions, store_labels
from coxfield.engine.witnesses import RUN, _candidates, _keep, witnesses
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from tolerances import assert_close

RNG = np.random.default_rng(0)
X, QUERIES = RNG.normal(size=(50, 3)), RNG.normal(size=(9, 3))
Y = RNG.permutation(np.arange(50) % 3)
WEIGHTS = RNG.uniform(0.5, 2.0, size=50)


def covariances(kernels):
    return PerClass.of(kernels).map(lambda kernel: recognise(kernel, 3))


def sorted_terms(kernels, matrix, top):
    """Terms and rows of each query and class, by sorting all of them."""
    terms, rows = np.zeros((len(QUERIES), 3, top)), np.full((len(QUERIES), 3, top), -1)
    for c, kernel in enumerate(kernels):
        values = kernel(QUERIES, X) * matrix[:, c]
        there = np.flatnonzero(matrix[:, c])
        order = there[np.argsort(-values[:, there], axis=1)][:, :top]
        terms[:, c, : order.shape[1]] = np.take_along_axis(values, order, axis=1)
        rows[:, c, : order.shape[1]] = order
    return terms, rows


@pytest.mark.parametrize("kernels", [[RBF(0.8)] * 3, [RBF(0.8), Matern(1.0), RBF(0.8)]], ids=["shared", "per class"])
@pytest.mark.parametrize("top", [1, 4, 60])
@pytest.mark.parametrize("soft", [False, True])
def test_the_largest_terms_are_those_of_a_sort(kernels, top, soft):
    matrix = RNG.dirichlet(np.ones(3), size=50) if soft else WEIGHTS[:, None] * np.eye(3)[Y]
    if soft:
        store = store_distributions(X, matrix, covariances(kernels))
    else:
        store = store_labels(X, Y, covariances(kernels), WEIGHTS)
    found, (terms, rows) = witnesses(store, QUERIES, top), sorted_terms(kernels, matrix, top)
    assert found.rows.tolist() == rows.tolist()
    assert_close(found.terms, terms, terms=20, condition=10)
    assert_close(found.sums.values, class_sums(store, QUERIES).values, terms=60, condition=10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vanished_terms_of_several_parts_are_ordered_by_their_logarithms(dtype):
    points, queries = X.astype(dtype), QUERIES.astype(dtype)
    first = store_labels(points[:25], Y[:25], covariances([RBF(1e-3)] * 3))
    store = first.append(points[25:], np.eye(3)[Y[25:]])
    found = witnesses(store, queries, 3)
    d2 = np.square(queries[:, None].astype(float) - points.astype(float)).sum(axis=2)
    for c in range(3):
        rows = np.flatnonzero(c == Y)
        assert found.rows[:, c].tolist() == rows[np.argsort(d2[:, rows], axis=1)[:, :3]].tolist()
    assert not found.terms.any()


def test_rows_that_have_left_are_no_witnesses():
    store = store_labels(X.copy(), Y, covariances([RBF(0.8)] * 3))
    gone = np.flatnonzero(Y == 1)[:4]
    for overwrite in (False, True):
        left = store.without(gone, overwrite=overwrite)
        found = witnesses(left, QUERIES, 50).rows
        for c in range(3):
            expected = np.setdiff1d(np.flatnonzero(c == Y), gone)
            assert all(np.sort(row[row >= 0]).tolist() == expected.tolist() for row in found[:, c])


@pytest.mark.parametrize("top", [1, 4, 9, 20])
@pytest.mark.parametrize("kernel", [RBF(0.7), RBF(0.7) + DotProduct(0.1), RBF(1e-3)])
def test_a_row_that_is_left_out_is_no_witness(kernel, top):
    store = store_labels(X, Y, covariances([kernel] * 3))
    found = witnesses(store, X, top, np.arange(50))
    values = kernel(X, X)
    for query in range(50):
        for c in range(3):
            rows = np.setdiff1d(np.flatnonzero(c == Y), [query])
            listed = found.rows[query, c][found.rows[query, c] >= 0]
            assert len(listed) == min(top, len(rows))
            assert np.isin(listed, rows).all()
            largest = -np.sort(-values[query, rows])[:top]
            assert_close(found.terms[query, c, : len(listed)], largest, terms=30, condition=10, scale=1 + abs(largest))


def test_threads_find_the_same():
    points, y = RNG.normal(size=(3000, 3)), np.arange(3000) % 3
    store, queries = store_labels(points, y, covariances([RBF(0.8)] * 3)), RNG.normal(size=(600, 3))
    found = []
    for n_jobs in (1, 3):
        with threads.use(n_jobs):
            found.append(witnesses(store, queries, 5))
    assert found[0].rows.tolist() == found[1].rows.tolist()
    assert_close(found[0].terms, found[1].terms)


@st.composite
def tiles(draw):
    """Values with many ties, so that choices are hard; some are no candidates at all."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, 6)), draw(st.sampled_from([1, 3, RUN - 1, RUN, RUN + 1, 5 * RUN, 9 * RUN + 5]))
    values = rng.integers(draw(st.integers(1, 40)), size=shape).astype(draw(st.sampled_from([np.float32, np.float64])))
    values[rng.random(shape) < draw(st.sampled_from([0.0, 0.3]))] = -np.inf
    return values


@settings(max_examples=200, deadline=None)
@given(st.lists(tiles(), min_size=1, max_size=3), st.integers(1, 12))
def test_the_largest_values_of_tiles_are_kept(found, top):
    rows = min(len(values) for values in found)
    found = [values[:rows] for values in found]
    columns, terms, start = np.full((rows, top), -1), np.full((rows, top), -np.inf), 0
    for values in found:
        _keep(columns, terms, values, start)
        start += values.shape[1]
    everything = np.concatenate([values.astype(float) for values in found], axis=1)
    best = np.pad(-np.sort(-everything, axis=1)[:, :top], ((0, 0), (0, max(0, top - start))), constant_values=-np.inf)
    np.testing.assert_array_equal(-np.sort(-terms, axis=1), best)
    chosen = columns >= 0
    np.testing.assert_array_equal(chosen, np.isfinite(terms))
    for row in range(rows):
        assert len(set(columns[row, chosen[row]])) == chosen[row].sum()
        np.testing.assert_array_equal(everything[row, columns[row, chosen[row]]], terms[row, chosen[row]])


@settings(max_examples=100, deadline=None)
@given(tiles(), st.integers(1, 12))
def test_ties_make_few_candidates(values, top):
    at, place = _candidates(values, np.full(len(values), -np.inf, values.dtype), top)
    assert np.bincount(at, minlength=len(values)).max(initial=0) <= max(top * (RUN + 1), values.shape[1] % RUN)
    assert (np.diff(at) >= 0).all()
    assert np.isfinite(values[at, place]).all()

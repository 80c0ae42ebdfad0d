import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import Labelled, Segments, Shares, store_bound, store_distributions, store_labels
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = RNG.permutation(np.arange(30) % 3)
QUERIES = RNG.normal(size=(8, 3))
SHARED = [RBF(0.8)] * 3
OWN = [RBF(0.8), Matern(1.0), RBF(0.8)]
CALLED = [RBF(0.8) + RBF(2.0), Matern(1.0), RBF([1.0, 2.0, 3.0])]


def covariances(kernels):
    return PerClass.of(kernels).map(lambda kernel: recognise(kernel, 3))


def naive(kernels, matrix, queries=QUERIES):
    """K W, one class after the other."""
    return np.stack([kernel(queries, X) @ matrix[:, c] for c, kernel in enumerate(kernels)], axis=1)


@pytest.mark.parametrize("kernels", [SHARED, OWN, CALLED], ids=["shared", "per class", "called"])
def test_soft_labels_are_sums_with_a_weight_for_every_class(kernels):
    matrix = RNG.dirichlet(np.ones(3), size=30)
    matrix[4] = [0.0, 1.0, 0.0]
    store = store_distributions(X, matrix, covariances(kernels))
    np.testing.assert_allclose(class_sums(store, QUERIES).values, naive(kernels, matrix), rtol=1e-12)
    without = matrix.copy()
    without[7] = 0
    left = class_sums(store, QUERIES, leave_out=np.full(8, 7)).values
    np.testing.assert_allclose(left, naive(kernels, without), rtol=1e-12)


def test_soft_labels_hold_every_point_once_per_covariance():
    store = store_distributions(X, RNG.dirichlet(np.ones(3), size=30), covariances(SHARED))
    assert [len(part.points) for group in store.groups for part in group.parts] == [30]
    assert isinstance(store.groups[0].parts[0].weights, Shares)


def test_distributions_that_are_certain_are_sorted_by_class():
    certain = store_distributions(X, np.eye(3)[Y], covariances(OWN))
    assert all(isinstance(part.weights, Segments) for group in certain.groups for part in group.parts)
    given = store_labels(X, Y, covariances(OWN))
    np.testing.assert_allclose(class_sums(certain, QUERIES).values, class_sums(given, QUERIES).values, rtol=1e-13)


def test_underflowing_soft_sums_are_right_in_their_logarithms():
    matrix = RNG.dirichlet(np.ones(3), size=30)
    matrix[:20, 2] = 0
    sums = class_sums(store_distributions(X, matrix, covariances([RBF(1e-3)] * 3)), QUERIES)
    d2 = np.square(QUERIES[:, None] - X).sum(axis=2)
    with np.errstate(divide="ignore"):
        logs = -d2[:, :, None] / 2e-6 + np.log(matrix)
    np.testing.assert_allclose(sums.logs, np.logaddexp.reduce(logs, axis=1), rtol=1e-9)
    assert (sums.values == 0).all()


def test_points_that_are_already_bound():
    of = covariances(OWN)
    points = [covariance.bind(X) for covariance in of.distinct]
    found = class_sums(store_bound(points, Y, of), QUERIES).values
    np.testing.assert_allclose(found, class_sums(store_labels(X, Y, of), QUERIES).values, rtol=1e-12)


def test_classes_without_points_sum_to_nothing():
    y = np.where(Y == 1, 0, Y)
    sums = class_sums(store_labels(X, y, covariances(OWN)), QUERIES)
    assert (sums.values[:, 1] == 0).all()
    assert np.isneginf(sums.logs[:, 1]).all()


def test_labelled_points_count_once_or_by_weight():
    labelled = Labelled(X, Y, 3)
    np.testing.assert_array_equal(labelled.counts, np.ones(30))
    weights = RNG.uniform(0.5, 2, size=30)
    found = class_sums(Labelled(X, Y, 3, weights).under(covariances(OWN)), QUERIES).values
    np.testing.assert_allclose(found, naive(OWN, np.eye(3)[Y] * weights[:, None]), rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    kernels=st.sampled_from([SHARED, OWN, CALLED]),
    soft=st.booleans(),
    thin=st.booleans(),
    steps=st.integers(1, 5),
)
def test_appending_and_removing_gives_the_store_of_the_remaining_points(seed, kernels, soft, thin, steps):
    rng = np.random.default_rng(seed)
    if thin:
        kernels = SHARED  # kernels that are called take no sparse points
    of, form = covariances(kernels), sparse.csr_array if thin else np.asarray

    def some(n):
        data = rng.normal(size=(n, 3))
        matrix = rng.dirichlet(np.ones(3), size=n) if soft else np.eye(3)[rng.integers(3, size=n)]
        return data, matrix

    data, matrix = some(6)
    store = store_distributions(form(data), matrix, of)
    alive = np.ones(6, bool)
    for _ in range(steps):
        if rng.random() < 0.5:
            new, shares = some(int(rng.integers(1, 5)))
            data, matrix = np.concatenate([data, new]), np.concatenate([matrix, shares])
            store, alive = store.append(form(new), shares), np.concatenate([alive, np.ones(len(new), bool)])
        else:
            rows = rng.choice(len(alive), size=min(2, len(alive)), replace=False)
            store = store.without(rows)
            alive[rows] = False
    expected = store_distributions(form(data[alive]), matrix[alive], of)
    queries = form(rng.normal(size=(4, 3)))
    np.testing.assert_allclose(class_sums(store, queries).values, class_sums(expected, queries).values, rtol=1e-10)
    if alive.any():  # rows keep their numbers
        row = np.flatnonzero(alive)[-1:]
        matrix[row] = 0
        left = store_distributions(form(data[alive]), matrix[alive], of)
        found = class_sums(store, queries, leave_out=np.repeat(row, 4)).values
        np.testing.assert_allclose(found, class_sums(left, queries).values, rtol=1e-10)


def test_appending_changes_no_part_and_removing_only_those_that_hold_the_rows():
    store = store_labels(X, Y, covariances(SHARED))
    longer = store.append(X[:4], np.eye(3)[Y[:4]])
    assert longer.groups[0].parts[0] is store.groups[0].parts[0]
    assert longer.n_rows == 34
    shorter = longer.without(np.array([31]))
    assert shorter.groups[0].parts[0] is store.groups[0].parts[0]
    assert len(shorter.groups[0].parts[1].rows) == 3
    assert len(longer.without(np.arange(30, 34)).groups[0].parts) == 1

"""Sums over near points and a sample of the others: cells hold every point once, and sums are those of all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.gaussian_process.kernels import RBF

from coxfield import threads
from coxfield.engine.cells import Cells, has_cells, near_log_others, sampled_rows
from coxfield.engine.store import Labelled
from coxfield.kernels.mixture import log_densities
from coxfield.selection.mixture.bank import bank_of
from tolerances import assert_close

N = 600


def ladder_points(X):
    y = np.arange(X.shape[0]) % 2
    return bank_of(RBF(1.0), Labelled(X, y, 2), None)[0].bind(X)


@pytest.fixture(scope="module")
def points():
    return ladder_points(np.random.default_rng(0).normal(size=(N, 3)))


def cells_of(points, size=40, near=3, far=100, seed=0):
    y = np.arange(len(points)) % 2
    return Cells.of(points.points, size, near, sampled_rows(y, far, np.random.default_rng(seed)))


@settings(deadline=None, max_examples=30)
@given(
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    count=st.integers(1, 500),
    least=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_sample_within_classes_stands_for_all_rows(sizes, count, least, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    rows, stands_for = sampled_rows(y, count, np.random.default_rng(seed), least)
    assert (np.diff(rows) > 0).all()
    np.testing.assert_allclose(np.bincount(y[rows], stands_for, minlength=len(sizes)), sizes)
    drawn = np.bincount(y[rows], minlength=len(sizes))
    assert (drawn >= np.minimum(sizes, least)).all()
    assert (stands_for >= 1).all()


@pytest.mark.parametrize("change", [np.array, np.rint, lambda X: X * 1e150], ids=["all differ", "ties", "far"])
def test_cells_hold_every_point_once_and_are_small(change):
    X = change(np.random.default_rng(1).normal(size=(N, 3)))
    cells = cells_of(ladder_points(X))
    np.testing.assert_array_equal(np.sort(np.concatenate([cells.members(k) for k in range(len(cells))])), np.arange(N))
    sizes = np.diff(cells.starts)
    assert sizes.max() <= 40
    assert sizes.min() >= 20  # a cell is cut in halves until it is small enough


def test_the_own_cell_of_a_point_is_near_and_so_are_those_with_the_nearest_centres(points):
    cells = cells_of(points)
    near = cells.near(points.points, cells.cell_of)
    assert (near == cells.cell_of[:, None]).any(axis=1).all()
    assert (np.diff(np.sort(near, axis=1), axis=1) > 0).all()
    d2 = np.square(points.points.points.coordinates[:, None] - cells.centres).sum(axis=2)
    d2[np.arange(N), cells.cell_of] = -1
    np.testing.assert_array_equal(np.sort(near, axis=1), np.sort(np.argsort(d2, axis=1)[:, :3], axis=1))


def test_densities_are_those_of_near_points_and_of_others_by_what_they_stand_for(points):
    cells, counts = cells_of(points), np.random.default_rng(2).uniform(0.5, 2, N)
    is_near = (cells.near(points.points, cells.cell_of)[..., None] == cells.cell_of).any(axis=1)
    stands_for = np.zeros(N)
    stands_for[cells.far] = cells.far_counts
    weights = np.where(is_near, 1, stands_for) * counts * (1 - np.eye(N))
    d2 = np.square(points.points.points.coordinates[:, None] - points.points.points.coordinates).sum(axis=2)
    expected = [np.log((weights * np.exp(-d2 / (2 * factor**2))).sum(axis=1)) for factor in points.ladder.factors]
    found = near_log_others(points, np.arange(N), points, counts, cells)
    long = points.ladder.factors > 0.1  # of shorter ones nothing is left where the nearest points are far
    condition = points.points.points.farthest / 0.1**2  # exponents are rounded at the size of |z|^2
    expected = np.array(expected)[long]
    assert_close(found[long], expected, terms=N, scale=np.maximum(1, np.abs(expected)), condition=condition)


def test_with_all_points_near_or_in_the_sample_densities_are_exact(points):
    counts = np.random.default_rng(2).uniform(0.5, 2, N)
    exact = log_densities(points, points, counts, np.arange(N))
    every = np.arange(N)
    for cells in (cells_of(points, near=N), cells_of(points, far=N)):
        np.testing.assert_allclose(near_log_others(points, every, points, counts, cells), exact, atol=1e-12)


def test_points_that_are_not_in_cells_have_densities_too(points):
    rows = np.arange(0, N, 3)
    among, counts = points[rows], np.ones(len(rows))
    own = np.where(np.arange(N) % 3 == 0, np.arange(N) // 3, -1)
    cells = Cells.of(among.points, 20, len(rows), sampled_rows(rows % 2, 10, np.random.default_rng(0)))
    found = near_log_others(points, own, among, counts, cells)
    np.testing.assert_allclose(found, log_densities(points, among, counts, own), atol=1e-12)


def test_densities_are_unbiased_whatever_is_near(points):
    exact = np.exp(log_densities(points, points, None, np.arange(N)))
    draws = np.array(
        [
            np.exp(near_log_others(points, np.arange(N), points, np.ones(N), cells_of(points, near=1, seed=seed)))
            for seed in range(200)
        ]
    )
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    z = (draws.mean(axis=0) - exact) / np.where(error > 1e-12 * exact, error, np.inf)
    # Points share a sample, so their errors are alike: the mean over points is bounded by the largest standard error.
    assert abs(z.mean()) < 4
    assert np.mean(np.abs(z) > 4) < 0.01


def test_threads_do_not_change_the_densities(points):
    cells, every = cells_of(points, size=10), np.arange(N)
    with threads.use(1):
        one = near_log_others(points, every, points, np.ones(N), cells)
    with threads.use(2):
        np.testing.assert_array_equal(near_log_others(points, every, points, np.ones(N), cells), one)


def test_sparse_points_have_no_cells(points):
    assert has_cells(points)
    assert not has_cells(ladder_points(csr_array(np.random.default_rng(0).normal(size=(50, 3)))))

"""The length scales that a selection tries, and the folds by which it may compare them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF

from coxfield.engine.store import Labelled
from coxfield.kernels.protocol import PerClass
from coxfield.selection import grid
from coxfield.selection.grid import folds, hide
from tolerances import assert_close

RNG = np.random.default_rng(2)
X = RNG.normal([0.0, 5.0, 0.0], 1.0, size=(40, 3))
MEAN_SQUARE = np.mean([np.sum((a - b) ** 2) for a in X for b in X])


def squared(*arguments):
    return grid.typical_distance(*arguments) ** 2


def squared_of_classes(*arguments):
    return grid.class_distance(*arguments) ** 2


def test_the_typical_distance_is_the_root_mean_square_distance_of_all_pairs():
    assert_close(squared(X), MEAN_SQUARE, terms=40**2)
    scale = np.array([0.5, 2.0, 1.0])
    pairs = np.mean([np.sum(((a - b) / scale) ** 2) for a in X for b in X])
    assert_close(squared(X, scale), pairs, terms=40**2)
    weights = RNG.integers(1, 4, size=40).astype(float)
    assert_close(squared(X, 1.0, weights), squared(np.repeat(X, weights.astype(int), axis=0)), terms=120)


def test_the_typical_distance_does_not_depend_on_order_repetition_or_storage_of_rows(monkeypatch):
    monkeypatch.setattr(grid, "ROWS", 7)
    shuffled = RNG.permutation(np.tile(np.arange(40), 3))
    assert_close(squared(X[shuffled]), MEAN_SQUARE, terms=40**2)
    assert_close(squared(X.astype(np.float32)), MEAN_SQUARE, terms=40**2, dtype=np.float32)
    # x^2 and the square of the mean nearly cancel: less than a tenth is left
    assert_close(squared(sparse.csr_array(X)), MEAN_SQUARE, terms=40**2, condition=10)


def test_kernels_per_class_see_their_own_points():
    y = np.arange(40) % 2
    kernels = PerClass.of([RBF(1.0), RBF(10.0)])
    assert_close(squared_of_classes(Labelled(X, y, 2), kernels), squared(X[y == 0]), terms=40)
    weights = RNG.uniform(0.5, 2, size=40)
    alone = squared(X[y == 0], 1.0, weights[y == 0])
    assert_close(squared_of_classes(Labelled(X, y, 2, weights), kernels), alone, terms=40)
    shared = PerClass.shared_by(RBF(2.0), 2)
    assert_close(squared_of_classes(Labelled(X, y, 2), shared), MEAN_SQUARE / 4, terms=40**2)


def test_the_default_grid_falls_by_the_square_root_of_two():
    np.testing.assert_allclose(grid.default_factors(3.0), 6 * 2 ** (-np.arange(24) / 2))


def test_finer_factors_lie_between_the_neighbours_in_pairs_of_ratio_sqrt_2():
    finer = grid.finer_factors(3.0, [RBF(1.0)], bounded=False)
    np.testing.assert_allclose(np.sort(finer) / 3, 2 ** (np.array([-3, -2, -1, 1, 2, 3]) / 8))
    np.testing.assert_allclose(finer[::2] / finer[1::2], np.sqrt(2))


def test_bounds_of_the_kernel_cut_the_grid():
    factors = grid.candidate_factors([RBF(2.0, (0.5, 4.0))], 2.0, None, bounded=True)
    assert 0.25 <= factors.min() < factors.max() <= 2


def test_given_length_scales_are_tried_longest_first():
    assert grid.candidate_factors([RBF(1.0)], 4.0, [1, 3, 2], bounded=True).tolist() == [3, 2, 1]


def test_wrong_length_scales_are_refused():
    with pytest.raises(ValueError, match="no length scale to choose: RBF"):
        grid.candidate_factors([RBF(1.0, "fixed")], 4.0, None, bounded=True)
    with pytest.raises(ValueError, match=r"positive finite numbers, got \[1, -2\]"):
        grid.candidate_factors([RBF(1.0)], 4.0, [1, -2], bounded=True)
    with pytest.raises(ValueError, match="widen length_scale_bounds"):
        grid.candidate_factors([RBF(1.0, (1e3, 1e4))], 4.0, None, bounded=True)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("value", [1.0, 0.1, 1e6 / 3, 0.0])
@pytest.mark.parametrize("n", [2, 3, 7])
def test_points_that_are_all_the_same_have_no_length_scale(form, value, n):
    same = form(np.full((n, 2), value))
    assert squared(same) == 0
    assert squared(same, 1.0, np.linspace(0.3, 1.1, n)) == 0
    with pytest.raises(ValueError, match="all points are the same"):
        grid.default_factors(grid.typical_distance(same))


def test_a_factor_of_one_is_the_length_scale_if_there_is_only_one():
    assert grid.length_scale_of([3.0 * RBF(2.0)]) == 2.0
    assert grid.length_scale_of([RBF([1.0, 2.0])]) == 1.0
    assert grid.length_scale_of([RBF(2.0), RBF(3.0)]) == 1.0


@pytest.mark.parametrize("exponent", [-1000, -600, -300, 300, 600, 1000])
def test_the_typical_distance_follows_any_unit_exactly(exponent):
    unit = 2.0**exponent
    assert grid.typical_distance(unit * X) == unit * grid.typical_distance(X)
    assert grid.typical_distance(unit * X, unit) == grid.typical_distance(X)
    assert grid.typical_distance(X, 1 / unit) == unit * grid.typical_distance(X)


def test_features_of_very_different_sizes_count_in_units_of_their_length_scales():
    sizes = np.array([1e300, 1.0, 1e-200])
    assert_close(grid.typical_distance(sizes * X, sizes), grid.typical_distance(X), terms=40)
    # In one unit, only the largest feature counts.
    assert_close(grid.typical_distance(sizes * X), 1e300 * grid.typical_distance(X[:, :1]), terms=40)


@pytest.mark.parametrize("size", [1.5e308, 1e-320])
def test_at_the_ends_of_all_numbers_the_grid_has_only_numbers(size):
    factors = grid.default_factors(grid.typical_distance(size * np.array([[0.0], [1.0], [-1.0]])))
    assert np.isfinite(factors).all()
    assert (factors > 0).all()
    assert (np.diff(factors) < 0).all()


def test_folds_partition_the_labelled_rows_and_share_out_the_classes():
    codes = np.array([0, 1, -1, 0, 0, 1, -1, 1, 0, 1, 2, 2])
    hidden = folds(codes, 2)
    assert sorted(np.concatenate(hidden)) == [0, 1, 3, 4, 5, 7, 8, 9, 10, 11]
    for rows in hidden:
        assert np.bincount(codes[rows]).tolist() == [2, 2, 1]
    assert [len(rows) for rows in folds(codes, 50)] == [1] * 10


def test_hiding_does_not_change_the_given_labels():
    codes = np.array([0, 1, -1])
    assert hide(codes, np.array([0])).tolist() == [-1, 1, -1]
    assert codes.tolist() == [0, 1, -1]

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern

from coxfield.datasets import make_circles
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from coxfield.selection import few_labels as validation
from coxfield.selection.grid import AllPoints
from tolerances import assert_close

ALIKE = 2.0 * RBF(1.0)
TWO = [1.5 * RBF(1.0), Matern(1.0, nu=0.5)]
THREE = [1.5 * RBF(1.0), Matern(1.0, nu=0.5), 0.8 * RBF(2.0)]


def test_neighbours_are_couplings_in_units_of_the_strongest():
    X = np.random.default_rng(0).normal(size=(15, 3))
    for kernel in (RBF(0.7), 3.0 * Matern(0.5, nu=1.5), RBF(0.5) + RBF(1.0)):
        expected = []
        for factor in (2.0, 0.5):
            scaled = kernel.clone_with_theta(kernel.theta + np.log(factor) * is_length(kernel))
            values = scaled(X) - np.diag(scaled.diag(X))
            expected.append(np.median([row.sum() / row.max() for row in values]))
        found = validation.neighbours(X, kernel, np.array([2.0, 0.5]))
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_point_with_and_a_point_without_couplings():
    X = np.array([[2.0], [2.0], [-1.0]])
    with np.errstate(all="raise"):
        found = validation.neighbours(X, ExpSineSquared(1.0, 2.0), np.array([1e-3, 1e-4]))
    np.testing.assert_array_equal(found, [1.0, 1.0])  # the twins have each other; the third point has nobody


def is_length(kernel):
    return np.array([parameter.name.endswith("length_scale") for parameter in kernel.hyperparameters])


def test_candidates_follow_the_units_and_give_the_median_point_a_few_neighbours():
    X, _ = make_circles(2, random_state=0)
    factors = validation.marginal_factors(X, PerClass.of([RBF(1.0)] * 2), None, bounded=False)
    count = validation.neighbours(X, RBF(1.0), factors)
    assert len(factors) >= 3
    assert (np.diff(factors) < 0).all()
    assert ((count >= validation.FEWEST_NEIGHBOURS) & (count <= validation.MOST_NEIGHBOURS)).all()
    scaled = validation.marginal_factors(1000 * X, PerClass.of([RBF(1.0)] * 2), None, bounded=False)
    np.testing.assert_allclose(scaled, 1000 * factors)


def test_without_any_neighbour_there_is_still_a_candidate():
    far = np.float32(3.4e38) * np.array([[1, -1], [-1, 1], [1, 1]], np.float32)
    kernels = PerClass.of([RBF(1e-98, (1e-300, 1e300))] * 2)
    with np.errstate(divide="raise", invalid="raise"):
        assert len(validation.marginal_factors(far, kernels, None, bounded=True)) == 1


def test_candidates_may_be_given_and_fixed_length_scales_stay():
    X, _ = make_circles(2, random_state=0)
    given = validation.marginal_factors(X, PerClass.of([RBF(1.0)] * 2), [0.1, 7.0], bounded=False)
    assert given.tolist() == [7.0, 0.1]
    assert validation.marginal_factors(X, PerClass.of([RBF(1.0, "fixed")] * 2), None, bounded=True).tolist() == [1.0]
    kernels = PerClass.of([ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed")] * 2)
    with pytest.raises(ValueError, match="no length scale to choose"):
        validation.marginal_factors(X, kernels, None, bounded=True)


def test_data_without_such_a_length_scale_still_have_a_candidate():
    X = np.repeat(np.arange(2.0), 200)[:, None]  # a hundred twins are more than 64 neighbours at any length scale
    assert len(validation.marginal_factors(X, PerClass.of([RBF(1.0)] * 2), None, bounded=False)) == 1


def test_variances_set_the_total_coupling_of_the_median_point():
    X, _ = make_circles(2, random_state=0)
    for kernels in ([3.0 * RBF(0.5)] * 2, [RBF(0.5), 2.0 * Matern(0.4)]):
        of = PerClass.of(kernels).map(lambda kernel: recognise(kernel, 2))
        for variance in validation.variances(AllPoints.at(X, of, np.zeros(2), 1.0)):
            scaled = [variance * (kernel(X).sum(axis=1) - kernel.diag(X)) for kernel in kernels]
            assert np.abs(np.median(np.mean(scaled, axis=0)) / validation.TEMPERATURES - 1).min() < 1e-9


@pytest.mark.parametrize("kernels", [[RBF(1.0)] * 2, TWO, [ConstantKernel(1.0, "fixed") * RBF(1.0)] * 2])
def test_the_path_tries_every_cell_and_chooses_the_least_loss(kernels):
    X, truth = make_circles(2, random_state=0)
    X, truth = X[::9], truth[::9]
    codes = np.where(np.arange(len(X)) % 5 == 0, truth, -1)
    told = []
    factors = np.array([2.0, 0.8])
    kernels = PerClass.of(kernels)
    path = validation.marginal_path(X, codes, kernels, np.zeros(2), factors, n_folds=3, seed=1, done=told.append)
    columns = path.table(0.5)
    assert len(path) == validation.n_cells(kernels, 2)
    assert_close(sum(told), len(path), terms=len(told))
    assert columns["chosen"].sum() == 1
    assert columns["cv_log_loss"][columns["chosen"]] == columns["cv_log_loss"][~columns["trivial"]].min()
    assert set(columns["length_scale"]) == {1.0, 0.4}
    assert ((columns["cv_error"] >= 0) & (columns["cv_error"] <= 1)).all()
    again = validation.marginal_path(X, codes, kernels, np.zeros(2), factors, n_folds=3, seed=1)
    for name in path.columns:
        np.testing.assert_array_equal(again[name], path[name])


def test_a_fixed_variance_stays():
    X, truth = make_circles(2, random_state=0)
    codes = np.where(np.arange(len(X)) % 5 == 0, truth, -1)[::9]
    kernels = PerClass.of([ConstantKernel(3.0, "fixed") * RBF(0.5)] * 2)
    path = validation.marginal_path(X[::9], codes, kernels, np.zeros(2), np.ones(1), n_folds=2)
    assert path["variance"].tolist() == [1.0]


def test_strong_couplings_let_one_class_take_all():
    X, truth = make_circles(2, random_state=0)
    X, truth = X[::6], truth[::6]
    codes = np.where(np.isin(np.arange(len(X)), [0, 1, 2, len(X) - 1]), truth, -1)
    path = validation.marginal_path(X, codes, PerClass.of([RBF(1.0)] * 2), np.zeros(2), np.array([30.0]))
    trivial = path["trivial"]
    assert trivial[-1]
    assert not trivial[0]


def test_couplings_that_mislead_lose():
    # Pairs of opposite classes: the nearest neighbour of a point has the other class.
    X = np.repeat(10.0 * np.arange(6), 2)[:, None] + np.tile([0.0, 0.1], 6)[:, None]
    codes = np.tile([0, 1], 6)
    codes[[4, 5]] = -1
    path = validation.marginal_path(X, codes, PerClass.of([RBF(1.0)] * 2), np.zeros(2), np.ones(1))
    losses = path["cv_log_loss"]
    assert path.best == 0
    assert losses[-1] > losses[0] + 1

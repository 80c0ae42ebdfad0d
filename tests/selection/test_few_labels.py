import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from coxfield.datasets import make_circles
from coxfield.engine.store import Labelled
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from coxfield.selection import loo
from coxfield.selection.few_labels import Choice, best_variance, cv_path, marginal_path
from coxfield.selection.grid import default_factors, typical_distance
from reference import kernel_value
from tolerances import assert_close

X, TRUTH = make_circles(2, 20, random_state=0)
CODES = np.where(np.arange(len(X)) % 4 == 0, TRUTH, -1)
ZERO = np.zeros(2)
SHARED = PerClass.shared_by(RBF(1.0), 2)
OWN = PerClass.of([RBF(0.5), 2.0 * Matern(1.0)])


def choice(length_scales=None, *, bounded=False, verbose=0):
    return Choice(X, CODES, ZERO, length_scales, bounded, 3, verbose)


def covariances(kernels):
    return kernels.map(lambda kernel: recognise(kernel, 2))


@pytest.mark.parametrize("kernels", [SHARED, OWN], ids=["shared", "per class"])
def test_the_labelling_chooses_the_best_of_its_path(kernels):
    chosen, path = choice([1.5, 0.8, 0.3]).for_labelling(kernels, 1e-9)
    again = cv_path(X, CODES, covariances(kernels), ZERO, np.array([1.5, 0.8, 0.3]), n_folds=3)
    for name in again.columns:
        np.testing.assert_array_equal(path[name], again[name])
    for given, found in zip(kernels, chosen, strict=True):
        lengths = [
            (kernel if isinstance(kernel, RBF | Matern) else kernel.k2).length_scale for kernel in (given, found)
        ]
        assert_close(lengths[1], lengths[0] * path.chosen("factor"))


def test_the_default_grid_of_a_labelling_suits_all_points():
    _, path = choice().for_labelling(SHARED, 1e-9)
    assert_close(path["factor"], default_factors(typical_distance(X)))


def test_bounds_cut_the_grid_if_they_are_to_count():
    kernels = PerClass.shared_by(RBF(1.0, (0.5, 2.0)), 2)
    _, path = choice(bounded=True).for_labelling(kernels, 1e-9)
    assert 0.5 <= path["factor"].min() <= path["factor"].max() <= 2.0
    _, path = choice(bounded=False).for_labelling(kernels, 1e-9)
    assert path["factor"].max() > 2.0


def test_marginals_choose_length_scale_and_variance_together():
    chosen, path = choice([0.8, 0.4]).for_marginals(SHARED, seed=1)
    again = marginal_path(X, CODES, SHARED, ZERO, np.array([0.8, 0.4]), n_folds=3, seed=1)
    np.testing.assert_array_equal(path["cv_log_loss"], again["cv_log_loss"])
    assert_close(chosen[0].k1.constant_value, path.chosen("variance"))
    assert_close(chosen[0].k2.length_scale, path.chosen("factor"))


def test_a_variance_that_is_fixed_stays():
    kernels = PerClass.shared_by(ConstantKernel(0.7, "fixed") * RBF(1.0), 2)
    chosen, path = choice([0.5]).for_marginals(kernels, seed=0)
    assert path["variance"].tolist() == [1.0]
    assert chosen[0].k1.constant_value == 0.7
    assert_close(chosen[0].k2.length_scale, 0.5)


@pytest.mark.parametrize("mean", [[0.0, 0.0], [0.3, -0.2]])
def test_the_best_variance_is_that_of_least_leave_one_out_loss(mean):
    """Class sums by double loop; the loss has the uniform label mixed in and rises on both sides of its minimum."""
    rng = np.random.default_rng(0)
    y, rows = np.arange(14) % 2, np.array([0, 3, 6, 9, 11])
    points = rng.normal(size=(14, 2)) + 1.5 * y[:, None]
    sums = np.zeros((len(rows), 2))
    for j, row in enumerate(rows):
        for other in range(14):
            if other != row:
                sums[j, y[other]] += kernel_value(RBF(1.0), points[row], points[other])

    def loss(variance):
        log_p = log_softmax(np.array(mean) + variance * sums, axis=1)
        return -loo.mixed(log_p, y[rows], len(rows)).mean()

    found = best_variance(Labelled(points, y, 2), SHARED, np.array(mean), rows)
    # The root is found to 1e-4 of log v.
    assert loss(found) < min(loss(found * np.exp(step)) for step in (-0.01, 0.01, -1.0, 1.0))


def test_progress_is_told(capsys):
    choice([1.0], verbose=1).for_labelling(SHARED, 1e-9)
    assert "cross validation, 1 length scales" in capsys.readouterr().err
    choice([1.0], verbose=1).for_marginals(SHARED, 0)
    assert "cross validation of marginals, 1 length scales" in capsys.readouterr().err

"""Leave-one-out of the permanental classifier against refits, and the path of length scales."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.kernels.recognise import recognise
from coxfield.permanents.cycle_weights import TOLERANCE
from coxfield.permanents.kernels import ProductKernel
from coxfield.permanents.leave_one_out import loo_log_ratios, loo_path
from coxfield.permanents.ratios import fit_class, log_ratios
from tolerances import assert_close

RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(9, 2)), np.arange(9) % 2
ALPHA = np.array([0.7, 1.6])


def kernels(length_scale=0.8):
    return [ProductKernel(recognise(kernel, 2)) for kernel in (RBF(length_scale), 0.5 * RBF(0.6 * length_scale))]


def refitted(left_out, cycles):
    """Log ratios of one point from processes that were fitted without it."""
    kept = np.arange(9) != left_out
    parts = [(kernel, X[kept & (c == Y)], ALPHA[c]) for c, kernel in enumerate(kernels())]
    processes = [fit_class(*part, "cyclic", cycles=cycles, n_samples=0, rng=None) for part in parts]
    return log_ratios(processes, X[left_out : left_out + 1]).values[0]


def test_two_cycles_are_refits():
    found = loo_log_ratios(X, Y, kernels(), ALPHA, 2).values
    # Ratios are sums over at most five points. Distances come from products of coordinates.
    condition = 4 * np.square(X / 0.48).sum(axis=1).max()
    for i in range(9):
        assert_close(np.exp(found[i]), np.exp(refitted(i, 2)), terms=5, condition=condition)


@pytest.mark.parametrize("cycles", [3, 4])
def test_to_other_classes_a_point_is_new(cycles):
    found = loo_log_ratios(X, Y, kernels(), ALPHA, cycles).values
    for i in range(9):
        # The same equations, solved to within TOLERANCE from the same start.
        np.testing.assert_allclose(found[i, 1 - Y[i]], refitted(i, cycles)[1 - Y[i]], rtol=0, atol=10 * TOLERANCE)
        assert abs(found[i, Y[i]] - refitted(i, cycles)[Y[i]]) < 0.1


def test_the_path_has_the_losses_of_each_length_scale_and_ends_where_there_is_none():
    tried = []

    def at(factor):
        tried.append(factor)
        return kernels(factor) if factor > 0.3 else None

    path = loo_path(X, Y, ALPHA, 4, np.array([1.6, 0.8, 0.2, 0.1]), at, ("loo_error", "loo_log_loss"))
    assert tried == [1.6, 0.8, 0.2]
    assert path["factor"].tolist() == [1.6, 0.8]
    assert path["variance"].tolist() == [1.0, 1.0]
    for k, factor in enumerate(path["factor"]):
        scores = loo_log_ratios(X, Y, kernels(factor), ALPHA, 4)
        assert path["loo_error"][k] == np.mean(scores.decisions != Y)
        naive = -np.log([p[y] / p.sum() for p, y in zip(np.exp(scores.values), Y, strict=True)]).mean()
        assert_close(path["loo_log_loss"][k], naive, terms=9, scale=1.0, condition=10)


def test_classes_are_told_of_by_their_size():
    told = []
    loo_log_ratios(X, Y, kernels(), ALPHA, 3, told.append)
    assert told == pytest.approx([5 / 9, 4 / 9])

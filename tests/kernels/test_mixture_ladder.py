"""Members on one representation, and densities."""

import numpy as np

from coxfield.kernels.mixture_ladder import log_densities
from mixtures import ladder, problem

DATA = problem(weighted=True)


def test_densities_are_sums_over_reference_points():
    part = ladder()
    points = part.bind(DATA.X)
    found = log_densities(points[:4], points, DATA.weights)
    for f in range(3):
        np.testing.assert_allclose(found[f], np.log(part.kernel(f)(DATA.X[:4], DATA.X) @ DATA.weights), rtol=1e-10)


def test_a_reference_point_may_be_omitted():
    part = ladder()
    points = part.bind(DATA.X)
    found = log_densities(points[:2], points, None, np.array([0, -1]))
    k = part.kernel(0)(DATA.X[:2], DATA.X)
    np.testing.assert_allclose(found[0], np.log([k[0, 1:].sum(), k[1].sum()]), rtol=1e-10)


def test_pruning_keeps_what_has_a_weight():
    pruned = ladder(weights=[[0, 0.5], [0, 0], [0, 2.0]]).pruned()
    assert pruned.weights.tolist() == [[0.5], [2.0]]
    assert (pruned.factors.tolist(), pruned.alphas.tolist()) == ([1.0, 0.4], [0.75])

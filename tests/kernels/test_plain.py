"""What most bound points do alike."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF, DotProduct

from coxfield.engine.weights import Segments
from coxfield.kernels.ladder import remove_floor
from coxfield.kernels.protocol import values
from coxfield.kernels.recognise import recognise

X = np.random.default_rng(0).normal(size=(7, 2))


def test_a_point_that_is_left_out_leaves_no_trace():
    points = recognise(RBF(1.0), 2).bind(X)
    assert points.left_out(np.arange(7)) is points


def test_one_layer_of_sums():
    for kernel in (0.5 * RBF(1.0), RBF(1.0) + DotProduct()):
        points = recognise(kernel, 2).bind(X)
        summing = points.summing(points, Segments(np.array([0, 3]), np.arange(1.0, 8.0)))
        sums = np.zeros((summing.layers, 7, 2))
        own = np.arange(7)
        for part in (slice(0, 2), slice(2, 7)):
            summing.add(slice(0, 7), part, own, np.empty((7, 7)), sums)
        expected = kernel(X) * (1 - np.eye(7)) * np.arange(1.0, 8.0)
        expected = np.stack([expected[:, :3].sum(axis=1), expected[:, 3:].sum(axis=1)], axis=1)
        np.testing.assert_allclose(points.unit * summing.total(sums), expected, rtol=1e-10)


def test_rungs_are_rescaled_tiles_and_logarithms():
    factors = np.array([2.0, 1.0, 0.3])
    for kernel in (0.5 * RBF(1.0), RBF(1.0) * RBF(2.0)):
        points = recognise(kernel, 2).bind(X)
        logs = list(points.log_tiles_at(points, factors))
        for k, tile in enumerate(points.tiles_at(points, factors)):
            scaled = points.rescaled(factors[k])
            np.testing.assert_allclose(tile * points.unit, values(scaled, scaled), rtol=1e-10)
            np.testing.assert_allclose(np.exp(logs[k]), values(scaled, scaled), rtol=1e-10)


def test_what_the_floor_has_added_is_subtracted_again():
    sums = np.array([[5.0, 0.75]])
    remove_floor(sums, 0.25, np.array([4.0, 2.0]))
    np.testing.assert_array_equal(sums, [[4.0, 0.0]])

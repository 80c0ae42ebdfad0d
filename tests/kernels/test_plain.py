"""What most bound points do alike."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, DotProduct

from coxfield.engine.class_sums import log_sums
from coxfield.engine.weights import Segments
from coxfield.kernels.protocol import LogSums, values
from coxfield.kernels.radial import recognise

X = np.random.default_rng(0).normal(size=(7, 2))


def test_a_point_that_is_left_out_leaves_no_trace():
    points = recognise(RBF(1.0), 2).bind(X)
    assert points.left_out(np.arange(7)) is points


def test_one_layer_of_sums():
    for kernel in (0.5 * RBF(1.0), RBF(1.0) + DotProduct()):
        points = recognise(kernel, 2).bind(X)
        (path,) = points.paths(points, Segments(np.array([0, 3]), np.arange(1.0, 8.0)))
        found = points.total([log_sums(path, np.arange(7))])
        expected = kernel(X) * (1 - np.eye(7)) * np.arange(1.0, 8.0)
        expected = np.stack([expected[:, :3].sum(axis=1), expected[:, 3:].sum(axis=1)], axis=1)
        np.testing.assert_allclose(found.values[0, 0], expected, rtol=1e-10)


@given(st.integers(0, 2**20), st.floats(-2000, 500))
def test_sums_over_shards_add_whatever_their_size(seed, far):
    """Each sum is relative to its own largest term; the whole is that of all terms at once."""
    rng = np.random.default_rng(seed)
    logs = rng.normal(size=(2, 5)) * [[1.0], [30.0]] + [[0.0], [far]]
    parts = [
        LogSums(np.full((1, 1, 1), each.max()), np.exp(each - each.max()).sum().reshape(1, 1, 1, 1)) for each in logs
    ]
    both = parts[0] + parts[1]
    np.testing.assert_allclose(both.logs.item(), np.logaddexp.reduce(logs.ravel()), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(both.logs, (parts[1] + parts[0]).logs)


def test_tiles_at_several_length_scales_are_rescaled_tiles_and_logarithms():
    factors = np.array([2.0, 1.0, 0.3])
    for kernel in (0.5 * RBF(1.0), RBF(1.0) * RBF(2.0)):
        points = recognise(kernel, 2).bind(X)
        logs = list(points.log_tiles_at(points, factors))
        for k, tile in enumerate(points.tiles_at(points, factors)):
            scaled = points.rescaled(factors[k])
            np.testing.assert_allclose(tile, values(scaled, scaled), rtol=1e-10)
            np.testing.assert_allclose(np.exp(logs[k]), values(scaled, scaled), rtol=1e-10)

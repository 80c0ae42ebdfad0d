import numpy as np
import pytest

from coxfield.selection.learning.priors import NormalPrior, default_prior
from derivatives import difference


def test_prior_is_normal_and_its_gradient_the_difference():
    prior = NormalPrior(np.array([1.0, 2.0]), np.array([0.5, 3.0]))
    at = np.array([0.3, 4.0])
    assert prior.log_density(at) == pytest.approx(-0.5 * ((0.7 / 0.5) ** 2 + (2 / 3) ** 2))
    expected = [difference(lambda h, k=k: prior.log_density(at + h * (np.arange(2) == k))) for k in range(2)]
    np.testing.assert_allclose(prior.gradient(at), expected)


def test_length_scales_per_feature_share_the_freedom_of_one():
    kinds = [("constant_value", 1), ("length_scale", 16), ("mean", 2)]
    prior = default_prior(np.arange(19.0), kinds)
    together = np.sqrt(np.sum(prior.deviation[1:17] ** 2))
    assert together == pytest.approx(default_prior(np.arange(3.0), [("length_scale", 1), ("mean", 2)]).deviation[0])
    assert prior.centre.tolist() == [0, *range(1, 19)]

import numpy as np
import pytest

from coxfield.selection.pseudo_likelihood import DEVIATION, NormalPrior, default_prior
from derivatives import difference
from tolerances import assert_close


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


def test_at_the_centre_nothing_pulls_and_a_deviation_away_costs_half_a_nat():
    prior = default_prior(np.array([0.0, 2.0, 0.5, -0.5]), [("constant_value", 1), ("length_scale", 1), ("mean", 2)])
    assert prior.log_density(prior.centre) == 0
    np.testing.assert_array_equal(prior.gradient(prior.centre), 0)
    for k in range(4):
        away = prior.centre + prior.deviation * (np.arange(4) == k)
        assert_close(prior.log_density(away), -0.5, terms=4)


def test_constants_are_centred_at_one_wherever_learning_starts():
    for start in (-20.0, 0.0, 30.0):
        prior = default_prior(np.array([start, start]), [("constant_value", 1), ("alpha", 1)])
        assert prior.centre.tolist() == [0.0, start]
        assert prior.deviation.tolist() == [DEVIATION["constant_value"], DEVIATION[None]]


def test_means_do_not_share_their_freedom():
    deviation = default_prior(np.zeros(5), [("mean", 5)]).deviation
    assert deviation.tolist() == [DEVIATION["mean"]] * 5


def test_an_infinite_deviation_says_nothing():
    prior = NormalPrior(np.zeros(2), np.array([1.0, np.inf]))
    assert prior.log_density(np.array([0.0, 1e6])) == 0
    assert prior.gradient(np.array([0.0, 1e6]))[1] == 0

import json

import numpy as np
import pytest

from coxfield.calibration import reliability
from coxfield_paper.studies.reliability import chance_error, panels, pooled, sums

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(2), size=200)
Y = (RNG.random(200) > P[:, 0]).astype(int)


def test_a_record_of_one_partition_gives_its_reliability_back():
    judged = reliability(Y[:5], P[:5])  # few points: most bins are empty
    found = pooled([json.loads(json.dumps(sums(judged), allow_nan=False))])
    for name in ("edges", "confidence", "accuracy", "standard_error", "counts", "log_loss", "error"):
        np.testing.assert_allclose(getattr(found, name), getattr(judged, name), rtol=1e-12)


def test_two_halves_together_are_the_whole():
    whole = reliability(Y, P)
    found = pooled([sums(reliability(Y[half], P[half])) for half in (slice(80), slice(80, None))])
    for name in ("confidence", "accuracy", "standard_error", "counts", "log_loss", "error"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-12)
    assert found.expected_calibration_error == pytest.approx(whole.expected_calibration_error)


def judged(n, seed=0):
    """Reliability of probabilities that are right."""
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.5, 1, n)
    return reliability((rng.random(n) > share).astype(int), np.column_stack([share, 1 - share]))


def test_right_probabilities_have_the_calibration_error_of_chance():
    errors = [judged(500, seed).expected_calibration_error for seed in range(40)]
    chance = [chance_error(judged(500, seed)) for seed in range(40)]
    spread = np.std(errors, ddof=1) / np.sqrt(40)
    assert np.mean(errors) == pytest.approx(np.mean(chance), abs=4 * spread)


def test_each_title_has_a_panel_and_what_is_left_stays_empty():
    drawn = panels({title: {"one": judged(50, seed)} for seed, title in enumerate("abcd")})
    assert [axes.get_title() for axes in drawn.axes if axes.axison] == list("abcd")
    assert len(drawn.axes) == 6

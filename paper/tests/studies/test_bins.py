import json

import numpy as np
import pytest

from coxfield.calibration import reliability
from coxfield_paper.studies.bins import pooled, sums

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

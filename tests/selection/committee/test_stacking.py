import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from coxfield.selection.committee.stacking import PRIOR, stack
from tolerances import assert_close


def objective(weights, probabilities):
    """Log probability of the labels, plus the prior: what is to be as large as possible."""
    return np.log(weights @ probabilities).sum() + PRIOR / len(weights) * np.log(weights).sum()


@pytest.mark.parametrize(("voices", "labels"), [(2, 5), (3, 40), (3, 400)])
def test_weights_are_the_concave_optimum(voices, labels):
    p = np.random.default_rng(labels).uniform(0.01, 1, size=(voices, labels))
    p[0] **= 2
    found = stack(p)
    assert_close(found.sum(), 1.0, terms=voices)
    constraint = {"type": "eq", "fun": lambda w: w.sum() - 1}
    start = np.full(voices, 1 / voices)
    bounds = [(1e-6, 1)] * voices
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # older versions of SciPy step out of bounds, and say so
        solved = minimize(lambda w: -objective(w, p), start, bounds=bounds, constraints=constraint, tol=1e-12)
    np.testing.assert_allclose(found, solved.x, atol=1e-4)  # of the solver, where the objective is flat
    assert objective(found, p) >= objective(solved.x / solved.x.sum(), p) - 1e-7


def test_without_labels_and_with_equal_voices_all_are_equally_loud():
    assert_close(stack(np.empty((3, 0))), np.full(3, 1 / 3))
    assert_close(stack(np.tile([0.2, 0.9, 0.5], (2, 1))), np.full(2, 0.5), terms=10)


def test_a_voice_that_excludes_the_labels_is_quiet_but_heard():
    weights = stack(np.array([[0.0] * 90, [0.9] * 90]))
    assert weights[0] == pytest.approx(PRIOR / 2 / (90 + PRIOR), abs=1e-6)

"""Newton's method finds the optimum also where L-BFGS-B has not been."""

import numpy as np

from coxfield.selection.mixture.concave import TOLERANCE, polish
from mixtures import concave_problem as made


def test_it_finds_the_optimum_from_far_away():
    problem, _ = made()
    vector = polish(problem, np.concatenate([np.full(6, 20.0), np.array([3.0, -3.0, 0.0])]), 9)
    _, gradient = problem.loss(vector)
    weights = vector[:6]
    assert (weights >= 0).all()
    assert np.abs(gradient[:6][weights > 0]).max() <= TOLERANCE
    assert (gradient[:6][weights == 0] >= -TOLERANCE).all()
    assert np.abs(gradient[6:]).max() <= TOLERANCE


def test_what_is_held_stays():
    problem, _ = made()
    start = np.concatenate([np.ones(6), np.array([0.5, 0.1, -0.2])])
    vector = polish(problem, start, 6)
    np.testing.assert_array_equal(vector[6:], start[6:])
    assert problem.loss(vector)[0] < problem.loss(start)[0]


def test_members_that_are_the_same_share_their_weight():
    problem, sums = made()
    double = type(problem).of(np.concatenate([sums, sums]), problem.y, problem.counts, problem.centre)
    assert np.isclose(double.solve().loss, problem.solve().loss, rtol=1e-9)

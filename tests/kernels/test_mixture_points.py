"""Points bound to a mixture: densities, and points that are left out."""

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coxfield.kernels.mixture import Mixture
from coxfield.kernels.mixture_points import log_densities
from coxfield.kernels.whitening import Whitening
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


def test_points_are_left_out_only_of_a_covariance_that_was_learned_from_them():
    mixture = Mixture((ladder(),), DATA.X)
    foreign = mixture.bind(DATA.X)
    assert foreign.left_out(np.arange(24)) is foreign
    own = mixture.bind_reference().at(DATA.X).left_out(np.arange(24))
    k = mixture.ladders[0].kernel(0)(DATA.X)
    np.testing.assert_allclose(own.log_densities[0][0], np.log(k.sum(axis=1) - 1), rtol=1e-9)
    np.testing.assert_allclose(own[3:5].log_densities[0][0], own.log_densities[0][0][3:5], rtol=1e-12)


def test_whitening_is_undone_also_at_the_end_of_a_pipeline():
    alone = Whitening().fit(DATA.X, DATA.y)
    piped = make_pipeline(StandardScaler(), Whitening()).fit(DATA.X, DATA.y)
    mixtures = [Mixture((ladder(transform),), DATA.X) for transform in (alone, piped)]
    stretches = [mixture.bind_reference().at(DATA.X).left_out(np.arange(24)) for mixture in mixtures]
    one, other = (of.ladders[0].points.points.stretch for of in stretches)
    np.testing.assert_allclose(one.factors, other.factors, rtol=1e-8)
    assert (one.factors > 0).all()


def test_sums_that_underflow_are_taken_again():
    points = Mixture((ladder(),), DATA.X).bind_reference()
    assert points.faint(np.array([[0.0, 1e-200], [0.5, 0.0]])).tolist() == [True, False]

"""Points bound to a mixture: densities, and points that are left out."""

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import store_bound
from coxfield.kernels.mixture import Mixture
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.transforms import Whitening
from mixtures import ladder, problem

DATA = problem(weighted=True)


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


def test_logarithms_of_sums_are_right_where_every_sum_vanishes():
    data = problem()
    mixture = Mixture((ladder(),), data.X)
    store = store_bound([mixture.bind_reference()], data.y, PerClass.shared_by(mixture, 3))
    far = data.X[:5] + 300.0
    logs = mixture.bind(far).log_tile(mixture.bind(data.X))
    expected = np.stack([np.logaddexp.reduce(logs[:, data.y == c], axis=1) for c in range(3)], axis=1)
    found = class_sums(store, far)
    assert (expected < -1000).all()
    np.testing.assert_allclose(found.logs, expected, rtol=1e-10)
    assert not found.values.any()

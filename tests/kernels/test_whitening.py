"""Whitening by the covariance within classes, and what it was like without one point."""

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf_shrinkage

from coxfield.kernels.distances import Stretch
from coxfield.kernels.transforms import Whitening, ledoit_wolf
from mixtures import problem


def residuals_of(Z, y):
    return Z - np.stack([Z[y == c].mean(axis=0) for c in range(y.max() + 1)])[y]


def test_the_covariance_within_classes_becomes_the_identity_up_to_shrinkage():
    data = problem(n=300)
    whitening = Whitening().fit(data.X, data.y)
    within = residuals_of(whitening.transform(data.X), data.y)
    S = within.T @ within / 300
    rho = whitening.shrinkage_
    # (1 - rho) S + rho target is whitened to the identity, so S itself is less wide, by at most 1 / (1 - rho).
    values = np.linalg.eigvalsh(S)
    assert (values <= 1 / (1 - rho) + 1e-12).all()
    assert 0 < rho < 0.1
    assert values.mean() > 0.8


def test_the_shrinkage_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    E = rng.normal(size=(40, 6)) @ rng.normal(size=(6, 6))
    ours = ledoit_wolf(E.T @ E / 40, E, np.ones(40))
    assert ours == pytest.approx(ledoit_wolf_shrinkage(E, assume_centered=True), rel=1e-10)


def test_units_of_the_features_do_not_matter():
    data = problem(n=40)
    one = Whitening().fit(data.X, data.y).transform(data.X)
    other = Whitening().fit(data.X * [1e-9, 1.0, 1e12], data.y).transform(data.X * [1e-9, 1.0, 1e12])
    np.testing.assert_allclose(
        np.linalg.norm(one[:, None] - one, axis=2), np.linalg.norm(other[:, None] - other, axis=2), rtol=1e-9, atol=1e-9
    )


def test_a_point_of_weight_two_counts_as_two_points():
    data = problem(n=20)
    weights = np.ones(20)
    weights[3] = 2
    twice = np.append(np.arange(20), 3)
    one = Whitening().fit(data.X, data.y, weights)
    other = Whitening().fit(data.X[twice], data.y[twice])
    assert one.shrinkage_ == pytest.approx(other.shrinkage_, rel=1e-10)
    distances = [np.linalg.norm(of.transform(data.X)[:, None] - of.transform(data.X), axis=2) for of in (one, other)]
    np.testing.assert_allclose(*distances, rtol=1e-10)


@pytest.mark.parametrize(("d", "weighted"), [(3, False), (3, True), (40, False)])
def test_distances_from_a_point_that_is_left_out_are_those_of_a_whitening_without_it(d, weighted):
    data = problem(n=25, d=d, weighted=weighted)
    weights = data.counts
    whitening = Whitening().fit(data.X, data.y, data.weights)
    Z = whitening.transform(data.X)
    directions, factors = whitening.left_out(Z, np.arange(25))
    added = Stretch(directions, factors).added(Z, Z)
    for j in range(25):
        # The covariance in the whitened coordinates, with everything held but the scatter of the class of j.
        E = Z - whitening.class_means_[data.y]
        full = (E * weights[:, None]).T @ E / weights.sum()
        without = np.delete(np.arange(25), j)
        means = np.stack(
            [
                np.average(Z[without][data.y[without] == c], axis=0, weights=weights[without][data.y[without] == c])
                for c in range(3)
            ]
        )
        E = (Z - means[data.y])[without]
        left = (E * weights[without][:, None]).T @ E / weights.sum()
        sigma = np.eye(Z.shape[1]) - (1 - whitening.shrinkage_) * (full - left)
        steps = Z[j] - Z
        expected = np.einsum("td,td->t", steps, np.linalg.solve(sigma, steps.T).T)
        np.testing.assert_allclose(np.square(steps).sum(axis=1) + added[j], expected, rtol=1e-10, atol=1e-10)


def test_the_only_point_of_its_class_leaves_nothing_behind():
    X, y = np.random.default_rng(0).normal(size=(9, 2)), np.array([0] * 8 + [1])
    whitening = Whitening().fit(X, y)
    _, factors = whitening.left_out(whitening.transform(X), np.arange(9))
    assert factors[8] == 0
    assert (factors[:8] > 0).all()


def test_more_features_than_points():
    data = problem(n=12, d=200)
    Z = Whitening().fit(data.X, data.y).transform(data.X)
    assert Z.shape[1] <= 12
    assert np.isfinite(Z).all()


def test_constant_columns_are_ignored():
    data = problem(n=30)
    constant = np.column_stack([data.X, np.full(30, 1e9)])
    whitening = Whitening().fit(constant, data.y)
    constant[:, 3] += 1e-3  # new points differ in the last digit, which must not be blown up
    moved = whitening.transform(constant)
    assert np.abs(moved - whitening.transform(constant - [0, 0, 0, 1e-3])).max() < 1


def test_single_points_have_no_covariance_within_classes():
    with pytest.raises(ValueError, match="every class is a single point"):
        Whitening().fit(np.eye(3), np.arange(3))

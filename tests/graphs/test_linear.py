import numpy as np
import pytest
from scipy import sparse

from coxfield.graphs import linear
from coxfield.graphs.linear import Axes


def cosines(X, share, *, centred=True):
    """z^T (Sigma + h tr / d)^-1 z', normalised, by the direct formula."""
    Z = X - X.mean(axis=0) if centred else X
    covariance = Z.T @ Z / len(X)
    d = X.shape[1]
    products = Z @ np.linalg.inv(covariance + share * np.trace(covariance) / d * np.eye(d)) @ Z.T
    roots = np.sqrt(np.diag(products))
    return products / np.outer(roots, roots)


def found(axes, X, share):
    features = axes.features(axes.coordinates(X), share)
    return features @ features.T


@pytest.mark.parametrize("share", [0.03, 1.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_points_follow_the_direct_formula(share, dtype):
    X = np.random.default_rng(0).normal(size=(40, 6)) @ np.diag([5, 3, 1, 1, 0.3, 0.0]) + 2
    axes = Axes.of(X.astype(dtype))
    tolerance = 1e-10 if dtype is np.float64 else 2e-4  # eps times the condition number, 1 / 0.03 x 25, and a few
    np.testing.assert_allclose(found(axes, X.astype(dtype), share), cosines(X, share), atol=tolerance)


def test_leading_axes_are_enough_where_the_others_have_little_spread(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 80)) + 1e-4 * rng.normal(size=(60, 80))
    monkeypatch.setattr(linear, "MOST_AXES", 50)
    monkeypatch.setattr(linear, "LEADING", 20)
    axes = Axes.of(X)
    assert axes.axes.shape == (80, 20)
    np.testing.assert_allclose(found(axes, X, 0.1), cosines(X, 0.1), atol=1e-4)


def test_sparse_rows_are_scaled_and_not_centred():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(50, 12)) * (rng.uniform(size=(50, 12)) < 0.5) + np.eye(50, 12)
    axes = Axes.of(sparse.csr_array(X))
    assert axes.centre is None
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    # Twelve features are fewer than the leading axes, so nothing is left out.
    np.testing.assert_allclose(found(axes, sparse.csr_array(X), 0.3), cosines(unit, 0.3, centred=False), atol=1e-8)


def test_new_points_of_single_precision_meet_points_beyond_it():
    X = np.random.default_rng(0).normal(size=(20, 2)) * 2.0**200
    axes = Axes.of(X)
    with np.errstate(all="raise"):
        found = axes.coordinates(np.zeros((1, 2), np.float32))
    np.testing.assert_array_equal(found, axes.coordinates(np.zeros((1, 2))))


def test_equal_points_have_no_spread_and_no_opinion():
    X = np.full((5, 3), 2.0)
    axes = Axes.of(X)
    assert not axes.variances.any()
    assert axes.rank(0.1) == 1.0
    assert (axes.features(axes.coordinates(X), 0.1) == 0).all()


def test_effective_rank_lies_between_one_and_the_number_of_directions():
    X = np.random.default_rng(0).normal(size=(200, 4))
    axes = Axes.of(X)
    assert 3.5 < axes.rank(0.03) <= 4
    thin = Axes.of(X * [1, 1e-3, 1e-3, 1e-3])
    assert 1 <= thin.rank(0.3) < 1.1


def test_points_far_from_the_origin_or_of_extreme_size_follow_it_too():
    X = np.random.default_rng(0).integers(0, 100, size=(40, 5)).astype(float)
    for moved in (X + 2.0**30, X * 2.0**600):
        np.testing.assert_allclose(found(Axes.of(moved), moved, 0.1), cosines(X, 0.1), atol=1e-9)

"""Compression of features with heavy tails."""

import numpy as np
import pytest

from coxfield.kernels.compression import Compression, heavy_tailed

RNG = np.random.default_rng(0)


def test_it_is_linear_near_the_median_and_logarithmic_far_from_it():
    X = RNG.normal(size=(1000, 1)) + 5
    fitted = Compression().fit(X)
    near = fitted.centre_ + np.array([[-1e-3], [0.0], [1e-3]])
    np.testing.assert_allclose(fitted.transform(near), (near - fitted.centre_) / fitted.scale_, atol=1e-5)
    far = fitted.transform(fitted.centre_ + np.array([[1e6], [1e9]]))
    assert (far[1] - far[0]).item() == pytest.approx(np.log(1000), rel=1e-6)


def test_any_finite_number_is_compressed():
    fitted = Compression().fit(RNG.normal(size=(50, 2)))
    assert np.isfinite(fitted.transform(np.array([[1e307, -1e307]]))).all()


def test_columns_without_quartiles():
    X = np.zeros((40, 2))
    X[:3, 0] = [1.0, 2.0, 50.0]
    Z = Compression().fit(X).transform(X)
    assert np.isfinite(Z).all()
    assert Z[2, 0] > Z[1, 0] > Z[0, 0] > Z[3, 0] == 0
    assert not Z[:, 1].any()


def test_the_precision_of_the_points_is_kept():
    X = RNG.normal(size=(50, 2)).astype(np.float32)
    assert Compression().fit(X).transform(X).dtype == np.float32


def test_what_has_heavy_tails():
    X = RNG.normal(size=(300, 4))
    assert not heavy_tailed(X)
    assert heavy_tailed(X**5)
    assert heavy_tailed(np.column_stack([X[:, :3], np.exp(3 * X[:, 3])]))  # one feature in four
    assert not heavy_tailed(np.column_stack([X, np.exp(3 * X[:, :1])]))  # one in five
    assert not heavy_tailed(np.ones((10, 2)))

"""Features with heavy tails and outliers: compressed, as normal scores, winsorised."""

import numpy as np
import pytest
from scipy.stats import norm

from coxfield.kernels.transforms import Compression, NormalScores, winsorised

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


def test_scores_are_normal_quantiles_of_ranks_and_equal_values_share_theirs():
    X = RNG.normal(size=(200, 1)) ** 5
    scores, exact = NormalScores().fit(X).transform(X).ravel(), norm.ppf((np.arange(200) + 0.5) / 200)
    assert (np.argsort(scores) == np.argsort(X.ravel())).all()
    gaps = np.diff(exact, prepend=exact[0] - 1, append=exact[-1] + 1)
    assert (np.abs(np.sort(scores) - exact) <= 3 * np.maximum(gaps[:-1], gaps[1:])).all()
    tied = np.array([[0.0], [0.0], [1.0], [1.0]])
    np.testing.assert_allclose(NormalScores().fit(tied).transform(tied).ravel(), norm.ppf([0.25, 0.25, 0.75, 0.75]))


def test_scores_of_new_values_are_linear_between_and_beyond_the_values():
    fitted = NormalScores().fit(np.arange(101.0)[:, None])
    ends = fitted.transform(np.array([[0.0], [0.5], [1.0], [100.0], [150.0], [200.0]])).ravel()
    assert ends[0] < ends[1] < ends[2]
    assert ends[5] - ends[4] == pytest.approx(50 / (50 / 1.349))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_extreme_and_constant_features_are_finite(dtype):
    X = np.column_stack([np.full(30, 7.0), np.r_[np.zeros(29), 1e30], np.linspace(-1e-30, 1e-30, 30)]).astype(dtype)
    fitted = NormalScores().fit(X)
    assert fitted.transform(X).dtype == dtype
    far = np.finfo(dtype).max * np.array([[1, -1, 1], [-1, 1, -1]], dtype)
    assert np.isfinite(fitted.transform(far)).all()


def test_many_values_have_few_knots():
    X = RNG.normal(size=(5000, 1))
    fitted = NormalScores().fit(X)
    assert 50 < len(fitted.values_) <= 100
    assert not np.isin(X, fitted.values_).any()  # no value of a row is kept
    exact = norm.ppf((np.argsort(np.argsort(X.ravel())) + 0.5) / 5000)
    assert np.abs(fitted.transform(X).ravel() - exact).max() < 0.1


def test_ordinary_values_are_where_they_were_and_far_ones_are_moved():
    X = RNG.normal(size=(300, 3))
    assert (winsorised(X) == X).all()
    X[:2, 0] = 1e9, -np.inf
    found = winsorised(X)
    assert (found[2:] == X[2:]).all()
    low, high = np.quantile(X[:, 0], [0.25, 0.75])
    spread = (high - low) / (norm.ppf(0.75) - norm.ppf(0.25))
    np.testing.assert_allclose(found[:2, 0] - np.median(X[:, 0]), [8 * spread, -8 * spread])
    rare = (np.arange(100) < 2)[:, None] * 5.0  # two values of a hundred
    assert (winsorised(rare) == rare).all()

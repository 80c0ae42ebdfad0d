import numpy as np
import pytest
from scipy import sparse

from coxfield.kernels.distances import Units, feature_sizes, feature_units, in_units

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 4)) * [1.0, 1e250, 1e-250, 0.0]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_features_of_extreme_size_are_divided_by_powers_of_two(form):
    units = feature_units(form(X))
    assert units[[0, 3]].tolist() == [1, 1]
    scaled = in_units(form(X), units)
    dense = scaled.toarray() if sparse.issparse(scaled) else scaled
    assert (dense * units == X).all()  # no digit has changed
    assert ((feature_sizes(scaled)[:3] >= 1) & (feature_sizes(scaled)[:3] < 4)).all()


def test_sizes_are_largest_absolute_values():
    np.testing.assert_array_equal(feature_sizes(X), np.abs(X).max(axis=0))
    np.testing.assert_array_equal(feature_sizes(sparse.csr_array(X)), np.abs(X).max(axis=0))


def test_ordinary_points_stay_as_they_are():
    ordinary = X[:, [0, 3]]
    assert in_units(ordinary, feature_units(ordinary)) is ordinary


def test_single_precision_stays_and_its_limits_are_narrower():
    single = (X[:, :1] * 1e20).astype(np.float32)
    units = feature_units(single)
    assert units[0] > 1
    assert in_units(single, units).dtype == np.float32
    assert feature_units(single.astype(float)).tolist() == [1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_far_beyond_those_of_the_units_are_as_far_as_numbers_go(dtype):
    limits = np.finfo(dtype)
    scaler = Units().fit(limits.tiny * np.array([[1.0], [2.0]], dtype))
    far = limits.max / 2 * np.array([[1.0], [-1.0]], dtype)
    assert scaler.transform(far).ravel().tolist() == [limits.max, limits.min]

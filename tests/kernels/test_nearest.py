import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from coxfield.kernels import called as module
from coxfield.kernels.called import nearest
from tolerances import assert_close


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 15), count=st.integers(1, 4), seed=st.integers(0, 2**20), thin=st.booleans())
def test_neighbours_are_at_the_least_distances(n, count, seed, thin):
    count = min(count, n - 1)
    X = np.random.default_rng(seed).normal(size=(n, 3))
    found = nearest(sparse.csr_array(X) if thin else X, count)
    distances = np.array([[np.sqrt(sum((a - b) ** 2)) for b in X] for a in X])
    at = np.take_along_axis(distances, found, axis=1)
    np.fill_diagonal(distances, np.inf)
    # Squared distances made of products err by |x|^2 + |z|^2; the root multiplies that by 1 / 2d.
    sizes = 2 * np.square(X).sum(axis=1).max()
    condition = sizes / np.sort(distances, axis=1)[:, :count] ** 2
    assert_close(np.sort(at, axis=1), np.sort(distances, axis=1)[:, :count], terms=3, condition=condition)


def test_a_point_is_never_its_own_neighbour_even_among_twins():
    found = nearest(np.zeros((6, 2)), 3)
    assert found.shape == (6, 3)
    assert (found != np.arange(6)[:, None]).all()
    assert all(len(set(row)) == 3 for row in found.tolist())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_many_features_are_projected_and_near_points_still_found(form, monkeypatch):
    monkeypatch.setattr(module, "FEW", 100)
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(100, 200)), 2, axis=0) + 1e-3 * rng.normal(size=(200, 200))
    found = nearest(form(X), 1)[:, 0]
    twins = np.arange(200) ^ 1
    assert (found == twins).mean() > 0.95

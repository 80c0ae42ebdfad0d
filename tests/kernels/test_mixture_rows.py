"""A mixture over rows that come and go has the densities of one over the rows that are there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coxfield.kernels.mixture import Mixture, gain, lose
from coxfield.kernels.transforms import Whitening
from mixtures import ladder
from tolerances import assert_close

RNG = np.random.default_rng(0)
N = 24
X, LATER = RNG.normal(size=(N, 2)), RNG.normal(size=(7, 2))
COUNTS = RNG.uniform(0.5, 2.0, size=N + 7)
Y = np.arange(N) % 2


def reference(points, counts):
    """Two representations, with several length scales, powers of the density and a floor, bound to the points."""
    settings = {"factors": (2.0, 0.5), "alphas": (0.5, 1.0), "floors": (0.0, 3.0), "weights": [[1.0, 0.5], [0.0, 2.0]]}
    ladders = (ladder(d=2, **settings), ladder(Whitening().fit(X, Y), "whitened", d=2, **settings))
    return Mixture(ladders, points, counts).bind_reference()


def assert_same(found, expected, changes):
    """To rounding: what is subtracted is at most half of a density, or the density is computed again."""
    for one, other in zip(found.log_densities, expected.log_densities, strict=True):
        assert_close(np.exp(one), np.exp(other), terms=20 * N * (1 + changes))
    assert found.covariance.n_reference == expected.covariance.n_reference == len(found)
    assert found.rows.tolist() == list(range(len(found)))
    queries = RNG.normal(size=(5, 2))
    values, wanted = (bound.covariance(queries, queries) for bound in (found, expected))
    assert_close(values, wanted, terms=40 * N * N * (1 + changes))
    assert_close(found.tile(found), expected.tile(expected), terms=40 * N * N * (1 + changes))


@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=25, deadline=None)
@given(places=st.lists(st.integers(0, N - 1), max_size=N - 1, unique=True).map(np.sort))
def test_what_is_left_is_the_mixture_of_the_other_points(weighted, places):
    counts, places = COUNTS[:N] if weighted else None, places.astype(int)
    kept, old = np.setdiff1d(np.arange(N), places), reference(X, counts)
    left = lose(old, places, X[kept], counts)
    assert_same(left, reference(X[kept], None if counts is None else counts[kept]), len(places))
    assert old.covariance.n_reference == N  # somebody may hold it


@pytest.mark.parametrize("weighted", [False, True])
def test_points_that_arrive_add_their_terms(weighted):
    counts, both = COUNTS if weighted else None, np.concatenate([X, LATER])
    grown = gain(reference(X, None if counts is None else counts[:N]), both, counts, LATER)
    assert_same(grown, reference(both, counts), 7)


def test_points_that_come_and_go_leave_nothing():
    points = reference(X, None)
    for _ in range(20):
        points = gain(points, np.concatenate([X, LATER]), None, LATER)
        points = lose(points, N + np.arange(7), X, None)
    assert_same(points, reference(X, None), 20 * 14)


def test_a_point_that_was_alone_leaves_no_density_of_rounding():
    """A density of which nearly all leaves: nothing of what is left would survive a subtraction."""
    points = np.concatenate([[[0.0, 0.0]], np.full((10**4, 2), 1e-9), [[40.0, 0.0]]])
    counts = np.r_[1.0, np.full(10**4, 1e12), 1.0]
    old = Mixture((ladder(d=2),), points, counts).bind_reference()
    left = lose(old, 1 + np.arange(10**4), points[[0, -1]], counts)
    assert_close(np.exp(left.log_densities[0]), np.ones((3, 2)), terms=100)


def test_a_whitening_has_no_entries_of_points_that_left_and_none_for_points_that_came():
    left = lose(reference(X, None), np.array([0, 5]), np.delete(X, [0, 5], axis=0), None)
    whitening, whole = left.covariance.ladders[1].transform, Whitening().fit(X, Y)
    assert whitening.labels_.tolist() == np.delete(Y, [0, 5]).tolist()
    np.testing.assert_array_equal(whitening.removal_, np.delete(whole.removal_, [0, 5]))
    np.testing.assert_array_equal(whitening.matrix_, whole.matrix_)  # a summary of all points
    grown = gain(left, np.concatenate([left.covariance.X, LATER]), None, LATER)
    whitening = grown.covariance.ladders[1].transform
    assert whitening.labels_[-7:].tolist() == [-1] * 7
    assert not whitening.removal_[-7:].any()


def test_densities_that_were_fixed_before_treat_all_other_points_alike():
    apart = reference(X, None).covariance.apart(X[:8], None, 3.0)
    (first, *_), k = apart.ladders, None
    k = first.kernel(0)(LATER, X[:8]).sum(axis=1) * 3.0
    np.testing.assert_allclose(np.exp(apart.bind(LATER).log_densities[0][0]), k)
    assert first.floors.tolist() == [1.0, 4.0]

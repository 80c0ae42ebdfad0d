"""A mixture that forgets has the densities of one that never knew."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

from coxfield.kernels.mixture import Mixture
from coxfield.kernels.mixture_forgetting import forget
from coxfield.kernels.mixture_ladder import Ladder
from coxfield.kernels.recognise import recognise
from coxfield.kernels.whitening import Whitening
from tolerances import assert_close

RNG = np.random.default_rng(0)
N = 24
X, OTHERS = RNG.normal(size=(N, 2)), RNG.normal(size=(7, 2))
COUNTS = RNG.uniform(0.5, 2.0, size=N)
Y = np.arange(N) % 2


def mixture(points, counts):
    """Two representations, with several length scales and powers of the density."""
    whitening = Whitening().fit(X, Y)
    factors, alphas, weights = np.array([2.0, 0.5]), np.array([0.5, 1.0]), np.array([[1.0, 0.5], [0.0, 2.0]])
    ladders = tuple(
        Ladder(name, transform, recognise(RBF(1.0), 2), factors, alphas, weights)
        for name, transform in (("raw", None), ("whitened", whitening))
    )
    found = Mixture(ladders, points, counts)
    known = found.bind_reference().log_densities
    return replace(found, log_densities=known)


def assert_same_densities(found, expected, gone):
    """To rounding: what is subtracted is at most half of a density, or the density is computed again."""
    for one, other in zip(found, expected, strict=True):
        assert_close(np.exp(one), np.exp(other), terms=20 * N * (1 + gone))


@pytest.mark.parametrize("counts", [None, COUNTS])
@settings(max_examples=25, deadline=None)
@given(places=st.lists(st.integers(0, N - 1), max_size=N - 1, unique=True).map(np.sort))
def test_what_is_left_is_the_mixture_of_the_other_points(counts, places):
    places = places.astype(int)
    old = mixture(X, counts)
    kept, home = np.setdiff1d(np.arange(N), places), old.bind_reference()
    later = old.bind(OTHERS)
    later.log_densities  # noqa: B018  # known before the points leave
    new, (left, moved, unknown) = forget(old, home[places], places, [home[kept], later, old.bind(OTHERS)], X[kept])
    single = mixture(X[kept], None if counts is None else counts[kept])
    assert_same_densities(new.log_densities, single.log_densities, len(places))
    assert_same_densities(left.log_densities, single.log_densities, len(places))
    assert_same_densities(moved.log_densities, single.bind(OTHERS).log_densities, len(places))
    assert unknown.known_densities is None
    assert left.rows.tolist() == list(range(len(kept)))
    assert new.n_reference == len(kept)
    assert_close(moved.tile(left), single.bind(OTHERS).tile(single.bind_reference()), terms=40 * N * N)
    assert old.n_reference == N  # somebody may hold it


def test_a_point_that_was_alone_leaves_no_density_of_rounding():
    """A density of 1e-80 beside a point that leaves: nothing of it would survive a subtraction."""
    points = np.array([[0.0, 0.0], [0.1, 0.0], [9.0, 9.0], [9.0, 9.1]])
    old = mixture(points, None)
    new, (_, lonely) = _without(old, [2, 3], np.array([[9.0, 9.0]]))
    expected = mixture(points[:2], None).bind(np.array([[9.0, 9.0]])).log_densities
    for one, other in zip(lonely.log_densities, expected, strict=True):
        assert_close(one, other, terms=100)
    assert new.n_reference == 2


def _without(old, places, others):
    home, later = old.bind_reference(), old.bind(others)
    later.log_densities  # noqa: B018
    kept = np.setdiff1d(np.arange(old.n_reference), places)
    return forget(old, home[np.array(places)], np.array(places), [home[kept], later], old.X[kept])


def test_a_whitening_has_no_entries_of_points_that_left():
    new, _ = _without(mixture(X, None), [0, 5], OTHERS)
    whitening = new.ladders[1].transform
    assert len(whitening.labels_) == len(whitening.removal_) == N - 2
    np.testing.assert_array_equal(whitening.matrix_, Whitening().fit(X, Y).matrix_)  # a summary of all points

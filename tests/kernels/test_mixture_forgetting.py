"""A mixture that forgets has the densities of one that never knew the points."""

import numpy as np
import pytest

from coxfield import LGCPClassifier
from coxfield.kernels.mixture_forgetting import forget
from coxfield.kernels.mixture_ladder import log_densities
from tolerances import assert_close

RNG = np.random.default_rng(2)
X = RNG.normal(size=(30, 3)) * [1, 1, 5]
Y = (X[:, 0] + 0.3 * RNG.normal(size=30) > 0).astype(int)
WEIGHTS = RNG.uniform(0.5, 2.0, 30)


def forgotten(places, weights=None):
    """A mixture, the places that stay, and the mixture without the others with its points."""
    mixture = LGCPClassifier().fit(X, Y, weights).kernel_
    points, kept = mixture.bind_reference(), np.setdiff1d(np.arange(30), places)
    new, (bound,) = forget(mixture, points[places], places, [points[kept]], X[kept])
    return mixture, kept, new, bound


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("places", [[0], [3, 4, 29], list(range(0, 30, 2))])
def test_densities_are_those_of_the_points_that_stay(places, weights):
    mixture, kept, new, bound = forgotten(np.array(places), weights)
    counts = None if weights is None else mixture.counts[kept]
    for ladder, known in zip(mixture.ladders, new.log_densities, strict=True):
        points = ladder.bind(X)[kept]
        expected = np.exp(log_densities(points, points, counts))
        # What is subtracted is at most half of a density, so rounding at most doubles.
        assert_close(np.exp(known), expected, terms=200, condition=20)
    assert new.n_reference == len(kept)
    assert bound.rows.tolist() == list(range(len(kept)))


def test_no_array_of_the_new_mixture_has_a_value_of_a_row_that_was_forgotten():
    places = np.array([5, 6])
    _, kept, new, bound = forgotten(places)
    assert new.X.shape == (28, 3)
    assert not np.isin(X[places], new.X).any()
    for points in bound.ladders:
        assert len(points) == 28
        assert points.known.shape[1] == 28
    for ladder in new.ladders:
        last = getattr(ladder.transform, "steps", [(None, ladder.transform)])[-1][1]
        if hasattr(last, "labels_"):
            assert len(last.labels_) == len(kept)


def test_the_old_mixture_stays_as_it_was():
    mixture, *_ = forgotten(np.array([0, 1]))
    np.testing.assert_array_equal(mixture.X, X)
    assert mixture.log_densities[0].shape[1] == 30

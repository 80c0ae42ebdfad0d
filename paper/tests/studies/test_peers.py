import numpy as np
import pytest
from sklearn.base import clone

from coxfield_paper.studies import peers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) * [1, 10, 100]
Y = (X[:, 0] > 0).astype(int)
TINY = peers.SVCGrid((1.0,), (1.0,), folds=2)


def forest(monkeypatch):
    monkeypatch.setattr(peers, "TREES", 20)
    return peers.random_forest(0)


@pytest.mark.parametrize(
    "peer",
    [
        lambda patch: peers.gaussian_process(3),
        lambda patch: peers.support_vectors(3, TINY),
        lambda patch: peers.nearest_neighbours(),
        lambda patch: peers.logistic_regression(),
        forest,
    ],
)
def test_peers_give_probabilities(monkeypatch, peer):
    fitted = peer(monkeypatch).fit(X, Y)
    probabilities = fitted.predict_proba(X)
    assert probabilities.shape == (60, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
    assert np.mean(fitted.predict(X) == Y) > 0.8


def test_grids_are_searched_in_full_and_gamma_is_relative_to_the_number_of_features():
    search = peers.grid_search(4, peers.FINE)
    grid = search.param_grid
    np.testing.assert_allclose(grid["svc__C"], 10.0 ** np.arange(-1, 4))
    np.testing.assert_allclose(grid["svc__gamma"], 10.0 ** np.arange(-2, 3) / 4)
    assert search.cv.get_n_splits() == 5
    assert peers.support_vectors(4).estimator.param_grid["svc__C"] == (1.0, 10.0, 100.0)


@pytest.mark.parametrize("peer", [lambda: peers.grid_search(3, TINY), peers.nearest_neighbours])
def test_scales_of_features_do_not_matter(peer):
    of_these, of_others = peer().fit(X, Y), peer().fit(X * [1024, 1, 2], Y)  # powers of two: the same rounding
    np.testing.assert_array_equal(of_these.predict(X), of_others.predict(X * [1024, 1, 2]))


def test_more_neighbours_are_chosen_for_more_noise():
    rng = np.random.default_rng(1)
    flipped = np.where(rng.random(60) < 0.3, 1 - Y, Y)
    chosen = [clone(peers.nearest_neighbours()).fit(X[:, :1], y).best_params_ for y in (Y, flipped)]
    (clean,), (noisy,) = (each.values() for each in chosen)
    assert clean < noisy

"""Which rows and members are drawn where rows are many."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

from coxfield.engine.store import Labelled
from coxfield.kernels import Member
from coxfield.selection.mixture import learn, sampling
from coxfield.selection.mixture.bank import bank_of
from coxfield.selection.mixture.loo_members import member_sums

N = 900


@pytest.fixture
def small(monkeypatch):
    """Sizes at which hundreds of rows are many."""
    monkeypatch.setattr(learn, "MANY", 500)
    monkeypatch.setattr(learn, "PILOT", 300)
    monkeypatch.setattr(learn, "LEFT_OUT", 400)


def labelled(n=N, seed=0, weights=None):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return Labelled(rng.normal(size=(n, 4)) + 1.3 * np.eye(3, 4)[y], y, 3, weights)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=50), st.integers(1, 60))
def test_chances_are_at_most_one_and_add_up(worth, count):
    chance = sampling._chances(np.array(worth), count)
    assert (chance > 0).all()
    assert (chance <= 1 + 1e-12).all()
    assert chance.sum() == pytest.approx(min(count, len(worth)))
    below = chance < 1
    if below.any():
        np.testing.assert_allclose(chance[below] / np.array(worth)[below], (chance / worth)[below][0], rtol=1e-9)


def test_rows_that_are_drawn_stand_for_all_on_average():
    rng = np.random.default_rng(0)
    probability, counts, values = rng.uniform(size=400), rng.uniform(1, 3, 400), rng.normal(size=400) + 1
    totals = []
    for seed in range(2000):
        rows, stand_for = sampling.informative_rows(probability, counts, 60, np.random.default_rng(seed))
        assert len(rows) in (59, 60, 61)
        totals.append(values[rows] @ stand_for)
    error = np.std(totals, ddof=1) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - values @ counts) < 4 * error


def test_uncertain_rows_are_drawn_more_often():
    probability = np.repeat([0.5, 0.99], 500)
    rows, _ = sampling.informative_rows(probability, np.ones(1000), 200, np.random.default_rng(0))
    assert (rows < 500).sum() > 2 * (rows >= 500).sum()


def test_all_rows_are_drawn_if_so_many_are_asked_for():
    rows, stand_for = sampling.informative_rows(np.full(10, 0.3), np.ones(10), 10, np.random.default_rng(0))
    np.testing.assert_array_equal(rows, np.arange(10))
    np.testing.assert_allclose(stand_for, 1)


def test_candidates_lie_beside_the_members_of_the_pilot():
    bank = bank_of([Member(RBF(1.0)), Member(RBF(1.0), "whitened")], labelled(), None)
    rungs, powers = bank[0].weights.shape
    found = np.zeros((rungs, powers))
    found[rungs - 2, 0] = 1
    kept = sampling.beside(bank, [found, np.zeros(bank[1].weights.shape)])
    assert len(kept) == 1
    np.testing.assert_array_equal(kept[0].factors, bank[0].factors[rungs - 2 - sampling.LONGER :])
    assert not kept[0].weights.any()


def test_places_among_others():
    np.testing.assert_array_equal(sampling.positions(np.array([3, 9, 1]), np.array([1, 4, 9])), [-1, 2, 0])


def test_sums_by_cells_are_near_those_of_all_pairs():
    here = labelled(3000)
    bank, rows = bank_of([Member(RBF(1.0), alphas=(0.5, (1.0, 3.0)))], here, [0.3, 1.0]), np.arange(0, 3000, 7)
    exact = member_sums(here, bank, rows).sums
    found = member_sums(sampling.many(here, 5), bank, rows).sums
    # Means over rows: each density has an error, which is independent of those of most others.
    np.testing.assert_allclose(found.mean(axis=1), exact.mean(axis=1), rtol=0.02)


def test_a_bank_learned_from_samples_is_as_good(small):
    train, test = labelled(1500), labelled(1500, seed=1)
    bank, mean = bank_of(None, train, None), np.zeros(3)
    exact = learn.learn_mixture(train, bank, mean)
    drawn = learn.learn_mixture(train, bank, mean, random=np.random.default_rng(0))
    assert exact.sampled is None
    assert drawn.sampled is not None
    assert drawn.sampled.n_pilot < 350
    assert len(drawn.sampled.rows) <= 401
    losses = [loss_of(each, train, test) for each in (exact, drawn)]
    assert losses[1] < 1.03 * losses[0]


def loss_of(learned, train, test):
    from scipy.special import log_softmax

    from coxfield.engine.class_sums import class_sums
    from coxfield.kernels.protocol import PerClass

    store = train.under(PerClass.shared_by(learned.mixture, 3))
    scores = class_sums(store, test.X).values + learned.mean
    return -log_softmax(scores, axis=1)[np.arange(len(test)), test.y].mean()


def test_the_same_seed_draws_the_same_rows(small):
    train = labelled()
    bank, mean = bank_of(None, train, None), np.zeros(3)
    one, same, other = (
        learn.learn_mixture(train, bank, mean, random=np.random.default_rng(seed)).sampled for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.rows, same.rows)
    np.testing.assert_array_equal(one.counts, same.counts)
    assert len(one.rows) != len(other.rows) or (one.rows != other.rows).any()


def test_rows_stand_for_the_weight_of_all(small):
    weights = np.random.default_rng(3).uniform(0.5, 4, N)
    train = labelled(weights=weights)
    drawn = learn.learn_mixture(train, bank_of(None, train, None), np.zeros(3), random=np.random.default_rng(0)).sampled
    assert drawn.counts.sum() == pytest.approx(weights.sum(), rel=0.2)

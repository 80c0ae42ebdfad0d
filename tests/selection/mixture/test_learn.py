"""From labelled points to a mixture."""

import dataclasses

import numpy as np
import pytest
from scipy.special import softmax

from coxfield.engine.store import Labelled
from coxfield.selection.mixture import learn
from coxfield.selection.mixture.bank import bank_of
from coxfield.selection.mixture.loo_members import MemberSums, member_sums
from mixtures import problem

DATA = problem(n=90)


def learned(labelled=DATA, **options):
    return learn.learn_mixture(labelled, bank_of(None, labelled), np.zeros(labelled.n_classes), **options)


def test_the_table_has_one_row_per_survivor():
    found = learned()
    terms = [(ladder.name, ladder.weights[f, a]) for ladder in found.mixture.ladders for f, a in ladder.terms]
    assert list(zip(found.table["representation"].tolist(), found.table["weight"].tolist(), strict=True)) == terms
    assert found.table["share"].sum() == pytest.approx(1)
    assert (found.table["share"] > 0).all()
    assert 0 < len(terms) < 20


def test_the_densities_of_survivors_are_kept():
    mixture = learned().mixture
    for known, computed in zip(mixture.log_densities, mixture.bind(DATA.X).log_densities, strict=True):
        np.testing.assert_allclose(known, computed, rtol=1e-9, atol=1e-9)


def test_means_are_held_if_they_are_not_learned():
    found = learn.learn_mixture(DATA, bank_of(None, DATA), np.array([0.5, 0.0, -0.5]), learn_mean=False)
    assert found.mean.tolist() == [0.5, 0.0, -0.5]


def test_many_points_are_judged_by_some_of_them(monkeypatch):
    whole = learned()
    monkeypatch.setattr(learn, "MOST_ROWS", 60)
    some = learned()
    assert some.mixture.X.shape == DATA.X.shape
    assert some.loo_error == pytest.approx(whole.loo_error, abs=0.15)
    assert some.loo_error * 60 == pytest.approx(round(some.loo_error * 60))


def test_many_classes_are_judged_by_as_many_points_as_fit_into_memory(monkeypatch):
    assert learn._rows(50, learn.MOST_VALUES // 50).tolist() == list(range(50))
    monkeypatch.setattr(learn, "MOST_VALUES", 1000)
    assert len(learn._rows(50, 100)) == 10
    assert len(learn._rows(50, 10**6)) == 1
    monkeypatch.setattr(learn, "MOST_VALUES", 20_000)
    assert np.isfinite(learned().mean).all()


def test_labels_without_meaning_give_the_class_shares():
    rng = np.random.default_rng(0)
    noise = Labelled(rng.normal(size=(200, 3)), (rng.random(200) < 0.3).astype(int), 2)
    found = learned(noise)
    assert len(found.table["weight"]) >= 1
    sums = found.mixture(noise.X).sum(axis=1)
    if found.table["weight"].sum() * sums.max() < 1e-3:  # nothing was found
        assert softmax(found.mean)[1] == pytest.approx(noise.y.mean(), abs=0.01)
    assert found.loo_error <= noise.y.mean() + 0.05


def test_points_on_a_grid_whose_labels_say_nothing():
    X = np.array([[1, 3], [1, 3], [2, 1], [2, 1], [3, 3], [3, 3], [4, 1], [4, 1]] * 2, dtype=float)
    y = np.array([0, 0, 1, 1] * 4)
    found = learned(Labelled(X[:, ::-1], np.roll(y, 1), 2))
    assert len(found.table["weight"]) >= 1
    assert np.isfinite(found.table["share"]).all()


def test_two_points_are_enough():
    found = learned(Labelled(np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([0, 1]), 2))
    assert np.isfinite(found.mean).all()
    assert found.table["share"].tolist() == [1.0]


def solved(found, counts, shown=np.inf):
    """The optimum, and the price of evidence at copies."""
    asked = learn._Asked(np.arange(len(counts)), counts, np.zeros(found.sums.shape[2]), learn_mean=True)
    tied = learn._solved(asked, found, shown=shown)
    return tied.solution, tied.price


def silent(own):
    """Two members that say nothing to points that are left out, and exp(own) to a copy of each."""
    at_copies = np.zeros((2, 2, 2))
    at_copies[0], at_copies[1] = np.exp(own) / 2, -np.exp(own) / 2
    to_copies = np.stack([np.zeros((2, 6)), np.full((2, 6), own)])
    return MemberSums(np.arange(6) % 2, np.zeros((2, 6, 2)), (), at_copies, to_copies, np.empty((2, 6, 2, 0)))


@pytest.mark.parametrize("own", [0.0, 10.0, 600.0])
@pytest.mark.parametrize("shown", [0.0, 1e-300, 1e-9])
def test_evidence_that_no_price_can_hold_to_nothing_is_held_to_what_no_probability_shows(own, shown):
    found = silent(own)
    solution, price = solved(found, np.ones(6), shown)
    assert solution.weights.any()
    assert found.largest_evidence(solution.weights)[1] <= learn.LOUDER * learn.FAINT
    assert (price > 0) == (own > 0)


@pytest.mark.parametrize("shown", [0.0, 1e-6, 0.01, 1.0])
def test_the_price_holds_copies_to_what_was_shown(shown):
    found = member_sums(DATA, bank_of(None, DATA), np.arange(len(DATA.y)))
    found = dataclasses.replace(found, to_copies=found.to_copies + np.array([0, 5.0], np.float32)[:, None, None])
    solution, price = solved(found, DATA.counts, shown)
    unbounded, none = solved(found, DATA.counts)
    assert none == 0 < price
    now, loud = found.largest_evidence(unbounded.weights)
    most = learn.LOUDER * max(shown, now)
    assert found.largest_evidence(solution.weights)[1] <= most < loud


def test_the_search_for_a_price_ends_where_none_helps(monkeypatch):
    found = member_sums(DATA, bank_of(None, DATA), np.arange(len(DATA.y)))
    monkeypatch.setattr(MemberSums, "largest_evidence", lambda *_: (1.0, np.inf))
    solution, price = solved(found, DATA.counts, 1.0)
    assert np.isfinite(price)
    assert np.isfinite(solution.weights).all()


def test_progress_is_shown(capsys):
    learned(verbose=1)
    assert "leave-one-out sums of " in capsys.readouterr().err

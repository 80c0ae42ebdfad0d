import numpy as np
import pytest
from scipy.special import softmax

from coxfield.selection.committee import average as module
from coxfield.selection.committee.average import STRENGTHS, average
from coxfield.selection.committee.sums import Given, MemberSums
from tolerances import assert_close

Y = np.array([0, 0, 1, 1, 2])
GIVEN = Given(np.arange(5), Y, 3)
MEAN = np.log([0.4, 0.4, 0.2])


def members(count=3, n=20, seed=0):
    rng = np.random.default_rng(seed)
    sums = []
    for _ in range(count):
        whole = rng.normal(size=(n, 3))
        whole[:5] += 2 * np.eye(3)[Y]
        sums.append(MemberSums(whole, whole[:5] + 0.3 * rng.normal(size=(5, 3)), np.empty((0, 3))))
    return sums


def reference(sums, ranks):
    """Weights by triple loop, without pruning."""
    logs = np.empty((len(sums), len(STRENGTHS)))
    for m, one in enumerate(sums):
        relative = one.whole - one.whole.mean(axis=1, keepdims=True)
        unit = np.mean([max(abs(v) for v in row) for row in relative])
        for s, nats in enumerate(STRENGTHS):
            logs[m, s] = -ranks[m] / len(Y)
            for j in range(4):  # the fifth label is alone in its class, and the class does not count
                logs[m, s] += np.log(softmax((nats / unit * one.left_out[j] + MEAN)[:2])[Y[j]])
    return softmax(logs)


def test_weights_are_probabilities_of_the_labels_times_the_prior():
    sums, ranks = members(), np.array([2.0, 4.0, 8.0])
    found = average(sums, ranks, GIVEN, MEAN)
    expected = reference(sums, ranks)
    expected = np.where(expected >= 1e-4 * expected.max(), expected, 0)
    np.testing.assert_allclose(found.weights, expected / expected.sum(), rtol=1e-9, atol=1e-12)
    assert_close(found.weights.sum(), 1.0, terms=3 * len(STRENGTHS))


def test_the_prior_decides_if_no_label_has_company():
    alone = Given(np.arange(3), np.arange(3), 3)
    ranks = np.array([1.2, 3.0, 9.0])
    sums = [MemberSums(one.whole, one.left_out[:3], one.directions) for one in members()]
    found = average(sums, ranks, alone, np.zeros(3))
    expected = softmax(-ranks / 3)
    assert_close(found.weights, np.repeat(expected[:, None], len(STRENGTHS), axis=1) / len(STRENGTHS), condition=4)


def test_probabilities_average_over_members_and_strengths():
    sums = members()
    found = average(sums, np.array([2.0, 4.0, 8.0]), GIVEN, MEAN)
    whole = [one.whole for one in sums]
    p = found.probabilities(whole)
    expected = sum(
        found.weights[m, s] * softmax(found.strengths[m, s] * whole[m] + MEAN, axis=1)
        for m in range(3)
        for s in range(len(STRENGTHS))
    )
    assert_close(p, expected, terms=3 * len(STRENGTHS), condition=100)
    assert_close(p.sum(axis=1), 1.0, terms=20)


def test_pruning_changes_probabilities_by_less_than_its_threshold(monkeypatch):
    sums, ranks = members(6), np.array([2.0, 4, 8, 16, 32, 64])
    whole = [one.whole for one in sums]
    pruned = average(sums, ranks, GIVEN, MEAN)
    monkeypatch.setattr(module, "NEGLIGIBLE", 0.0)
    every = average(sums, ranks, GIVEN, MEAN)
    assert (pruned.weights == 0).any()
    dropped = every.weights[pruned.weights == 0].sum()
    assert dropped <= 1e-4 * every.weights.size
    assert np.abs(pruned.probabilities(whole) - every.probabilities(whole)).max() <= 2 * dropped + 1e-12


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_a_member_that_says_the_same_everywhere_gives_the_class_shares(value):
    flat = MemberSums(np.full((20, 3), value), np.full((5, 3), value), np.empty((0, 3)))
    found = average([flat], np.array([1.0]), GIVEN, MEAN)
    assert_close(found.probabilities([flat.whole]), np.tile(softmax(MEAN), (20, 1)), terms=len(STRENGTHS))


@pytest.mark.parametrize("size", [1e-307, 1e-40])
def test_a_member_whose_sums_have_vanished_says_nothing(size):
    sums = members()
    faint = MemberSums(size * sums[0].whole, size * sums[0].left_out, sums[0].directions)
    with np.errstate(all="raise", under="ignore"):
        found = average([faint, sums[1]], np.array([2.0, 2.0]), GIVEN, MEAN)
    assert not found.strengths[0].any()
    assert np.isfinite(found.weights).all()

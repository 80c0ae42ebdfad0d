"""Questions against variances of a Gaussian process, computed one by one."""

import numpy as np
import pytest
from scipy import sparse

from coxfield.estimators.few_labels import Prepared, View, learn_few_labels
from coxfield.graphs import suggest as suggest_module
from coxfield.graphs.bank import EDGE_RULES
from coxfield.graphs.spectrum import spectrum_of_points
from coxfield.graphs.suggest import NOISE, design, suggest
from coxfield.graphs.units import AsGiven
from tolerances import assert_close


def cloud(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) + 6 * np.eye(3)[np.arange(n) % 3]


def learned(X, labels=(0, 1, 2, 3), shape=None):
    codes = np.full(X.shape[0], -1)
    codes[list(labels)] = np.array(labels) % 3 if len(labels) > 2 else np.arange(len(labels))
    shape = spectrum_of_points(X, EDGE_RULES, 20) if shape is None else shape
    return learn_few_labels(
        Prepared(X, views=(View(AsGiven(), shape),), count=X.shape[0]), codes, np.zeros(codes.max() + 1)
    )


def asked(few, n=1, seed=0):
    return suggest(few.features, few.distributions, few.rows, n, np.random.default_rng(seed))


def variances(watched, known):
    """Naive reference: variances of a Gaussian process given noisy values at some points."""
    inverse = np.linalg.inv(known @ known.T + NOISE * np.eye(len(known)))
    return np.array([x @ x - (known @ x) @ inverse @ (known @ x) for x in watched])


@pytest.mark.parametrize("seed", range(3))
def test_each_choice_lowers_the_sum_of_variances_most(seed):
    rng = np.random.default_rng(seed)
    candidates, watched, known = (rng.normal(size=(n, 4)) / 2 for n in (7, 9, 3))
    weights = rng.random(9)
    free = list(range(7))
    for chosen in design(candidates, watched, known, weights, 7):
        left = [weights @ variances(watched, np.vstack([known, candidates[one]])) for one in free]
        # One more label changes every variance by the same formula; the inverse has a condition of at most 1 + n / s.
        assert_close(left[free.index(chosen)], min(left), terms=100, scale=weights.sum() * 4, condition=200)
        free.remove(chosen)
        known = np.vstack([known, candidates[chosen]])
    assert free == []


def test_features_give_the_mean_of_the_covariances_of_the_members():
    X = cloud()
    few = learned(X)
    spectrum = few.prepared.views[0].spectrum
    clusters = {one.member: one for one in few.prepared.clusters[3]}
    rows = np.array([5, 1, 40])
    features = few.features(rows)
    expected, condition = np.zeros((3, 3)), 1.0
    for member, share in zip(few.committee.members, few.committee.shares, strict=True):
        if member.source >= 0:
            modes, first = spectrum.modes[member.source], int(member.means)
            values, vectors = modes.values[first:], modes.vectors[:, first:]
            heat = (vectors * np.exp(-member.parameter * (values - values[0]))) @ vectors.T
        elif member in clusters:
            p = clusters[member].probabilities(spectrum.axes.coordinates(X))
            heat = p @ p.T
        else:
            shrunk = spectrum.axes.shrunk(member.parameter)
            white = spectrum.axes.coordinates(X) / np.sqrt(shrunk)
            heat = white @ white.T
            condition = max(condition, np.sqrt(shrunk.max() / shrunk.min()))
        scales = np.sqrt(np.diag(heat))
        expected += share * (heat / np.outer(scales, scales))[np.ix_(rows, rows)]
    assert any(member.source < 0 for member in few.committee.members)
    assert any(member.source >= 0 for member in few.committee.members)
    # x exp(-x) is below 1, so that rounding of an exponent costs no more than that of a product. Coordinates are
    # rounded relative to the longest axis, and divided by the length of their own.
    assert_close(features @ features.T, expected, terms=features.shape[1], scale=1.0, condition=condition)


def test_points_far_from_the_origin_have_the_same_features():
    X, rows = cloud(), np.arange(10)
    near, far = (learned(points).features(rows) for points in (X, X + 2.0**20))
    # Far away, coordinates have 20 binary digits less.
    np.testing.assert_allclose(near @ near.T, far @ far.T, atol=1e-6)


def test_a_cloud_without_a_label_is_asked_about_first():
    X = cloud(150)
    assert asked(learned(X, labels=(0, 1)))[0] % 3 == 2


def test_sparse_points_and_graphs_are_asked_about_too():
    X = sparse.csr_array(np.abs(cloud(90)))
    assert len(set(asked(learned(X, labels=(0, 1)), 5))) == 5
    blocks = sparse.csr_array(sparse.block_diag([np.ones((10, 10)) - np.eye(10)] * 3))
    codes = np.full(30, -1)
    codes[[0, 10]] = 0, 1
    few = learn_few_labels(Prepared(blocks, "precomputed"), codes, np.zeros(2))
    assert asked(few)[0] >= 20


def test_rows_are_without_label_and_never_twice():
    few = learned(cloud(40))
    rows = asked(few, 36)
    assert sorted(rows) == list(range(4, 40))


def test_two_copies_of_a_point_are_not_both_asked_about():
    X = np.repeat(cloud(60), 2, axis=0)
    rows = asked(learned(X, labels=(0, 2)), 6)
    assert len(set((rows // 2).tolist())) == 6


def test_the_same_seed_gives_the_same_rows_and_more_rows_begin_with_them():
    few = learned(cloud(600))
    np.testing.assert_array_equal(asked(few, 5, seed=3), asked(few, 5, seed=3))
    np.testing.assert_array_equal(asked(few, 5, seed=3)[:2], asked(few, 2, seed=3))


def test_many_questions_and_many_labels_are_asked_in_rounds(monkeypatch):
    monkeypatch.setattr(suggest_module, "AT_ONCE", 4)
    monkeypatch.setattr(suggest_module, "CANDIDATES", 10)
    monkeypatch.setattr(suggest_module, "MOST_KNOWN", 8)
    rows = asked(learned(cloud(60)), 30)
    assert len(set(rows.tolist())) == 30
    assert rows.min() >= 4


def test_without_any_doubt_all_points_count_alike():
    few = learned(cloud(60))
    certain = np.eye(3)[few.distributions.argmax(axis=1)]
    rows = suggest(few.features, certain, few.rows, 3, np.random.default_rng(0))
    assert len(set(rows.tolist())) == 3

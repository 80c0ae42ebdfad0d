"""The experts of few labels: members, class sums, averages, mixtures and stacking weights against naive references."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import softmax

from coxfield.graphs import experts
from coxfield.graphs.bank import (
    EDGE_RULES,
    LINEAR,
    NUGGET,
    SHRINKAGES,
    TIED,
    Block,
    Given,
    Member,
    MemberSums,
    graph_block,
    linear_block,
    n_modes,
)
from coxfield.graphs.cut import MOST_POINTS, NO_LABEL, CutGraph
from coxfield.graphs.experts import (
    EXPERTS,
    HALF_ALONE,
    PRIOR,
    STRENGTHS,
    Blend,
    Opinion,
    average,
    blend,
    cut_opinion,
    learn_experts,
    stack,
)
from coxfield.graphs.spectrum import Axes, Heat, Modes, effective_rank, lowest_modes, spectrum_of_points
from tolerances import assert_close

POINTS = np.random.default_rng(0).normal(size=(120, 3))


def test_members_have_unit_features_with_and_without_mode_0():
    modes = spectrum_of_points(POINTS, EDGE_RULES[:1], 120).modes[0]
    found = graph_block(0, modes, 3)
    assert {member.means for member in found.members} == {False, True}
    for m, member in enumerate(found.members):
        np.testing.assert_allclose(np.linalg.norm(found.features(m), axis=1), 1, atol=1e-9)
        assert_close(found.features(m), Heat(modes, member.parameter, member.means).features(), terms=120)
        assert member.rank <= 120 / 4
        assert effective_rank(modes.values, member.parameter) == pytest.approx(member.rank, rel=1e-6)


def test_ranks_begin_at_the_number_of_classes_and_stay_below_what_the_modes_resolve():
    modes = spectrum_of_points(POINTS, EDGE_RULES[:1], 20).modes[0]
    ranks = [member.rank for member in graph_block(0, modes, 5).members]
    assert min(ranks) == pytest.approx(1.2 * 4)
    assert max(ranks) <= 0.6 * 20
    assert graph_block(0, modes, 50).members  # more classes than modes: one member still


def test_a_graph_that_falls_apart_has_no_member_twice():
    block = np.ones((5, 5)) - np.eye(5)
    modes = lowest_modes(sparse.csr_array(np.kron(np.eye(20), block)), 100)
    times = [member.parameter for member in graph_block(0, modes, 2).members if member.means]
    assert len(times) == len(set(times))


def test_one_mode_has_no_members():
    assert graph_block(0, Modes(np.zeros(1), np.ones((1, 1))), 2).members == ()


def test_linear_members_have_all_shrinkages_unless_points_are_equal():
    axes = Axes.of(POINTS)
    found = linear_block(axes, axes.coordinates(POINTS)).members
    assert [member.parameter for member in found] == list(SHRINKAGES)
    assert all(member.means and member.source == -1 and 1 <= member.rank <= 3 for member in found)
    same = Axes.of(np.ones((5, 2)))
    assert linear_block(same, same.coordinates(np.ones((5, 2)))).members == ()


def test_number_of_modes():
    assert n_modes(40, 3) == 40
    assert n_modes(1000, 3) == 64
    assert n_modes(1000, 26) == 150


GIVEN = Given(np.array([2, 5, 7, 8, 11, 13]), np.array([0, 1, 0, 2, 1, 0]), 3)


def unit_features(dtype=float, n=15, d=4):
    features = np.random.default_rng(0).normal(size=(n, d))
    return (features / np.linalg.norm(features, axis=1, keepdims=True)).astype(dtype)


def block_of(features, *, means):
    """One member whose features are not scaled to length 1 yet."""
    weights = np.array([[0.5, 1.0, 2.0, 0.25]], dtype=features.dtype)
    return Block((Member(0, 2.0, 1.0, means),), features * 3 / weights, weights)


def sum_or_mean(features, x, rows, y, *, means):
    """Class sums divided by the root of the number of points, or means, at one point by double loop."""
    found = []
    for c in range(3):
        values = [float(x @ features[row]) for row, label in zip(rows, y, strict=True) if label == c]
        number = max(len(values), 1)
        found.append(sum(values) / (number if means else np.sqrt(number)))
    return found


@pytest.mark.parametrize("means", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_are_those_of_a_double_loop_and_leave_one_out_is_a_refit(means, dtype):
    features = unit_features(dtype)
    sums = block_of(features, means=means).sums(GIVEN)[0]
    whole = [sum_or_mean(features, x, GIVEN.rows, GIVEN.y, means=means) for x in features]
    assert_close(sums.whole, whole, terms=24, scale=3, dtype=dtype)
    left_out = [
        sum_or_mean(features, features[row], np.delete(GIVEN.rows, j), np.delete(GIVEN.y, j), means=means)
        for j, row in enumerate(GIVEN.rows)
    ]
    assert_close(sums.left_out, left_out, terms=24, scale=3, dtype=dtype)
    assert_close(features @ sums.directions, sums.whole, terms=24, scale=3, dtype=dtype)


def kriging(features, x, rows, y, weights):
    """The mean of a Gaussian process at one point, given 1 for the class and 0 else, by the dense formula."""
    K = features[rows] @ features[rows].T + np.diag(NUGGET / weights)
    return x @ features[rows].T @ np.linalg.solve(K, np.eye(3)[y] - 1 / 3)


@pytest.mark.parametrize("d", [4, 9])  # fewer features than labels, and more
def test_kriging_is_a_gaussian_process_and_leave_one_out_is_a_refit(d):
    features, weights = unit_features(d=d), np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])
    given = Given(GIVEN.rows, GIVEN.y, 3, weights)
    members = (Member(LINEAR, 2.0, 1.0, True), Member(TIED, 2.0, 1.0, False))
    block = Block(members, features, np.ones((2, d)))
    [(member, found)] = block.kriged(given)  # clusters have none
    assert member == Member(LINEAR, 2.0, 1.0, True, kriged=True)
    whole = [kriging(features, x, given.rows, given.y, weights) for x in features]
    assert_close(found.whole, whole, terms=100, scale=3)
    left_out = [
        kriging(features, features[row], *(np.delete(part, j) for part in (given.rows, given.y, weights)))
        for j, row in enumerate(given.rows)
    ]
    assert_close(found.left_out, left_out, terms=100, scale=3)


def test_kriging_is_asked_from_enough_labels_on():
    for n, asked in ((23, False), (24, True)):
        assert Given(np.arange(n), np.arange(n) % 3, 3).many == asked
    assert not Given(np.arange(39), np.arange(39) % 10, 10).many


def test_a_point_that_no_mode_reaches_counts_for_nothing():
    features = unit_features()
    features[GIVEN.rows[0]] = 0
    sums = block_of(features, means=False).sums(GIVEN)[0]
    assert (sums.left_out[0] == 0).all()
    assert (sums.whole[GIVEN.rows[0]] == 0).all()


def test_labels_of_classes_with_several_labels_are_judged_among_these_classes():
    assert GIVEN.counts.tolist() == [3, 2, 1]
    np.testing.assert_array_equal(GIVEN.indicators.argmax(axis=1), GIVEN.y)
    judged = GIVEN.judged
    assert judged.rows.tolist() == [0, 1, 2, 4, 5]
    assert judged.classes.tolist() == [0, 1]
    assert judged.y.tolist() == [0, 1, 0, 1, 0]
    left_out = np.arange(18.0).reshape(6, 3)
    np.testing.assert_array_equal(judged.among(left_out), left_out[[0, 1, 2, 4, 5], :2])
    p = np.tile([0.3, 0.2, 0.5], (6, 1))
    assert_close(judged.own(p), np.array([0.6, 0.4, 0.6, 0.4, 0.6]))


@pytest.mark.parametrize("y", [[0, 1, 2], [0, 1, 2, 0, 0, 0]], ids=["one each", "one class has several"])
def test_with_fewer_than_two_such_classes_nothing_is_judged(y):
    assert len(Given(np.arange(len(y)), np.array(y), 3).judged) == 0


LABELS = np.array([0, 0, 1, 1, 2])
FIVE = Given(np.arange(5), LABELS, 3)
SHARES = np.log([0.4, 0.4, 0.2])


def random_sums(count=3, n=20, seed=0):
    rng = np.random.default_rng(seed)
    sums = []
    for _ in range(count):
        whole = rng.normal(size=(n, 3))
        whole[:5] += 2 * np.eye(3)[LABELS]
        sums.append(MemberSums(whole, whole[:5] + 0.3 * rng.normal(size=(5, 3)), np.empty((0, 3))))
    return sums


def weighed_one_by_one(sums, ranks):
    """Weights by triple loop, without pruning."""
    logs = np.empty((len(sums), len(STRENGTHS)))
    for m, one in enumerate(sums):
        relative = one.whole - one.whole.mean(axis=1, keepdims=True)
        unit = np.mean([max(abs(v) for v in row) for row in relative])
        for s, nats in enumerate(STRENGTHS):
            logs[m, s] = -ranks[m] / len(LABELS)
            for j in range(4):  # the fifth label is alone in its class, and the class does not count
                logs[m, s] += np.log(softmax((nats / unit * one.left_out[j] + SHARES)[:2])[LABELS[j]])
    return softmax(logs)


def test_weights_are_probabilities_of_the_labels_times_the_prior():
    sums, ranks = random_sums(), np.array([2.0, 4.0, 8.0])
    found = average(sums, ranks, FIVE, SHARES)
    expected = weighed_one_by_one(sums, ranks)
    expected = np.where(expected >= 1e-4 * expected.max(), expected, 0)
    np.testing.assert_allclose(found.weights, expected / expected.sum(), rtol=1e-9, atol=1e-12)
    assert_close(found.weights.sum(), 1.0, terms=3 * len(STRENGTHS))


def test_the_prior_decides_if_no_label_has_company():
    alone = Given(np.arange(3), np.arange(3), 3)
    ranks = np.array([1.2, 3.0, 9.0])
    sums = [MemberSums(one.whole, one.left_out[:3], one.directions) for one in random_sums()]
    found = average(sums, ranks, alone, np.zeros(3))
    expected = softmax(-ranks / 3)
    assert_close(found.weights, np.repeat(expected[:, None], len(STRENGTHS), axis=1) / len(STRENGTHS), condition=4)


def test_probabilities_average_over_members_and_strengths():
    sums = random_sums()
    found = average(sums, np.array([2.0, 4.0, 8.0]), FIVE, SHARES)
    whole = [one.whole for one in sums]
    p = found.probabilities(whole)
    expected = sum(
        found.weights[m, s] * softmax(found.strengths[m, s] * whole[m] + SHARES, axis=1)
        for m in range(3)
        for s in range(len(STRENGTHS))
    )
    assert_close(p, expected, terms=3 * len(STRENGTHS), condition=100)
    assert_close(p.sum(axis=1), 1.0, terms=20)


def test_pruning_changes_probabilities_by_less_than_its_threshold(monkeypatch):
    sums, ranks = random_sums(6), np.array([2.0, 4, 8, 16, 32, 64])
    whole = [one.whole for one in sums]
    pruned = average(sums, ranks, FIVE, SHARES)
    monkeypatch.setattr(experts, "NEGLIGIBLE", 0.0)
    every = average(sums, ranks, FIVE, SHARES)
    assert (pruned.weights == 0).any()
    dropped = every.weights[pruned.weights == 0].sum()
    assert dropped <= 1e-4 * every.weights.size
    assert np.abs(pruned.probabilities(whole) - every.probabilities(whole)).max() <= 2 * dropped + 1e-12


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_a_member_that_says_the_same_everywhere_gives_the_class_shares(value):
    flat = MemberSums(np.full((20, 3), value), np.full((5, 3), value), np.empty((0, 3)))
    found = average([flat], np.array([1.0]), FIVE, SHARES)
    assert_close(found.probabilities([flat.whole]), np.tile(softmax(SHARES), (20, 1)), terms=len(STRENGTHS))


@pytest.mark.parametrize("size", [1e-307, 1e-40])
def test_a_member_whose_sums_have_vanished_says_nothing(size):
    sums = random_sums()
    faint = MemberSums(size * sums[0].whole, size * sums[0].left_out, sums[0].directions)
    with np.errstate(all="raise", under="ignore"):
        found = average([faint, sums[1]], np.array([2.0, 2.0]), FIVE, SHARES)
    assert not found.strengths[0].any()
    assert np.isfinite(found.weights).all()


MEAN = np.array([0.1, 0.0, -0.2])


def test_a_blend_is_the_softmax_of_a_weighted_sum():
    sums = list(np.random.default_rng(0).normal(size=(4, 9, 3)))
    weights = np.array([0.5, 0.0, 2.0, 1.0])
    expected = softmax(MEAN + sum(w * s for w, s in zip(weights, sums, strict=True)), axis=1)
    assert_close(Blend(weights, MEAN).probabilities(sums), expected, terms=8, condition=20)


def test_a_member_that_knows_the_labels_has_the_weight():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 6)
    given = Given(np.arange(18), y, 3)
    right = np.eye(3)[y] + 0.1 * rng.normal(size=(18, 3))
    sums = [MemberSums(one, one, np.empty((0, 3))) for one in (rng.normal(size=(18, 3)), right)]
    found = blend(sums, given, np.zeros(3))
    assert (found.weights >= 0).all()
    assert found.weights[1] > 10 * found.weights[0]
    assert (found.probabilities([one.whole for one in sums]).argmax(axis=1) == y).all()


def test_labels_without_company_do_not_count():
    rng = np.random.default_rng(0)
    y = np.array([0, 0, 1, 1, 2])
    left_out = rng.normal(size=(2, 5, 3)) + np.eye(3)[y]
    changed = left_out.copy()
    changed[:, 4] = rng.normal(size=(2, 3)) * 100
    weights = [
        blend([MemberSums(one, one, np.empty((0, 3))) for one in sums], Given(np.arange(5), y, 3), MEAN).weights
        for sums in (left_out, changed)
    ]
    np.testing.assert_array_equal(*weights)


def objective(weights, probabilities):
    """Log probability of the labels, plus the prior: what is to be as large as possible."""
    return np.log(weights @ probabilities).sum() + PRIOR / len(weights) * np.log(weights).sum()


@pytest.mark.parametrize(("voices", "labels"), [(2, 5), (3, 40), (3, 400)])
def test_weights_are_the_concave_optimum(voices, labels):
    p = np.random.default_rng(labels).uniform(0.01, 1, size=(voices, labels))
    p[0] **= 2
    found = stack(p)
    assert_close(found.sum(), 1.0, terms=voices)
    constraint = {"type": "eq", "fun": lambda w: w.sum() - 1}
    start = np.full(voices, 1 / voices)
    bounds = [(1e-6, 1)] * voices
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # older versions of SciPy step out of bounds, and say so
        solved = minimize(lambda w: -objective(w, p), start, bounds=bounds, constraints=constraint, tol=1e-12)
    np.testing.assert_allclose(found, solved.x, atol=1e-4)  # of the solver, where the objective is flat
    assert objective(found, p) >= objective(solved.x / solved.x.sum(), p) - 1e-7


def test_without_labels_and_with_equal_voices_all_are_equally_loud():
    assert_close(stack(np.empty((3, 0))), np.full(3, 1 / 3))
    assert_close(stack(np.tile([0.2, 0.9, 0.5], (2, 1))), np.full(2, 0.5), terms=10)


def test_a_voice_that_excludes_the_labels_is_quiet_but_heard():
    weights = stack(np.array([[0.0] * 90, [0.9] * 90]))
    assert weights[0] == pytest.approx(PRIOR / 2 / (90 + PRIOR), abs=1e-6)


N, Q = 30, 3


def case(n_labelled, count=4, seed=0):
    """Members of which the first knows the truth."""
    rng = np.random.default_rng(seed)
    truth = np.arange(N) % Q
    rows = np.arange(n_labelled)
    given = Given(rows, truth[rows], Q)
    members = [Member(0, 2.0 * 2**m, 1.0, False) for m in range(count)]
    sums = []
    for m in range(count):
        whole = rng.normal(size=(N, Q)) + (3 * np.eye(Q)[truth] if m == 0 else 0)
        sums.append(MemberSums(whole, whole[rows], rng.normal(size=(2, Q))))
    return truth, given, members, sums


def expert(truth, given, sure):
    p = np.full((N, Q), (1 - sure) / 2)
    p[np.arange(N), truth] = sure
    return Opinion(lambda: p, p[given.rows])


@pytest.mark.parametrize("n_labelled", [3, 6, 24])
@pytest.mark.parametrize("third", [False, True])
def test_probabilities_and_shares_add_up_to_one(n_labelled, third):
    truth, given, members, sums = case(n_labelled)
    supervised = expert(truth, given, 0.9) if third else None
    stacked = learn_experts(members, sums, given, np.zeros(Q), supervised)
    p = stacked.probabilities(stacked.sums, supervised.whole() if third else None)
    assert_close(p.sum(axis=1), 1.0, terms=Q)
    assert_close(stacked.shares.sum(), 1.0, terms=len(members))
    assert_close(stacked.loudness.sum(), 1.0, terms=3)
    assert len(stacked.members) == len(stacked.sums) == len(stacked.directions) == len(stacked.average.weights)


def test_one_label_per_class_leaves_only_the_average():
    _, given, members, sums = case(3)
    stacked = learn_experts(members, sums, given, np.zeros(Q))
    assert stacked.blend is None
    assert stacked.loudness.tolist() == [1, 0, 0, 0]


def test_many_labels_find_the_member_that_knows():
    truth, given, members, sums = case(24)
    stacked = learn_experts(members, sums, given, np.zeros(Q))
    assert stacked.members[int(stacked.shares.argmax())] is members[0]
    p = stacked.probabilities(stacked.sums)
    assert (p.argmax(axis=1) == truth).mean() > 0.8


def test_a_voice_that_knows_more_is_louder():
    truth, given, members, sums = case(24)
    loud, quiet = (
        learn_experts(members, sums, given, np.zeros(Q), expert(truth, given, sure)).loudness[2]
        for sure in (0.99, 0.05)
    )
    assert EXPERTS[2] == "labelled points alone"
    prior = 8 / (2 * (8 + HALF_ALONE))  # eight labels per class
    assert loud > prior > quiet == 0


def test_clusters_together_weigh_as_much_as_the_rest_of_one_unit():
    graphs = [Member(0, 2.0, 1.0, False, view) for view in range(3) for _ in range(6)]
    clusters = [Member(TIED, 2.0, 4.0, False), Member(TIED, 2.0, 8.0, False)]
    assert_close(experts._prior(graphs + clusters)[-2:].sum(), 6.0)
    np.testing.assert_array_equal(experts._prior(graphs[:6] + clusters), np.ones(8))


def strands(apart, n=60):
    """Two parallel rows of points, joined along each, and weakly across: labels, and the graph."""
    rows = np.arange(n) // (n // 2)
    along = sparse.diags_array(np.where(np.diff(rows) == 0, 1.0, 0.0), offsets=1, shape=(n, n))
    across = sparse.diags_array(np.full(n // 2, apart), offsets=n // 2, shape=(n, n))
    upper = along + across
    return rows, CutGraph.of(sparse.csr_array(upper + upper.T))


def test_a_cut_weighs_least_of_all_labellings_that_agree_with_the_labels():
    rng = np.random.default_rng(0)
    for _ in range(10):
        dense = np.triu(rng.random((9, 9)) * (rng.random((9, 9)) < 0.5), 1)
        graph = CutGraph.of(sparse.csr_array(dense + dense.T))
        codes = np.array([0, 0, 1, 1, *[-1] * 5])
        every = np.array(np.meshgrid(*[[0, 1]] * 5)).reshape(5, -1).T
        every = np.hstack([np.tile(codes[:4], (len(every), 1)), every])
        weighs = [(dense * (one[:, None] != one)).sum() for one in every]
        found = graph.labels(codes)
        known = found != NO_LABEL
        np.testing.assert_array_equal(found[:4], codes[:4])
        assert (dense * (found[:, None] != found))[np.ix_(known, known)].sum() == pytest.approx(min(weighs))


def test_a_part_of_a_graph_without_a_label_is_left_to_others():
    path = sparse.diags_array([[1.0, 1e-9, 1.0]], offsets=[1], shape=(4, 4))
    found = CutGraph.of(sparse.csr_array(path + path.T)).labels(np.array([0, -1, -1, -1]))
    assert found.tolist() == [0, 0, NO_LABEL, NO_LABEL]
    given = Given(np.arange(20), np.repeat([0, 1], 10), 2)
    alone = sparse.csr_array(([1.0], ([1], [2])), shape=(21, 21))
    assert cut_opinion(CutGraph.of(alone + alone.T), given, 21) is None
    assert CutGraph.of(sparse.csr_array((MOST_POINTS + 1, MOST_POINTS + 1))) is None


def test_the_cut_is_heard_where_labels_that_are_left_out_agree():
    truth, graph = strands(0.05)
    given = Given(np.arange(0, 60, 3), truth[::3], 2)
    said = cut_opinion(graph, given, 60)
    np.testing.assert_array_equal(said.whole().argmax(axis=1), truth)
    error = 0.5 / 21  # no label of twenty is wrong
    assert_close(said.left_out[np.arange(20), given.y], np.full(20, 1 - error))
    mixed_up = Given(given.rows, np.arange(20) % 2, 2)
    assert cut_opinion(graph, mixed_up, 60) is None
    assert cut_opinion(graph, Given(given.rows[1:], given.y[1:], 2), 60) is None  # nineteen labels
    assert cut_opinion(graph, Given(given.rows, given.y, 3), 60) is None


def test_a_cut_that_knows_more_is_loud_and_one_that_knows_less_is_not_heard():
    rng = np.random.default_rng(0)
    truth = np.arange(N) % 2
    given = Given(np.arange(24), truth[:24], 2)
    members = [Member(0, 2.0, 1.0, False)]
    whole = rng.normal(size=(N, 2)) + 0.5 * np.eye(2)[truth]
    sums = [MemberSums(whole, whole[:24], np.zeros((2, 2)))]
    right, wrong = (np.eye(2)[labels] * 0.9 + 0.05 for labels in (truth, 1 - truth))
    loud, quiet = (
        learn_experts(members, sums, given, np.zeros(2), None, Opinion(partial(np.copy, p), p[:24])).loudness[3]
        for p in (right, wrong)
    )
    assert EXPERTS[3] == "minimum cut"
    assert loud > experts.CUT > quiet == 0


def test_the_mean_of_a_class_raises_its_probability():
    _, given, members, sums = case(6)
    plain, raised = (learn_experts(members, sums, given, mean) for mean in (np.zeros(Q), np.array([0.0, 2.0, 0.0])))
    assert (raised.probabilities(raised.sums)[:, 1] > plain.probabilities(plain.sums)[:, 1]).mean() > 0.9

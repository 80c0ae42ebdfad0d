"""Free weights: one optimum, right gradients and curvature, conditions of the optimum, sums against loops."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp

from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import store_bound
from coxfield.kernels.mixture import Mixture
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.transforms import Whitening
from coxfield.selection.mixture import point_weights
from coxfield.selection.mixture.concave import MEAN_PRECISION
from coxfield.selection.mixture.free import TOLERANCE, FreeProblem, State, nonnegative_minimum
from coxfield.selection.mixture.point_weights import candidates_of, free_kernels
from derivatives import difference
from mixtures import by_loops, ladder
from mixtures import problem as points


def made(seed=0, n=40, n_classes=3, tied=2, kernels=2, rate=0.2, learn_mean=True):
    """Random points with squared exponentials around all of them, and class sums of made-up tied members."""
    rng = np.random.default_rng(seed)
    y = np.sort(rng.integers(n_classes, size=n))
    X = rng.normal(size=(n, 2)) + 0.8 * np.eye(n_classes)[y][:, :2]
    d2 = np.square(X[:, None] - X).sum(axis=2)
    K = np.stack([np.exp(-d2 / (2 * scale**2)) for scale in (1.0, 0.4)[:kernels]])
    K[:, np.arange(n), np.arange(n)] = 0
    evidence = rng.uniform(-1, 1, size=(tied, n, n_classes))
    evidence[:, np.arange(n), y] += 0.2
    counts, centre = rng.uniform(0.5, 2, size=n), np.log(np.bincount(y, minlength=n_classes) / n)
    return FreeProblem(evidence, K, y, y, counts, centre, rate, np.ones(n, bool), learn_mean)


def some_state(problem, seed=0, support=15):
    """Weights at random."""
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.choice(problem.kernels.shape[0] * len(problem.classes), support, replace=False))
    return State(rng.uniform(0, 1, len(problem.evidence)), columns, rng.uniform(0, 1, support), rng.normal(size=3))


def test_the_loss_is_the_negative_log_posterior():
    problem, state = made(), some_state(made())
    beta, F = state.dense(2, 40), np.tile(state.mean, (40, 1))
    for j in range(40):
        for c in range(3):
            F[j, c] += state.tied @ problem.evidence[:, j, c]
            for m in range(2):
                F[j, c] += sum(
                    beta[m, k] * problem.kernels[m, j, k] for k in range(40) if problem.classes[k] == c and k != j
                )
    fit = problem.counts @ log_softmax(F, axis=1)[np.arange(40), problem.y]
    away = state.mean - problem.centre
    prior = -state.tied.sum() - 0.2 * state.beta.sum() - MEAN_PRECISION / 2 * away @ away
    np.testing.assert_allclose(problem.scores(state), F, rtol=1e-12)
    assert problem.loss(state) == pytest.approx(-(fit + prior), rel=1e-12)


def test_gradients():
    problem, state = made(), some_state(made())
    by_tied, by_column, by_mean = problem.gradients(state)
    dense = state.dense(2, 40).ravel()

    def loss(tied, beta, mean):
        return problem.loss(State(tied, np.arange(80), beta, mean))

    for k, step in enumerate(np.eye(2)):
        slope = difference(lambda t, step=step: loss(state.tied + t * step, dense, state.mean))
        assert by_tied[k] == pytest.approx(slope, rel=1e-6, abs=1e-6)
    for k in (0, 7, 44, 79):
        slope = difference(lambda t, k=k: loss(state.tied, dense + t * np.eye(80)[k], state.mean))
        assert by_column.ravel()[k] == pytest.approx(slope, rel=1e-6, abs=1e-6)
    for k, step in enumerate(np.eye(3)):
        slope = difference(lambda t, step=step: loss(state.tied, dense, state.mean + t * step))
        assert by_mean[k] == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_curvature():
    problem, state = made(), some_state(made())
    active = problem._restricted(state, np.ones(2, bool))
    theta = np.concatenate([state.tied, state.beta[active.order], state.mean])

    def gradient(at):
        return active._gradient(at, active._loss(at)[1])

    H = active._hessian(active._loss(theta)[2])
    for k, step in enumerate(np.eye(len(theta))):
        slopes = (gradient(theta + 1e-5 * step) - gradient(theta - 1e-5 * step)) / 2e-5
        np.testing.assert_allclose(H[k], slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("learn_mean", [True, False])
def test_ten_starts_lead_to_one_optimum_that_satisfies_its_conditions(learn_mean):
    problem = made(learn_mean=learn_mean)
    first = problem.solve(tolerance=1e-8)
    assert problem.violation(first) <= 1e-7
    for seed in range(10):
        start = some_state(problem, seed)
        start = start if learn_mean else State(start.tied, start.columns, start.beta, problem.centre)
        other = problem.solve(start, tolerance=1e-8)
        assert problem.loss(other) == pytest.approx(problem.loss(first), abs=1e-6)
        np.testing.assert_allclose(problem.scores(other), problem.scores(first), atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.floats(0, 1))
def test_the_loss_is_convex(seed, share):
    problem, rng = made(), np.random.default_rng(seed)
    a, b = (State(rng.uniform(0, 3, 2), np.arange(80), rng.exponential(size=80), rng.normal(size=3)) for _ in range(2))
    mixed = [share * p + (1 - share) * q for p, q in ((a.tied, b.tied), (a.beta, b.beta), (a.mean, b.mean))]
    between = State(mixed[0], np.arange(80), *mixed[1:])
    assert problem.loss(between) <= share * problem.loss(a) + (1 - share) * problem.loss(b) + 1e-9


def test_candidates_that_are_not_allowed_and_rows_without_weight_do_not_count():
    problem = made()
    allowed, counts = np.arange(40) % 3 > 0, np.where(np.arange(40) % 4 > 0, problem.counts, 0)
    some = FreeProblem(**{**vars(problem), "allowed": allowed, "counts": counts})
    found = some.solve(problem.solve(), tolerance=1e-8)
    assert allowed[found.columns % 40].all()
    kept, rows = np.flatnonzero(allowed), np.flatnonzero(counts)
    alone = FreeProblem(
        problem.evidence[:, rows],
        problem.kernels[:, rows][:, :, kept],
        problem.classes[kept],
        problem.y[rows],
        counts[rows],
        problem.centre,
        problem.rate,
        np.ones(len(kept), bool),
    )
    assert alone.loss(alone.solve(tolerance=1e-8)) == pytest.approx(some.loss(found), abs=1e-6)


def test_a_larger_rate_has_a_smaller_sum_of_weights():
    sums = [made(rate=rate).solve(tolerance=1e-6).beta.sum() for rate in (0.03, 0.3, 3.0, 100.0)]
    assert sums == sorted(sums, reverse=True)
    assert sums[0] > 0 == sums[-1]


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 12))
def test_the_quadratic_problem_satisfies_its_conditions(seed, n):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    Q, b = A @ A.T + 1e-3 * np.eye(n), rng.normal(size=n)
    x = nonnegative_minimum(Q, b, rng.random(n) < 0.5)
    slope = Q @ x - b
    assert (x >= 0).all()
    np.testing.assert_allclose(np.minimum(x, slope), 0, atol=1e-6)


def free_ladder(labelled, transform=None, name="raw", seed=1):
    """A ladder in which a third of the points have weights."""
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=(2, len(labelled))) * (rng.random((2, len(labelled))) < 0.4)
    plain = ladder(transform, name, factors=(1.0, 0.5), alphas=(), weights=np.empty((2, 0)))
    return replace(plain, point_weights=weights)


def free_by_loops(part, labelled, X, left_out=None):
    """Class sums of a free ladder, one pair after the other."""
    found = np.zeros((len(X), labelled.n_classes))
    for f in range(len(part.factors)):
        kernel = part.kernel(f)
        for i, x in enumerate(X):
            for j, t in enumerate(labelled.X):
                if left_out is None or left_out[i] != j:
                    k = kernel(part.represent(x[None]), part.represent(t[None]))[0, 0]
                    found[i, labelled.y[j]] += labelled.counts[j] * part.point_weights[f, j] * k
    return found


@pytest.mark.parametrize("whiten", [False, True])
def test_values_of_columns_are_those_of_kernels_with_a_zero_diagonal(whiten):
    labelled = points()
    whitening = Whitening().fit(labelled.X, labelled.y) if whiten else None
    part = free_ladder(labelled, whitening)
    rows, candidates = np.arange(0, 24, 2), np.argsort(labelled.y, kind="stable")[:15]
    (kept,), K = free_kernels(labelled, [part], rows, candidates)
    assert kept is part
    for f in range(2):
        for i, row in enumerate(rows):
            Z = part.represent(labelled.X)
            if whiten:
                (directions,), (factor,) = whitening.left_out(Z[[row]], np.array([row]))
                moved = np.square(Z - Z[row]).sum(axis=1) + factor * np.square((Z - Z[row]) @ directions)
                values = np.exp(-0.5 * moved / part.length_scale(f) ** 2)
            else:
                values = part.kernel(f)(Z[[row]], Z)[0]
            values[row] = 0
            np.testing.assert_allclose(K[f, i], values[candidates], rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
def test_class_sums_of_free_and_tied_ladders_are_those_of_loops(weighted):
    labelled = points(weighted=weighted)
    tied, part = ladder(), free_ladder(labelled)
    mixture = Mixture((tied, part), labelled.X, labelled.weights)
    bound = mixture.bind_reference()
    shared = PerClass.shared_by(bound.covariance, 3)
    store = store_bound([bound], labelled.y, shared, labelled.weights)
    X = labelled.X[:7] + 0.3
    alone = Mixture((tied,), labelled.X, labelled.weights)
    C = by_loops(alone, X, labelled.X) * labelled.counts
    expected = np.stack([C[:, labelled.y == c].sum(axis=1) for c in range(3)], axis=1)
    expected += free_by_loops(part, labelled, X)
    np.testing.assert_allclose(class_sums(store, X).values, expected, rtol=1e-10)
    left = class_sums(store, labelled.X, np.arange(24)).values
    without = class_sums(
        store_bound([alone.bind_reference()], labelled.y, PerClass.shared_by(alone, 3), labelled.weights),
        labelled.X,
        np.arange(24),
    ).values
    free = free_by_loops(part, labelled, labelled.X, np.arange(24))
    np.testing.assert_allclose(left, without + free, rtol=1e-10, atol=1e-12)


def test_free_ladders_share_the_points_of_tied_ones_that_see_the_same():
    labelled = points()
    tied, part = ladder(), free_ladder(labelled)
    same = replace(part, transform=tied.transform, covariance=tied.covariance)
    one, other, alone = Mixture((tied, same, part), labelled.X).bind_reference().ladders
    assert other.points is one.points
    assert alone.points is not one.points


def test_free_ladders_on_their_own_hold_the_points_that_have_a_weight():
    labelled = points()
    part = free_ladder(labelled)
    support, every = np.flatnonzero(part.point_weights.any(axis=0)), part.bind(labelled.X).points
    order = np.argsort(labelled.y, kind="stable")
    held = Mixture((ladder(), part), labelled.X).bind_reference()[order].ladders[1].points
    assert len(held) == len(labelled)
    assert len(held.held) == len(support) < len(labelled)
    few = held[np.flatnonzero(np.isin(order, support))]
    np.testing.assert_array_equal(few.points.coordinates, every.points.coordinates[order[np.isin(order, support)]])
    assert "whole" not in held.__dict__
    for rows in (slice(3, 9), order, np.arange(5)):  # others may be asked for
        np.testing.assert_array_equal(held[rows].points.coordinates, every.points.coordinates[order][rows])


def test_free_ladders_are_no_part_of_the_covariance():
    labelled = points()
    tied, part = ladder(), free_ladder(labelled)
    mixture, alone = Mixture((tied, part), labelled.X), Mixture((tied,), labelled.X)
    X = labelled.X[:5] + 0.1
    np.testing.assert_allclose(mixture(X), alone(X), rtol=1e-12)
    np.testing.assert_allclose(mixture.diag(X), alone.diag(X), rtol=1e-12)
    assert mixture.support.sum() == np.count_nonzero(part.point_weights.any(axis=0))


def test_logarithms_of_free_sums_far_away_and_with_rows_that_have_no_weight():
    labelled = points()
    part = free_ladder(labelled)
    mixture = Mixture((part,), labelled.X)
    shared = PerClass.shared_by(mixture, 3)
    store = store_bound([mixture.bind_reference()], labelled.y, shared)
    far = labelled.X[:4] + 2e3
    logs = []
    for f, weights in enumerate(part.point_weights):
        d2 = np.square(far[:, None] - labelled.X).sum(axis=2)
        with np.errstate(divide="ignore"):
            logs.append(np.log(weights) - 0.5 * d2 / part.length_scale(f) ** 2)
    logs = np.logaddexp(*logs)
    expected = np.stack([logsumexp(logs[:, labelled.y == c], axis=1) for c in range(3)], axis=1)
    assert expected.max() < -1e4
    more = store.append(labelled.X[:5] + 0.2, np.eye(3)[[0, 1, 2, 0, 1]])
    for each in (store, more):  # the largest sum decides; the others are too small beside it
        found = class_sums(each, far).logs
        np.testing.assert_allclose(found.max(axis=1), expected.max(axis=1), rtol=1e-9)
        np.testing.assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1))
    near = labelled.X[:4] + 0.1
    np.testing.assert_array_equal(class_sums(more, near).values, class_sums(store, near).values)


def test_a_start_at_which_all_probabilities_are_0_or_1_is_not_followed():
    """Second derivatives vanish there, and Newton's method cannot leave."""
    problem = made()
    wild = replace(problem.start, columns=np.arange(40), beta=np.full(40, 1e4), mean=np.array([-1e4, 0, 1e4]))
    assert problem.violation(problem.solve(wild)) <= TOLERANCE
    assert problem.loss(problem.solve(wild)) == pytest.approx(problem.loss(problem.solve()), rel=1e-6)


def test_points_that_have_a_weight_stay_candidates(monkeypatch):
    monkeypatch.setattr(point_weights, "MOST_CANDIDATES", 10)
    y, held = np.arange(30) % 3, np.zeros(30, bool)
    held[[3, 4, 29]] = True
    found = candidates_of(y, 1, 1, held)
    assert len(found) == 10
    assert {3, 4, 29} <= set(found.tolist())
    assert (np.diff(y[found]) >= 0).all()

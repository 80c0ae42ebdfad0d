"""Harmonic functions against the plain linear system and refits; elimination against arithmetic without rounding."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from coxfield.baselines import HarmonicFunctions
from coxfield.baselines.harmonic import CRITERIA, eliminate, step_weights
from coxfield.datasets import make_circles
from coxfield.selection.grid import folds
from coxfield.selection.loo import SelectionPath
from strategies import labelled_points
from tolerances import assert_close, assert_same_error, rounding


def elimination_terms(n):
    """Units of rounding of an elimination without subtractions: every entry is right to 2 n^3 of them."""
    return 2 * n**3


def condition(weights, free):
    """How much a linear solver may amplify rounding where the walk through the free states takes long."""
    P = weights / weights.sum(axis=1, keepdims=True)
    return np.linalg.cond(np.eye(np.sum(free)) - P[np.ix_(free, free)])


@pytest.mark.parametrize("block", [1, 3, 7, 48])
def test_elimination_is_the_absorption_of_the_walk_whatever_the_block(block):
    rng = np.random.default_rng(0)
    weights = rng.random((20, 20))
    np.fill_diagonal(weights, 0)
    P = weights / weights.sum(axis=1, keepdims=True)
    walk = eliminate(weights, 16, block)
    passing = np.linalg.inv(np.eye(16) - P[:16, :16])
    rounded = {"terms": elimination_terms(20), "condition": condition(weights, np.arange(20) < 16)}
    assert_close(walk.arrival, passing @ P[:16, 16:], **rounded)
    assert_close(walk.steps, weights[16:, 16:] + weights[16:, :16] @ passing @ P[:16, 16:], **rounded)


def exact_arrival(weights, count):
    """The same elimination in rational numbers."""
    P = [[Fraction(float(w)) for w in row] for row in weights]
    n = len(P)
    for k in range(count):
        exits = sum(P[k][k + 1 :])
        P[k][k + 1 :] = [w / exits for w in P[k][k + 1 :]]
        for i in range(k + 1, n):
            P[i][k + 1 :] = [P[i][j] + P[i][k] * P[k][j] for j in range(k + 1, n)]
    arrival = [None] * count
    for k in reversed(range(count)):
        arrival[k] = [
            P[k][j] + sum(P[k][i] * arrival[i][j - count] for i in range(k + 1, count)) for j in range(count, n)
        ]
    return np.array(arrival, dtype=float)


def test_every_digit_survives_where_the_laplacian_is_singular_to_working_precision():
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(8, 2)), 4 + rng.normal(size=(8, 2))])
    weights = step_weights(cdist(X, X, "sqeuclidean"), 0.15)
    wanted = exact_arrival(weights, 12)
    P = weights / weights.sum(axis=1, keepdims=True)
    # Beyond 1 / eps a condition number is rounding itself, so that only its order of magnitude is known.
    assert np.linalg.cond(np.eye(12) - P[:12, :12]) > 0.01 / np.finfo(float).eps
    assert_close(eliminate(weights, 12, 5).arrival, wanted, terms=elimination_terms(16))


@pytest.mark.parametrize("n", [2, 5, 30])
@pytest.mark.parametrize("odds", [1.0, 3.0])
def test_on_a_line_the_walk_arrives_as_a_gambler_is_ruined(n, odds):
    """From k of n, with odds r to gain, the gambler gains all with probability (1 - r^-k) / (1 - r^-n)."""
    weights = np.zeros((n + 1, n + 1))
    for k in range(n):
        weights[k, k + 1], weights[k + 1, k] = odds, 1.0
    order = np.r_[1:n, 0, n]  # those to eliminate come first
    walk = eliminate(weights[np.ix_(order, order)], n - 1)
    k = np.arange(1, n)
    gains = k / n if odds == 1 else (1 - odds**-k) / (1 - odds**-n)
    rounded = {"terms": elimination_terms(n + 1), "condition": 1 / (1 - 1 / odds) if odds > 1 else 1}
    assert_close(walk.arrival[:, 1], gains, **rounded)
    assert_close(walk.arrival.sum(axis=1), np.ones(n - 1), terms=elimination_terms(n + 1))
    assert walk.connected


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 9), st.integers(0, 2**20), st.integers(1, 4))
def test_arrivals_are_probabilities_and_the_diagonal_and_units_do_not_matter(n, seed, block):
    rng = np.random.default_rng(seed)
    weights, count = rng.random((n, n)), int(rng.integers(1, n))
    found = eliminate(weights, count, block)
    assert_close(found.arrival.sum(axis=1), np.ones(count), terms=elimination_terms(n))
    scaled = weights * rng.uniform(0.1, 10, size=(n, 1))  # each row up to a factor
    np.fill_diagonal(scaled, 0)
    assert_close(eliminate(scaled, count, block).arrival, found.arrival, terms=elimination_terms(n))


def test_states_from_which_there_is_no_way_on_are_told():
    weights = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert not eliminate(weights, 2).connected
    assert eliminate(weights + 1e-300, 2).connected


def test_nothing_to_eliminate_leaves_the_steps():
    weights = np.random.default_rng(0).random((3, 3))
    walk = eliminate(weights, 0)
    np.testing.assert_array_equal(walk.steps, weights)
    assert walk.arrival.shape == (0, 3)


def test_what_the_caller_gave_is_not_edited():
    weights = np.random.default_rng(0).random((4, 4))
    before = weights.copy()
    eliminate(weights, 2)
    np.testing.assert_array_equal(weights, before)


def test_shares_of_the_work_are_told_of():
    told = []
    eliminate(np.random.default_rng(0).random((20, 20)), 15, block=4, done=told.append)
    assert len(told) == 4
    assert sum(told) == pytest.approx(1)
    assert told[0] > told[1] > told[2]  # what is left becomes smaller


def laplacian_solution(X, codes, n_classes, length_scale):
    """L_uu f_u = W_ul f_l as it stands in Zhu et al., for every row."""
    W = np.exp(-cdist(X, X, "sqeuclidean") / (2 * length_scale**2))
    laplacian = np.diag(W.sum(axis=1)) - W
    known = codes >= 0
    f = np.zeros((len(X), n_classes))
    f[known, codes[known]] = 1
    if not known.all():
        f[~known] = np.linalg.solve(laplacian[np.ix_(~known, ~known)], W[np.ix_(~known, known)] @ f[known])
    return f


def hide_some(y, n_classes, rng):
    """The labels with most of them hidden; every class keeps two labels if it has them."""
    codes = np.where(rng.random(len(y)) < 0.6, -1, y)
    for label in range(n_classes):
        codes[np.flatnonzero(y == label)[:2]] = label
    return codes


@settings(max_examples=40, deadline=None)
@given(labelled_points(), st.floats(0.8, 5.0), st.integers(0, 2**32 - 1))
def test_the_functions_solve_the_linear_system(points, ratio, seed):
    X, y = points
    codes = hide_some(y, y.max() + 1, np.random.default_rng(seed))
    length_scale = ratio * X.std()
    clf = HarmonicFunctions(length_scale).fit(X, codes)
    f = laplacian_solution(X, codes, y.max() + 1, length_scale)
    W = np.exp(-cdist(X, X, "sqeuclidean") / (2 * length_scale**2))
    amplified = max(1, condition(W, codes < 0)) if (codes < 0).any() else 1
    assert_close(clf.label_distributions_, f, terms=elimination_terms(len(X)), scale=1.0, condition=amplified)
    assert_close(clf.label_distributions_.sum(axis=1), 1, terms=elimination_terms(len(X)))


@pytest.mark.parametrize("class_mass_normalisation", [False, True])
def test_one_elimination_serves_all_folds(class_mass_normalisation):
    X, truth = make_circles(2, random_state=0)
    X, truth = X[::3], truth[::3]
    y = np.where(np.arange(len(truth)) % 4 == 0, truth, -1)
    clf = HarmonicFunctions(length_scales=[0.4, 1.0], class_mass_normalisation=class_mass_normalisation).fit(X, y)
    for k, length_scale in enumerate((1.0, 0.4)):
        tested, labels, distributions, losses = [], [], [], []
        for rows in folds(y, 10):
            visible = y.copy()
            visible[rows] = -1
            refit = HarmonicFunctions(length_scale, class_mass_normalisation=class_mass_normalisation).fit(X, visible)
            tested.extend(rows)
            labels.extend(refit.transduction_[rows])
            distributions.extend(refit.label_distributions_[rows])
            losses.extend(-np.log(refit.label_distributions_[rows, truth[rows]]))
        margin = rounding(1.0, terms=elimination_terms(len(X)))
        assert_same_error(clf.selection_path_["cv_error"][k], labels, truth[tested], distributions, margin)
        assert clf.selection_path_["cv_log_loss"][k] == pytest.approx(np.mean(losses))


def test_class_masses_are_in_proportion_to_the_labels():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2))
    y = np.full(60, -1)
    y[:6] = [0, 0, 0, 0, 1, 1]
    plain = HarmonicFunctions(1.0).fit(X, y).label_distributions_[6:]
    scaled = plain * np.array([2 / 3, 1 / 3]) / plain.sum(axis=0)
    np.testing.assert_allclose(scaled.sum(axis=0), [2 / 3, 1 / 3])
    clf = HarmonicFunctions(1.0, class_mass_normalisation=True).fit(X, y)
    np.testing.assert_allclose(clf.label_distributions_[6:], scaled / scaled.sum(axis=1, keepdims=True))


def test_new_points_take_the_weighted_mean_of_the_training_points():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 2)), np.where(np.arange(30) < 6, np.arange(30) % 2, -1)
    clf = HarmonicFunctions(0.7).fit(X, y)
    queries = rng.normal(size=(5, 2))
    W = np.exp(-cdist(queries, X, "sqeuclidean") / (2 * 0.7**2))
    np.testing.assert_allclose(clf.predict_proba(queries), W @ clf.label_distributions_ / W.sum(axis=1, keepdims=True))
    # The extension is harmonic: if a point joins the graph without changing it, its value there is the same.
    far = clf.predict_proba(X[:1] + 1e6)
    assert np.isfinite(far).all()


def test_a_long_length_scale_gives_every_point_the_shares_of_the_labels():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(40, 3)), np.full(40, -1)
    y[:5] = [0, 0, 0, 1, 1]
    clf = HarmonicFunctions(1e6).fit(X, y)
    np.testing.assert_allclose(clf.label_distributions_[5:], np.tile([0.6, 0.4], (35, 1)), rtol=1e-9)


def test_a_short_length_scale_follows_chains_of_near_neighbours():
    # On a line with growing gaps, a point joins the side of its smaller gap, whatever the distance to the label.
    X = np.array([0.0, 1.0, 1.9, 2.7, 3.8, 4.5])[:, None]
    y = np.array([0, -1, -1, -1, -1, 1])
    np.testing.assert_array_equal(HarmonicFunctions(0.05).fit(X, y).transduction_, [0, 0, 0, 0, 1, 1])


def test_least_error_wins_then_least_log_loss_then_only_connected_graphs():
    scales = np.array([4.0, 2.0, 1.0, 0.5])
    error, loss = np.array([0.2, 0.1, 0.1, 0.0]), np.array([0.1, 0.5, 0.4, 0.0])
    tried = {"factor": scales, "cv_error": error, "cv_log_loss": loss}
    assert SelectionPath({**tried, "apart": np.array([False, False, False, True])}, CRITERIA).best == 2
    assert SelectionPath({**tried, "apart": np.zeros(4, dtype=bool)}, CRITERIA).best == 3


def test_labels_may_be_words_and_missing_ones_none():
    X, truth = make_circles(2, random_state=3)
    words = np.array(["inner", "outer"])[truth]
    y = [word if row % 10 == 0 else None for row, word in enumerate(words.tolist())]
    clf = HarmonicFunctions(missing_label=None).fit(X, y)
    assert np.mean(clf.transduction_ == words) > 0.98
    assert clf.selection_path_["length_scale"][clf.selection_path_["chosen"]].item() == clf.length_scale_
    assert clf.predict(X[:2]).dtype == words.dtype


def test_wrong_arguments_are_named():
    X, y = np.arange(8.0).reshape(4, 2), [0, 1, -1, -1]
    with pytest.raises(ValueError, match="no point is labelled"):
        HarmonicFunctions().fit(X, [-1] * 4)
    with pytest.raises(ValueError, match="only one class: 1"):
        HarmonicFunctions().fit(X, [1, -1, -1, 1])
    with pytest.raises(ValueError, match="n_folds must be an integer of at least 2, got 1"):
        HarmonicFunctions(n_folds=1).fit(X, y)
    with pytest.raises(ValueError, match=r"length_scale must be a positive finite number.*got -1\.0"):
        HarmonicFunctions(-1.0).fit(X, y)
    with pytest.raises(ValueError, match="all points are the same"):
        HarmonicFunctions().fit(np.ones((4, 2)), y)
    pairs = np.array([[0.0], [100.0], [0.1], [50.0], [50.1]])
    with pytest.raises(ValueError, match=r"at length_scale=0\.1 some points are linked to no label"):
        HarmonicFunctions(0.1).fit(pairs, [0, 1, -1, -1, -1])


@pytest.mark.parametrize("size", [5e-322, 1.0, 1e300])
def test_given_length_scales_of_any_size(size):
    X = size * np.array([[0.0], [1.0], [2.0]])
    fitted = HarmonicFunctions(length_scales=[1e-300, size, 1e300]).fit(X, [0, -1, 1])
    assert set(fitted.selection_path_["length_scale"]) == {1e-300, size, 1e300}
    assert fitted.length_scale_ in {1e-300, size, 1e300}
    assert np.isfinite(fitted.predict_proba(X)).all()

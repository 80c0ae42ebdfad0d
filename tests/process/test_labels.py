"""Label distributions against enumeration, the classifier and their limit; the no-interference condition."""

import itertools
from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield import LGCPClassifier
from coxfield.process import (
    Grid,
    LabelDistribution,
    LogGaussianCoxProcess,
    gp_classifier_prior,
    interference,
    label_distribution,
    log_superposition_density,
    thinned_label_distribution,
)
from tolerances import assert_close, rounding

CATS = LogGaussianCoxProcess(0.8 * RBF(0.7), mean=-0.5)
DOGS = LogGaussianCoxProcess(0.5 * Matern(0.7, nu=0.5), mean=-0.2)
BIRDS = LogGaussianCoxProcess(0.6 * RBF(0.5), mean=lambda x: -0.5 * x[:, 0])
POINTS = np.array([[0.27], [0.39], [0.95], [1.58]])


def labellings(n_classes, n):
    return itertools.product(range(n_classes), repeat=n)


def log_numerator(processes, points, y):
    return sum(p.log_product_density(points[np.array(y) == i]) for i, p in enumerate(processes))


@pytest.mark.parametrize("processes", [[CATS, DOGS], [CATS, DOGS, BIRDS], [CATS]])
def test_limit_is_the_papers_by_enumeration(processes):
    found = label_distribution(processes, POINTS).probabilities
    every = list(labellings(len(processes), 4))
    logs = np.array([log_numerator(processes, POINTS, y) for y in every])
    weights = np.exp(logs)
    # A weight is the exponential of a sum of 4 + 16 numbers.
    how = {"terms": 20 + len(every), "condition": 1 + np.abs(logs).max()}
    assert found.shape == (len(processes),) * 4
    for y, weight in zip(every, weights, strict=True):
        assert_close(found[y], weight / weights.sum(), **how)
    assert_close(found.sum(), 1.0, terms=len(every))
    assert_close(np.exp(log_superposition_density(processes, POINTS)), weights.sum(), **how)


def test_limit_given_the_other_labels_is_the_classifiers_prediction():
    X = np.random.default_rng(3).normal(size=(6, 2))
    y = np.array([0, 1, 2, 0, 1])
    kernel, means = {0: RBF(1.0), 1: 0.5 * RBF(0.7), 2: RBF(0.5)}, {0: 0.1, 1: -0.3, 2: 0.0}
    table = label_distribution([LogGaussianCoxProcess(kernel[c], means[c]) for c in range(3)], X).probabilities
    conditional = table[tuple(y)] / table[tuple(y)].sum()
    classifier = LGCPClassifier(kernel, mean=means, selection=None).fit(X[:5], y)
    # The classifier takes squared distances from products of coordinates, which err in proportion to squared norms.
    condition = 4 * np.square(X / 0.5).sum(axis=1).max()
    assert_close(conditional, classifier.predict_proba(X[5:])[0], terms=3**5, condition=condition)


def test_processes_may_be_named():
    named = label_distribution({"cat": CATS, "dog": DOGS}, POINTS)
    np.testing.assert_array_equal(named.probabilities, label_distribution([CATS, DOGS], POINTS).probabilities)


def test_marginals_keep_their_order():
    table = np.random.default_rng(0).dirichlet(np.ones(8)).reshape(2, 2, 2)
    assert_close(LabelDistribution(table).marginal([2, 0]).probabilities, table.sum(axis=1).T, terms=2)
    assert_close(LabelDistribution(table).marginal([1]).probabilities, table.sum(axis=(0, 2)), terms=4)


def test_what_cannot_be_enumerated_is_refused():
    with pytest.raises(ValueError, match=r"2\^17 labellings are too many .*: give fewer points"):
        label_distribution([CATS, DOGS], np.zeros((17, 1)))
    with pytest.raises(ValueError, match="no points to label: give at least one"):
        label_distribution([CATS, DOGS], np.empty((0, 1)))
    with pytest.raises(TypeError, match="a LogGaussianCoxProcess for each class"):
        label_distribution([CATS, RBF(1.0)], POINTS)
    with pytest.raises(TypeError, match="a LogGaussianCoxProcess for each class"):
        label_distribution([], POINTS)
    with pytest.raises(ValueError, match=r"different numbers from 0 to 3, got .*: give each point once"):
        label_distribution([CATS, DOGS], POINTS).marginal([0, 4])
    with pytest.raises(ValueError, match=r"different numbers from 0 to 3, got \[1, 1\]"):
        label_distribution([CATS, DOGS], POINTS).marginal([1, 1])


WINDOW = (0, 2)
GRID = Grid.over(WINDOW, 64)
SEEN = GRID.centres()[[8, 12, 30, 50]]  # at centres, so that brute force knows their intensities


def brute_force(processes, points, gamma, n_samples, rng):
    """Pr_gamma as the paper writes it: all intensities drawn, the product of intensities averaged as it is.

    Returns numerators normalised by their sum, and standard errors of these ratios by the delta method.
    """
    cells = GRID.cells_of(points)
    draws = [np.stack([rho.values for rho in p.draw_intensities(GRID, n_samples, rng)]) for p in processes]
    unseen = np.exp(-gamma * GRID.cell_volume * sum(draw.sum(axis=1) for draw in draws))
    shape = (len(processes),) * len(points)
    terms = np.empty((n_samples, *shape))
    for y in labellings(*shape[:1], len(points)):
        terms[(slice(None), *y)] = unseen * np.prod([draws[c][:, x] for c, x in zip(y, cells, strict=True)], axis=0)
    flat = terms.reshape(n_samples, -1)
    p = flat.mean(axis=0) / flat.mean(axis=0).sum()
    influence = (flat - p * flat.sum(axis=1, keepdims=True)) / flat.sum(axis=1).mean()
    return p.reshape(shape), (influence.std(axis=0) / np.sqrt(n_samples)).reshape(shape)


@pytest.mark.parametrize("gamma", [1.0, 0.1, 0.01])
def test_thinned_distribution_is_the_papers_by_brute_force(gamma):
    # Small variances: products of intensities have heavy tails, and a standard error means little where they do.
    calm = [LogGaussianCoxProcess(0.3 * RBF(0.7), 0.5), LogGaussianCoxProcess(0.2 * Matern(0.7, nu=0.5), 0.7)]
    found = thinned_label_distribution(calm, SEEN, WINDOW, gamma, resolution=64, n_samples=4000, random_state=0)
    naive, error = brute_force(calm, SEEN, gamma, 40_000, np.random.default_rng(1))
    assert (np.abs(found.probabilities - naive) < 4 * np.hypot(error, found.standard_errors)).all()
    # The comparison means something: errors are far below 1/16, what the probabilities are on average.
    assert max(error.max(), found.standard_errors.max()) < 0.002


def slope(processes, points):
    """d Pr_gamma / d gamma at 0: every labelling loses what it expects to see elsewhere, beyond the average."""
    limit = label_distribution(processes, points).probabilities
    elsewhere = np.zeros_like(limit)
    for y in labellings(len(processes), len(points)):
        for i, process in enumerate(processes):
            raised = process.kernel(GRID.centres(), points) @ (np.array(y) == i)
            elsewhere[y] += (process.intensity(GRID.centres()) * np.exp(raised)).sum() * GRID.cell_volume
    return -limit * (elsewhere - (limit * elsewhere).sum())


def test_thinned_distribution_tends_to_the_limit():
    limit = label_distribution([CATS, DOGS], SEEN).probabilities
    tangent = slope([CATS, DOGS], SEEN)
    distance = []
    for gamma in (1.0, 0.1, 0.01, 0.0005):
        found = thinned_label_distribution(
            [CATS, DOGS], SEEN, WINDOW, gamma, resolution=64, n_samples=4000, random_state=2
        )
        assert_close(found.probabilities.sum(), 1.0, terms=16)
        distance.append(np.abs(found.probabilities - limit).max())
    assert distance[0] > 2 * distance[1] > 8 * distance[2] > 64 * distance[3]
    # The errors fall with gamma too, so the way to the limit shows: it is the tangent that theory gives.
    assert (np.abs(found.probabilities - limit - 0.0005 * tangent) < 4 * found.standard_errors).all()
    assert found.standard_errors.max() < 0.05 * distance[3]


def test_gamma_zero_is_the_limit():
    found = thinned_label_distribution([CATS, BIRDS], SEEN, WINDOW, 0, n_samples=100, random_state=0)
    limit = label_distribution([CATS, BIRDS], SEEN).probabilities
    # Probabilities are exponentials of sums of 20 numbers and of log(100), and are normalised over 16 labellings.
    how = {"terms": 100 + 20 + 16, "condition": 10}
    assert_close(found.probabilities, limit, **how)
    # The jackknife multiplies the spread of its estimates, here of rounding, by sqrt(49).
    assert found.standard_errors.max() < 7 * rounding(1.0, **how)


def test_standard_errors_are_what_repetitions_scatter():
    draw = partial(thinned_label_distribution, [CATS, DOGS], SEEN[:2], WINDOW, 1.0, resolution=32, n_samples=200)
    found = [draw(random_state=seed) for seed in range(100)]
    scatter = np.std([one.probabilities for one in found], axis=0)
    claimed = np.sqrt(np.mean([one.standard_errors**2 for one in found], axis=0))
    # The standard deviation of a hundred numbers is known to 7 %: four of that, and as much for what is claimed.
    assert (np.abs(claimed / scatter - 1) < 4 * np.sqrt(2) / np.sqrt(200)).all()


def test_crowded_windows_do_not_underflow():
    crowd = LogGaussianCoxProcess(0.1 * RBF(1.0), mean=9.0)  # 17,000 points to be expected, of which two were seen
    found = thinned_label_distribution([crowd, crowd], SEEN[:2], WINDOW, 1.0, resolution=32, random_state=0)
    assert np.isfinite(found.probabilities).all()
    assert_close(found.probabilities.sum(), 1.0, terms=4)


@pytest.mark.parametrize("gamma", [-0.01, 1.01, np.nan])
def test_gamma_is_a_probability(gamma):
    with pytest.raises(ValueError, match=f"must lie between 0 and 1; got {gamma}"):
        thinned_label_distribution([CATS, DOGS], SEEN, WINDOW, gamma)


def test_classes_of_equal_processes_share_their_samples():
    twin = LogGaussianCoxProcess(0.8 * RBF(0.7), mean=-0.5)
    found = thinned_label_distribution([CATS, twin], SEEN[:2], WINDOW, 1.0, n_samples=100, random_state=0)
    assert_close(found.probabilities, found.probabilities.T, terms=100, condition=10)


def test_what_cannot_be_seen_is_refused():
    with pytest.raises(ValueError, match=r"the point \[3.0\] lies outside of the window"):
        thinned_label_distribution([CATS, DOGS], [[3.0]], WINDOW, 0.5)
    with pytest.raises(ValueError, match="n_samples must be a whole number of at least 100, got 10"):
        thinned_label_distribution([CATS, DOGS], SEEN, WINDOW, 0.5, n_samples=10)


def orthant_probability(covariance):
    """P(x < 0) of three normal variables: the solid angle of a cone, by the formula of Van Oosterom and Strackee."""
    edges = np.linalg.inv(np.linalg.cholesky(covariance))
    a, b, c = (edges / np.linalg.norm(edges, axis=0)).T
    angle = 2 * np.arctan2(abs(a @ np.cross(b, c)), 1 + a @ b + b @ c + c @ a)
    return angle / (4 * np.pi)


def test_gp_classifier_prior_is_the_probability_of_orthants():
    X = np.array([[0.0, 0.0], [0.5, 0.1], [0.2, 0.9]])
    kernel = 2.0 * RBF(0.8)
    found = gp_classifier_prior(kernel, X).probabilities
    for y in labellings(2, 3):
        signs = 2 * np.array(y) - 1
        covariance = (kernel(X) + np.eye(3)) * np.outer(signs, signs)
        assert_close(found[y], orthant_probability(covariance), terms=9, condition=np.linalg.cond(covariance))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_far_points_have_independent_fair_labels(n):
    found = gp_classifier_prior(RBF(1.0), 1000.0 * np.arange(n)[:, None])
    np.testing.assert_array_equal(found.probabilities, np.full((2,) * n, 0.5**n))


@pytest.mark.parametrize("n", [0, 4])
def test_other_numbers_of_points_have_no_closed_form(n):
    with pytest.raises(ValueError, match=f"one, two or three points, got {n}"):
        gp_classifier_prior(RBF(1.0), np.zeros((n, 2)))


@pytest.mark.parametrize("other", [0.3, 1.0, 2.5])
def test_no_interference_holds_for_a_gp_classifier_and_fails_for_cox_processes(other):
    points, others = [[0.0], [1.5]], [[other]]
    assert interference(partial(gp_classifier_prior, RBF(1.0)), points, others) < rounding(1.0, terms=8)
    twins = partial(label_distribution, [LogGaussianCoxProcess(RBF(1.0))] * 2)
    measured = interference(twins, points, others)
    # By hand: with a third point, equal labels of the first two gain by a factor of how it may join them.
    a, b, c = (np.exp(-(d**2) / 2) for d in (1.5, other, abs(other - 1.5)))
    joined, apart = np.exp(a) * (1 + np.exp(b + c)), np.exp(b) + np.exp(c)
    by_hand = abs(joined / (joined + apart) - np.exp(a) / (np.exp(a) + 1)) / 2
    # A difference of two probabilities, each from exponentials of at most 9/2.
    assert_close(measured, by_hand, terms=8 + 9, condition=5.5, scale=1.0)
    assert measured > 1e-3

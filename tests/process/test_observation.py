"""Label distributions at a finite thinning probability, against brute force and against their limit."""

import itertools
from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.process import Grid, LogGaussianCoxProcess, label_distribution, thinned_label_distribution
from tolerances import assert_close, rounding

CATS = LogGaussianCoxProcess(0.8 * RBF(0.7), mean=-0.5)
DOGS = LogGaussianCoxProcess(0.5 * Matern(0.7, nu=0.5), mean=-0.2)
BIRDS = LogGaussianCoxProcess(0.6 * RBF(0.5), mean=lambda x: -0.5 * x[:, 0])
WINDOW = (0, 2)
GRID = Grid.over(WINDOW, 64)
POINTS = GRID.centres()[[8, 12, 30, 50]]  # at centres, so that brute force knows their intensities


def labellings(n_classes, n):
    return itertools.product(range(n_classes), repeat=n)


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
    found = thinned_label_distribution(calm, POINTS, WINDOW, gamma, resolution=64, n_samples=4000, random_state=0)
    naive, error = brute_force(calm, POINTS, gamma, 40_000, np.random.default_rng(1))
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
    limit = label_distribution([CATS, DOGS], POINTS).probabilities
    tangent = slope([CATS, DOGS], POINTS)
    distance = []
    for gamma in (1.0, 0.1, 0.01, 0.0005):
        found = thinned_label_distribution(
            [CATS, DOGS], POINTS, WINDOW, gamma, resolution=64, n_samples=4000, random_state=2
        )
        assert_close(found.probabilities.sum(), 1.0, terms=16)
        distance.append(np.abs(found.probabilities - limit).max())
    assert distance[0] > 2 * distance[1] > 8 * distance[2] > 64 * distance[3]
    # The errors fall with gamma too, so the way to the limit shows: it is the tangent that theory gives.
    assert (np.abs(found.probabilities - limit - 0.0005 * tangent) < 4 * found.standard_errors).all()
    assert found.standard_errors.max() < 0.05 * distance[3]


def test_gamma_zero_is_the_limit():
    found = thinned_label_distribution([CATS, BIRDS], POINTS, WINDOW, 0, n_samples=100, random_state=0)
    limit = label_distribution([CATS, BIRDS], POINTS).probabilities
    # Probabilities are exponentials of sums of 20 numbers and of log(100), and are normalised over 16 labellings.
    how = {"terms": 100 + 20 + 16, "condition": 10}
    assert_close(found.probabilities, limit, **how)
    # The jackknife multiplies the spread of its estimates, here of rounding, by sqrt(49).
    assert found.standard_errors.max() < 7 * rounding(1.0, **how)


def test_standard_errors_are_what_repetitions_scatter():
    draw = partial(thinned_label_distribution, [CATS, DOGS], POINTS[:2], WINDOW, 1.0, resolution=32, n_samples=200)
    found = [draw(random_state=seed) for seed in range(100)]
    scatter = np.std([one.probabilities for one in found], axis=0)
    claimed = np.sqrt(np.mean([one.standard_errors**2 for one in found], axis=0))
    # The standard deviation of a hundred numbers is known to 7 %: four of that, and as much for what is claimed.
    assert (np.abs(claimed / scatter - 1) < 4 * np.sqrt(2) / np.sqrt(200)).all()


def test_crowded_windows_do_not_underflow():
    crowd = LogGaussianCoxProcess(0.1 * RBF(1.0), mean=9.0)  # 17,000 points to be expected, of which two were seen
    found = thinned_label_distribution([crowd, crowd], POINTS[:2], WINDOW, 1.0, resolution=32, random_state=0)
    assert np.isfinite(found.probabilities).all()
    assert_close(found.probabilities.sum(), 1.0, terms=4)


@pytest.mark.parametrize("gamma", [-0.01, 1.01, np.nan])
def test_gamma_is_a_probability(gamma):
    with pytest.raises(ValueError, match=f"must lie between 0 and 1; got {gamma}"):
        thinned_label_distribution([CATS, DOGS], POINTS, WINDOW, gamma)


def test_classes_of_equal_processes_share_their_samples():
    twin = LogGaussianCoxProcess(0.8 * RBF(0.7), mean=-0.5)
    found = thinned_label_distribution([CATS, twin], POINTS[:2], WINDOW, 1.0, n_samples=100, random_state=0)
    assert_close(found.probabilities, found.probabilities.T, terms=100, condition=10)


def test_what_cannot_be_seen_is_refused():
    with pytest.raises(ValueError, match=r"the point \[3.0\] lies outside of the window"):
        thinned_label_distribution([CATS, DOGS], [[3.0]], WINDOW, 0.5)
    with pytest.raises(ValueError, match="n_samples must be a whole number of at least 100, got 10"):
        thinned_label_distribution([CATS, DOGS], POINTS, WINDOW, 0.5, n_samples=10)

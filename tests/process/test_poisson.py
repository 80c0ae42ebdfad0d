"""Poisson processes, thinning and superposition against what they should count."""

import numpy as np
import pytest
from scipy import stats

from coxfield.process import Grid, Intensity, Pattern, Window, poisson_process, superpose, thin

PLANE = [(0, 2), (0, 1)]


def is_poisson(counts, mean):
    """Whether counts have the mean and the variance of a Poisson distribution, to four standard errors."""
    n = len(counts)
    fourth = mean + 3 * mean**2  # central moment
    assert abs(np.mean(counts) - mean) < 4 * np.sqrt(mean / n)
    assert abs(np.var(counts) - mean) < 4 * np.sqrt((fourth - mean**2) / n)
    return True


def counts_of(draw, part, n=2000, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([draw(rng).count(part) for _ in range(n)])


@pytest.mark.parametrize(
    ("window", "part"), [((0, 4), (1, 2)), (PLANE, [(0.5, 1), (0, 0.5)]), ([(0, 1)] * 3, [(0, 0.5)] * 3)]
)
def test_homogeneous_counts(window, part):
    counts = counts_of(lambda rng: poisson_process(8.0, window, random_state=rng), part)
    assert is_poisson(counts, 8 * Window(part).volume)


def test_counts_in_disjoint_parts_are_uncorrelated():
    rng = np.random.default_rng(1)
    patterns = [poisson_process(5.0, PLANE, random_state=rng) for _ in range(2000)]
    left, right = np.array([[p.count([(0, 1), (0, 1)]), p.count([(1, 2), (0, 1)])] for p in patterns]).T
    assert abs(np.corrcoef(left, right)[0, 1]) < 4 / np.sqrt(2000)


def test_a_function_is_drawn_by_thinning():
    draw = lambda rng: poisson_process(lambda x: 6 * x[:, 0], PLANE, bound=12, random_state=rng)  # noqa: E731
    assert is_poisson(counts_of(draw, [(0, 1), (0, 1)]), 3.0)
    assert is_poisson(counts_of(draw, [(1, 2), (0, 1)]), 9.0)


def test_an_intensity_is_drawn_cell_by_cell_and_evenly_within_cells():
    rho = Intensity(Grid.over(PLANE, (2, 1)), np.array([[3.0], [7.0]]))
    rng = np.random.default_rng(2)
    patterns = [poisson_process(rho, random_state=rng) for _ in range(2000)]
    assert is_poisson([p.count([(0, 1), (0, 1)]) for p in patterns], 3.0)
    assert is_poisson([p.count([(1, 2), (0, 1)]) for p in patterns], 7.0)
    points = np.concatenate([p.points for p in patterns])
    for coordinate in (points[:, 0] % 1, points[:, 1]):
        assert stats.kstest(coordinate, "uniform").pvalue > 1e-4
    assert all(p.intensity is rho for p in patterns)


def test_zero_intensity_has_no_points():
    assert len(poisson_process(0.0, PLANE, random_state=0)) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"intensity": -1.0, "window": PLANE}, "intensity must be a finite number of at least 0, got -1.0"),
        ({"intensity": np.nan, "window": PLANE}, "got nan"),
        ({"intensity": 1.0}, "window is missing: give"),
        ({"intensity": 1.0, "window": (3, 1)}, "inverted"),
        ({"intensity": lambda x: x[:, 0], "window": PLANE}, "needs a bound"),
        ({"intensity": lambda x: x[:, 0], "window": PLANE, "bound": -2}, "bound must be a finite number"),
        ({"intensity": lambda x: 100 * x[:, 0], "window": PLANE, "bound": 50}, "must lie between 0 and 50 everywhere"),
        ({"intensity": lambda x: x, "window": PLANE, "bound": 50}, "it must give one number per point"),
        ({"intensity": 1e12, "window": PLANE}, "about 2e[+]12 points are to be expected"),
    ],
)
def test_processes_that_cannot_be_drawn_are_refused(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        poisson_process(**arguments, random_state=0)


def test_thinning_keeps_points_with_their_marks_and_scales_the_intensity():
    pattern = Pattern(np.linspace(0, 1, 4001)[:, None], (0, 1), marks=np.arange(4001) % 3)
    kept = thin(pattern, 0.3, random_state=0)
    assert abs(len(kept) - 0.3 * 4001) < 4 * np.sqrt(4001 * 0.21)
    rows = np.searchsorted(pattern.points[:, 0], kept.points[:, 0])
    np.testing.assert_array_equal(kept.marks, rows % 3)
    rho = Intensity(Grid.over((0, 1), 4), np.arange(4.0))
    thinned = thin(poisson_process(rho, random_state=1), 0.25, random_state=1)
    np.testing.assert_array_equal(thinned.intensity.values, rho.values / 4)


def test_thinning_by_position():
    pattern = Pattern(np.linspace(0, 1, 4001)[:, None], (0, 1))
    kept = thin(pattern, lambda x: (x[:, 0] > 0.5).astype(float), random_state=0)
    assert len(kept) == 2000
    assert kept.points.min() > 0.5


def test_a_thinned_poisson_process_is_poisson():
    draw = lambda rng: thin(poisson_process(20, (0, 1), random_state=rng), 0.3, random_state=rng)  # noqa: E731
    assert is_poisson(counts_of(draw, (0, 1)), 6.0)


@pytest.mark.parametrize("gamma", [-0.1, 1.5, np.nan, "all"])
def test_gamma_is_a_probability(gamma):
    with pytest.raises(ValueError, match="gamma, the probability that a point is kept, must lie between 0 and 1; got"):
        thin(Pattern([[0.5]], (0, 1)), gamma)


def test_gamma_zero_and_one():
    pattern = Pattern(np.random.default_rng(0).random((50, 2)), [(0, 1), (0, 1)])
    assert len(thin(pattern, 0, random_state=0)) == 0
    np.testing.assert_array_equal(thin(pattern, 1, random_state=0).points, pattern.points)


def test_superposition_keeps_all_points_and_adds_intensities():
    grid = Grid.over((0, 1), 4)
    parts = [poisson_process(Intensity(grid, np.full(4, rate)), random_state=0) for rate in (20.0, 30.0)]
    both = superpose(parts)
    for mark, part in enumerate(parts):
        np.testing.assert_array_equal(both.marked(mark).points, part.points)
    np.testing.assert_array_equal(both.intensity.values, np.full(4, 50.0))
    assert superpose([parts[0], Pattern([[0.5]], (0, 1))]).intensity is None


def test_superposition_needs_one_window_and_something_to_superpose():
    with pytest.raises(ValueError, match="share one window"):
        superpose([Pattern([[0.5]], (0, 1)), Pattern([[0.5]], (0, 2))])
    with pytest.raises(ValueError, match="nothing to superpose"):
        superpose([])

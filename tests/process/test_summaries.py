"""Summaries against brute force over all pairs, closed forms, and simulated processes within four standard errors."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.process import (
    PointPattern,
    Window,
    j_function,
    k_function,
    l_function,
    pair_correlation,
    poisson_process,
    summaries,
    superpose,
)
from coxfield.process.summaries import circle_shares, close_pairs
from patterns import ELL, SQUARE, assert_mean, circle, cox
from tolerances import assert_close

BOX = Window([(0, 1.5), (0, 1)])
CUBE = Window([(0, 1), (0, 1), (0, 2)])
R = np.array([0.02, 0.05, 0.1, 0.15, 0.2])


def weight(window, correction, x, y):
    """e_ij, one pair at a time; for the isotropic correction by walking around the circle."""
    d = np.linalg.norm(x - y)
    if correction == "none":
        return 1.0
    if correction == "translation":
        return window.volume / window.set_covariance([y - x])[0]
    return 1 / window.contains(x + d * circle(20000)).mean()


def naive(pattern, correction, h, divisor):
    """K and g at R by a double loop."""
    n, volume = len(pattern), pattern.window.volume
    k, g = np.zeros(len(R)), np.zeros(len(R))
    for i in range(n):
        for j in range(n):
            d = np.linalg.norm(pattern.points[i] - pattern.points[j])
            if i == j or d > R[-1] + h:
                continue
            e = weight(pattern.window, correction, pattern.points[i], pattern.points[j]) * volume / (n * (n - 1))
            k += e * (d <= R)
            g += e * np.maximum(1 - ((R - d) / h) ** 2, 0) * 0.75 / h / (2 * np.pi * (R if divisor == "r" else d))
    return k, g


@pytest.mark.parametrize("divisor", ["r", "d"])
@pytest.mark.parametrize(
    ("window", "correction"),
    [(BOX, "none"), (BOX, "translation"), (BOX, "isotropic"), (ELL, "none"), (ELL, "translation")],
)
def test_sums_over_pairs_are_those_of_a_double_loop(window, correction, divisor, monkeypatch):
    monkeypatch.setattr(summaries, "AT_ONCE", 500)  # several blocks
    pattern = poisson_process(120 / window.volume, window, random_state=3)
    k, g = naive(pattern, correction, 0.03, divisor)
    found_k = k_function(pattern, R, correction=correction).values
    found_g = pair_correlation(pattern, R, correction=correction, bandwidth=0.03, divisor=divisor).values
    if correction == "isotropic":  # the walk around the circle errs by a step at each of up to four cuts
        np.testing.assert_allclose(found_k, k, rtol=8 / 20000)
        np.testing.assert_allclose(found_g, g, rtol=8 / 20000)
    else:
        assert_close(found_k, k, terms=len(pattern) ** 2)
        # The three moments of an interval cancel: their sizes are those of (r / h)^2.
        assert_close(found_g, g, terms=len(pattern) ** 2, condition=(0.25 / 0.03) ** 2)


def test_l_is_the_radius_of_a_disc_of_area_k():
    pattern = poisson_process(100.0, BOX, random_state=0)
    k, ell = k_function(pattern, R), l_function(pattern, R)
    assert_close(np.pi * ell.values**2, k.values)
    assert ell.poisson.tolist() == R.tolist()


@given(st.integers(0, 10**6), st.floats(0.01, 2.0))
def test_close_pairs_are_those_of_all_pairs(seed, reach):
    points = np.random.default_rng(seed).uniform(size=(30, 2))
    found = {(min(i, j), max(i, j)) for i, j, d, _ in _flat(close_pairs(points, None, reach))}
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    # Within rounding of the reach a pair may go either way.
    sure = {(i, j) for i in range(30) for j in range(i) if distances[i, j] <= reach * (1 - 1e-12)}
    assert {(j, i) for i, j in sure} <= found
    assert len(found) <= (np.triu(distances, 1)[np.triu_indices(30, 1)] <= reach * (1 + 1e-12)).sum()


def _flat(blocks):
    return [(i, j, d, n) for a, b, c, n in blocks for i, j, d in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)]


@given(st.floats(0, 1.5), st.floats(0, 1), st.floats(1e-3, 3))
def test_circles_lie_in_a_box_as_much_as_a_walk_says(x, y, radius):
    walk = BOX.contains([x, y] + radius * circle(4000)).mean()
    found = circle_shares(BOX, np.array([[x, y]]), np.array([radius]))[0]
    assert abs(found - walk) <= 9 / 4000  # eight cuts at most, each within a step


@cache
def estimates(name, correction, n):
    """Pair correlations and K of Poisson patterns, and the last summaries with their theory."""
    window = {"box": BOX, "ell": ELL, "cube": CUBE}[name]
    rng = np.random.default_rng(7)
    found = []
    for _ in range(n):
        pattern = poisson_process(150 / window.volume, window, random_state=rng)
        g, k = pair_correlation(pattern, R, correction=correction), k_function(pattern, R, correction=correction)
        found.append((g.values, k.values))
    return np.array(found), g, k


@pytest.mark.parametrize(
    ("name", "correction"),
    [("box", "translation"), ("box", "isotropic"), ("ell", "translation"), ("cube", "translation")],
)
def test_poisson_patterns_have_the_pair_correlation_1_and_the_k_of_a_ball(name, correction):
    found, g, k = estimates(name, correction, 200)
    whole = g.bandwidth < R  # nearer to 0 the kernel reaches beyond it
    assert_mean(found[:, 0, whole], 1.0)
    assert_mean(found[:, 1], k.poisson)


def test_the_standard_errors_of_a_poisson_process_are_those_of_simulation():
    n = 200
    found, g, k = estimates("box", "translation", n)
    # Standard deviations of n estimates err by 1 / sqrt(2 n). The formula is of leading order in r / side: the next
    # order is a tenth at these distances.
    for number, summary in enumerate((g, k)):
        ratio = found[:, number].std(axis=0, ddof=1) / summary.standard_errors
        assert (np.abs(ratio - 1)[R <= 0.15] <= 4 / np.sqrt(2 * n) + 0.1).all()
    low, high = g.band(0.95)
    assert_close((high + low) / 2, np.ones(len(R)), scale=3.0)


def test_without_a_correction_pairs_are_missing():
    pattern = poisson_process(2000.0, BOX, random_state=0)
    assert (k_function(pattern, R, correction="none").values < 0.97 * k_function(pattern, R).values)[2:].all()


SETTINGS = {
    "weak, short": (0.5, Matern(0.05, nu=0.5)),
    "weak, long": (0.5, Matern(0.2, nu=1.5)),
    "strong, short": (2.0, Matern(0.05, nu=1.5)),
    "strong, long": (1.5, RBF(0.1)),
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("window", [SQUARE, ELL], ids=["box", "ell"])
def test_a_log_gaussian_cox_process_has_the_pair_correlation_exp_c(name, window):
    variance, kernel = SETTINGS[name]
    rate, n, h = 200.0, 100, 0.02
    process = cox(rate, variance * kernel)
    estimates = []
    for pattern in process.sample(window, size=n, resolution=256 if window is ELL else 128, random_state=11):
        g = pair_correlation(pattern, R, bandwidth=h, divisor="d", correction="translation")
        # With the true rate in place of n (n - 1) the estimate has no bias beyond the smoothing.
        estimates.append(g.values * len(pattern) * (len(pattern) - 1) / (rate * window.volume) ** 2)
    offsets = np.linspace(-h, h, 401)[1:-1]
    smooth = 0.75 / h * (1 - (offsets / h) ** 2) * (offsets[1] - offsets[0])
    theory = np.array([smooth @ process.pair_correlation(np.abs(r + offsets)) for r in R])
    assert_mean(estimates, theory)
    assert np.mean(estimates, axis=0)[0] > 1.2


def test_a_varying_intensity_is_divided_out():
    rng, n = np.random.default_rng(2), 150
    slope = lambda x: 400 * x[:, 0] + 20  # noqa: E731
    raw, divided = [], []
    for _ in range(n):
        pattern = poisson_process(slope, SQUARE, bound=420, random_state=rng)
        raw.append(pair_correlation(pattern, R[1:]).values)
        divided.append(pair_correlation(pattern, R[1:], intensity=slope).values)
    # Weights that add up to the window make a ratio, whose bias is of the order of 1 / n of the points: 1 / 200.
    assert_mean(divided, 1.0, 1 / 200)
    assert (np.mean(raw, axis=0) > 1.2).all()


def test_a_constant_intensity_is_no_intensity():
    pattern = poisson_process(100.0, BOX, random_state=0)
    n = len(pattern)
    given = k_function(pattern, R, intensity=np.full(n, 7.0)).values
    assert_close(given, k_function(pattern, R).values * (n - 1) / n, terms=n * n)


def test_cross_summaries_are_those_between_types():
    rng = np.random.default_rng(0)
    both = superpose(
        {"a": poisson_process(40.0, BOX, random_state=rng), "b": poisson_process(60.0, BOX, random_state=rng)}
    )
    a, b = both.marked("a").points, both.marked("b").points
    d = np.linalg.norm(a[:, None] - b, axis=2)
    e = BOX.volume / BOX.set_covariance((b - a[:, None]).reshape(-1, 2)).reshape(d.shape)
    naive = [(e * (d <= r)).sum() * BOX.volume / d.size for r in R]
    assert_close(k_function(both, R, types=("a", "b"), correction="translation").values, np.array(naive), terms=d.size)
    forth, back = (
        pair_correlation(both, R, types=t, correction="translation", bandwidth=0.1) for t in (("a", "b"), ("b", "a"))
    )
    assert_close(forth.values, back.values, terms=d.size, condition=9)
    together = superpose({"a": PointPattern(a, BOX), "b": PointPattern(a + 1e-9, BOX)})
    assert k_function(together, R, types=("a", "b")).values[0] > 5 * np.pi * R[0] ** 2


def test_j_is_1_for_poisson_and_less_for_clusters():
    rng, n = np.random.default_rng(0), 100
    r = np.linspace(0.01, 0.06, 6)
    flat = [j_function(poisson_process(150.0, SQUARE, random_state=rng), r).values for _ in range(n)]
    # A ratio of estimates from 150 points has a bias of the order of their relative variance.
    assert_mean(flat, 1.0, 2 / 150)
    clustered = j_function(cox(150, 1.5 * RBF(0.1)).sample(SQUARE, resolution=64, random_state=0), r)
    assert (clustered.values[2:] < 0.8).all()
    with pytest.raises(ValueError, match="no band in closed form: draw an envelope"):
        clustered.band()


def test_j_counts_places_one_by_one():
    pattern = poisson_process(80.0, SQUARE, random_state=4)
    r = np.array([0.03, 0.07])
    grid = (np.stack(np.meshgrid(np.arange(64), np.arange(64), indexing="ij"), axis=-1).reshape(-1, 2) + 0.5) / 64
    for value, at in zip(j_function(pattern, r).values, r, strict=True):
        shares = []
        for places, own in ((pattern.points, 1), (grid, 0)):
            inner = places[np.minimum(places, 1 - places).min(axis=1) >= at]
            near = np.sort(np.linalg.norm(inner[:, None] - pattern.points, axis=2), axis=1)[:, own]
            shares.append((near > at).mean())
        assert_close(value, shares[0] / shares[1], terms=10)


@pytest.mark.parametrize("n", [0, 1])
def test_summaries_need_pairs(n):
    pattern = PointPattern(np.full((n, 2), 0.5), SQUARE)
    for summary in (pair_correlation, k_function, l_function, j_function):
        with pytest.raises(ValueError, match=f"needs at least 2 points, but the pattern has {n}: give more"):
            summary(pattern)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"correction": "toroidal"}, "correction must be one of isotropic, translation, none; got 'toroidal'"),
        ({"r": [0.2, 0.1]}, "distances from 0 on that increase"),
        ({"r": [0.0, 0.1]}, "at positive distances, got 0"),
        ({"divisor": "x"}, "divisor must be 'r' or 'd', got 'x'"),
        ({"bandwidth": -1.0}, "bandwidth must be a finite number above 0"),
        ({"intensity": [1.0]}, r"one value per point, which is 3, but its shape is \(1,\)"),
        ({"intensity": [1.0, 0.0, 1.0]}, "must be positive and finite at every point, but it is 0 at one"),
        ({"types": ("a", "b")}, "no marks"),
    ],
)
def test_what_summaries_refuse(how, sentence):
    pattern = PointPattern([[0.1, 0.1], [0.5, 0.5], [0.6, 0.8]], SQUARE)
    with pytest.raises(ValueError, match=sentence):
        pair_correlation(pattern, **how)
    with pytest.raises(ValueError, match="isotropic correction is for boxes in the plane"):
        k_function(PointPattern([[0.1, 0.1], [0.5, 1.5]], ELL), correction="isotropic")

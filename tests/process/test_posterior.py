"""The posterior of the latent field against a long chain, dense algebra, and simulated fields."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.process import Grid, PointPattern, PolygonWindow, latent_posterior, poisson_process, posterior
from coxfield.process.posterior import _Problem
from patterns import SQUARE, cox
from tolerances import assert_close

PROCESS = cox(120, 1.0 * Matern(0.2, nu=1.5))
PATTERN = PROCESS.sample(SQUARE, resolution=64, random_state=1)
GRID = Grid.over(SQUARE, 16)


def slices(problem, n, rng):
    """Elliptical slice sampling of the exact posterior (Murray, Adams and MacKay, 2010): every tenth field."""
    f, kept = np.zeros(problem.level.shape), []

    def log_likelihood(field):
        at = problem.level + field
        return (problem.counts * at - problem.exposure * np.exp(at)).sum()

    now = log_likelihood(f)
    for step in range(n):
        if step % 1000 == 0:
            prior = problem.embedding.draw(1000, rng)
        bar, angle = now + np.log(rng.random()), rng.uniform(0, 2 * np.pi)
        low, high = angle - 2 * np.pi, angle
        while True:
            other = f * np.cos(angle) + prior[step % 1000] * np.sin(angle)
            there = log_likelihood(other)
            if there > bar:
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = rng.uniform(low, high)
        f, now = other, there
        if step >= n // 10 and step % 10 == 0:
            kept.append(problem.level + f)
    return np.array(kept)


def test_means_and_deviations_are_those_of_a_long_chain():
    problem = _Problem.of(PROCESS, PATTERN, GRID)
    chains = [slices(problem, 30_000, np.random.default_rng(seed)) for seed in range(2)]
    means = np.array([chain.mean(axis=0) for chain in chains])
    truth, deviation = means.mean(axis=0), np.concatenate(chains).std(axis=0)
    found = latent_posterior(PROCESS, PATTERN, GRID)
    # The error of the chains themselves, from their difference: half of it is the standard error of their mean.
    error = np.sqrt(((means[0] - means[1]) ** 2 / deviation**2).mean()) / 2
    gap = (found.log_mean - truth) / deviation
    assert np.sqrt((gap**2).mean()) <= np.hypot(0.1, 2 * error)
    assert np.abs(found.log_sd / deviation - 1).max() <= 0.15
    mode = latent_posterior(PROCESS, PATTERN, GRID, approximation="laplace")
    assert np.sqrt((((mode.log_mean - truth) / deviation) ** 2).mean()) > 0.15  # a mode is not a mean


def test_intervals_of_simulated_fields_hold_90_percent():
    rng, held = np.random.default_rng(0), []
    for rho in PROCESS.draw_intensities(GRID, 40, rng):
        low, high = latent_posterior(PROCESS, poisson_process(rho, random_state=rng), GRID).interval(0.9)
        held.append(((rho.values > low) & (rho.values < high)).mean())
    error = np.std(held, ddof=1) / np.sqrt(len(held))
    assert 0.85 - 2 * error <= np.mean(held) <= 0.95 + 2 * error


def test_the_mode_solves_its_equation():
    found = latent_posterior(PROCESS, PATTERN, GRID, approximation="laplace")
    problem = _Problem.of(PROCESS, PATTERN, GRID)
    pull = problem.counts - problem.rates(found.log_mean, 0.0)
    # f = mu + K (y - rate), up to the last step of Newton.
    np.testing.assert_allclose(found.log_mean, problem.level + problem.times(pull), atol=0.01)


def test_products_are_those_of_the_covariance_matrix():
    problem = _Problem.of(PROCESS, PATTERN, GRID)
    v = np.random.default_rng(0).normal(size=GRID.shape)
    dense = (PROCESS.kernel(GRID.centres()) @ v.ravel()).reshape(GRID.shape)
    np.testing.assert_allclose(problem.times(v), dense, atol=1e-8 * np.abs(v).sum())  # embeddings err by 1e-9 C(0)


def test_variances_from_draws_are_those_of_algebra():
    problem = _Problem.of(PROCESS, PATTERN, GRID)
    rate = problem.rates(np.full(GRID.shape, np.log(120)), 0.0)
    K, root = PROCESS.kernel(GRID.centres()), np.sqrt(rate.ravel())
    dense = np.diag(K - K * root @ np.linalg.solve(np.eye(256) + root[:, None] * K * root, root[:, None] * K))
    exact = problem._exact(rate).ravel()
    np.testing.assert_allclose(exact, dense, atol=1e-6)
    drawn = problem._drawn(rate, 2000, np.random.default_rng(0)).ravel()
    # The relative standard error of a variance from n draws is sqrt(2 / n); 256 cells, five of them.
    assert np.abs(drawn / exact - 1).max() <= 5 * np.sqrt(2 / 2000) + 0.02  # draws are solved to 1 %


def test_large_grids_agree_with_small_ones(monkeypatch):
    exact = latent_posterior(PROCESS, PATTERN, GRID)
    monkeypatch.setattr(posterior, "DENSE", 10)
    drawn = latent_posterior(PROCESS, PATTERN, GRID, n_samples=400)
    assert np.abs(drawn.log_mean - exact.log_mean).max() < 0.25 * exact.log_sd.max()
    assert np.abs(drawn.log_sd / exact.log_sd - 1).max() < 5 / np.sqrt(2 * 400)


def test_without_points_the_posterior_knows_only_that():
    found = latent_posterior(PROCESS, PointPattern(np.empty((0, 2)), SQUARE), GRID)
    assert (found.log_mean < np.log(120) - 0.5).all()
    assert (found.mean < 120).all()


def test_outside_of_a_polygon_the_prior_remains():
    ell = PolygonWindow([(0, 0), (1, 0), (1, 0.25), (0.25, 0.25), (0.25, 1), (0, 1)])
    process = cox(300, 1.0 * RBF(0.05))
    found = latent_posterior(process, process.sample(ell, resolution=64, random_state=0), Grid.over(SQUARE, 16))
    assert found.inside.sum() == 16 * 4 + 12 * 4
    assert abs(found.log_sd[-1, -1] - 1) < 1e-6
    assert found.log_sd[found.inside].max() < 0.99
    assert found.intensity().values[-1, -1] == 0


def test_exceedance_and_intervals_belong_together():
    found = latent_posterior(PROCESS, PATTERN, GRID)
    low, _ = found.interval(0.9)
    at = (3, 5)
    assert_close(found.exceedance(float(low[at]))[at], 0.95, condition=20)
    assert (found.sd > 0).all()


def test_what_posteriors_refuse():
    with pytest.raises(ValueError, match="approximation must be one of variational, laplace; got 'exact'"):
        latent_posterior(PROCESS, PATTERN, approximation="exact")
    with pytest.raises(ValueError, match="make them agree"):
        latent_posterior(PROCESS, PATTERN, Grid.over([(0, 2), (0, 1)], 8))
    with pytest.raises(ValueError, match="threshold must be a finite number above 0"):
        latent_posterior(PROCESS, PATTERN, GRID).exceedance(-1.0)

"""The variational bound of Gaussian process classification with the logistic link, and its posterior.

Jaakkola and Jordan (2000) bound each logistic factor from below by a Gaussian in f that touches it at f = xi and at
f = -xi:

    log sigma(y f) >= log sigma(xi) + (y f - xi) / 2 - lambda(xi) (f^2 - xi^2),    lambda(xi) = tanh(xi / 2) / 4 xi.

The prior times these Gaussians is Gaussian, and its integral is a lower bound of the marginal likelihood. This bound is
maximised over the contacts xi and the parameters of the kernel. GPML, the toolbox of the paper, calls this inference
'VB'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import log_expit

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLOSE = 1e-6  # if the bound rises by less, in nats, the contacts have converged
ROUNDS = 200  # largest number of rounds of either iteration; about five are usual


@dataclass(frozen=True)
class Posterior:
    """The Gaussian approximation of the posterior of f at the training points, at given contacts."""

    bound: float
    """Lower bound of the log marginal likelihood."""
    mean: NDArray
    variance: NDArray
    scores: NDArray
    """K^-1 mean."""
    root: NDArray
    """sqrt(2 lambda)."""
    factor: NDArray
    """Lower Cholesky factor of 1 + root K root, whose eigenvalues are at least 1."""

    def precision_of_data(self) -> NDArray:
        """R = (K + 1 / 2 lambda)^-1. The posterior variance is S = K - K R K."""
        half = solve_triangular(self.factor, np.diag(self.root), lower=True)
        return half.T @ half


def curvature(xi: NDArray) -> NDArray:
    """lambda(xi) = tanh(xi / 2) / 4 xi, which is 1/8 at 0."""
    safe = np.maximum(xi, 1e-6)
    return np.tanh(safe / 2) / (4 * safe)


def posterior(K: NDArray, signs: NDArray, xi: NDArray) -> Posterior:
    """The Gaussian posterior and its bound for kernel matrix K, labels +1 and -1, and contacts xi."""
    lam = curvature(xi)
    root = np.sqrt(2 * lam)
    factor = np.linalg.cholesky(np.eye(len(K)) + root[:, None] * K * root)
    V = solve_triangular(factor, root[:, None] * K, lower=True, check_finite=False)
    mean = (K @ signs - V.T @ (V @ signs)) / 2
    touching = np.sum(lam * xi**2 - log_cosh_half(xi))
    bound = touching + signs @ mean / 4 - np.log(np.diag(factor)).sum()
    variance = np.maximum(np.diag(K) - np.einsum("ij,ij->j", V, V), 0)
    return Posterior(float(bound), mean, variance, signs / 2 - root**2 * mean, root, factor)


def settle(K: NDArray, signs: NDArray, xi: NDArray, scores: NDArray) -> tuple[Posterior, NDArray]:
    """The best contacts, where xi^2 = variance + mean^2, starting from given contacts and scores.

    Updating xi by mean and variance in turn never lowers the bound, but converges slowly. With a fixed variance the
    best mean is the maximum of a concave function and needs a few Newton steps. The variance then needs a few rounds.

    Returns
    -------
    the posterior, and its contacts
    """
    found = posterior(K, signs, xi)
    for _ in range(ROUNDS):
        scores = best_scores(K, signs, found.variance, scores)
        xi = np.sqrt(found.variance + (K @ scores) ** 2)
        before, found = found.bound, posterior(K, signs, xi)
        if found.bound - before < CLOSE:
            break
    return found, xi


def best_scores(K: NDArray, signs: NDArray, variance: NDArray, scores: NDArray) -> NDArray:
    """K^-1 times the mean m that maximises sum_i [log sigma(xi_i) - xi_i / 2 + y_i m_i / 2] - m' K^-1 m / 2.

    Here xi_i^2 = variance_i + m_i^2, and every term is concave in m. The method is Newton's with halved steps.
    """

    def value(scores: NDArray, mean: NDArray) -> float:
        return float(np.sum(log_cosh_half(np.sqrt(variance + mean**2))) + (scores - signs) @ mean / 2)

    mean = K @ scores
    current = value(scores, mean)
    for _ in range(ROUNDS):
        target = _newton_target(K, signs, variance, mean)
        step = 1.0
        while True:
            tried = scores + step * (target - scores)
            mean = K @ tried
            following = value(tried, mean)
            if following <= current or step < 1e-6:
                break
            step /= 2
        fall, scores, current = current - following, tried, following
        if fall < CLOSE / 10:
            break
    return scores


def _newton_target(K: NDArray, signs: NDArray, variance: NDArray, mean: NDArray) -> NDArray:
    """Scores at the maximum of the quadratic approximation around a mean."""
    xi = np.maximum(np.sqrt(variance + mean**2), 1e-6)
    slope = np.tanh(xi / 2) / (2 * xi)
    bend = slope * variance / xi**2 + (mean / xi) ** 2 / (4 * np.cosh(np.minimum(xi, 700) / 2) ** 2)
    root = np.sqrt(bend)
    right = bend * mean - slope * mean + signs / 2
    factor = cho_factor(np.eye(len(K)) + root[:, None] * K * root, lower=True, overwrite_a=True, check_finite=False)
    return right - root * cho_solve(factor, root * (K @ right), check_finite=False)


def log_cosh_half(xi: NDArray) -> NDArray:
    """log(2 cosh(xi / 2)) = xi / 2 - log sigma(xi); the bound has it with a minus sign."""
    return xi / 2 - log_expit(xi)


def bound_gradient(found: Posterior, K_gradient: NDArray) -> NDArray:
    """Gradient of the bound by the parameters of the kernel.

    At the best contacts the derivative of the bound by the contacts is 0, so they count as constant (envelope theorem).
    """
    return np.einsum("ij,ijk->k", np.outer(found.scores, found.scores) - found.precision_of_data(), K_gradient) / 2

"""`VariationalGPClassifier`: Gaussian process classification with the logistic link, by a variational bound.

Jaakkola and Jordan (2000) bound each logistic factor from below by a Gaussian in f that touches it at f = xi and at
f = -xi:

    log sigma(y f) >= log sigma(xi) + (y f - xi) / 2 - lambda(xi) (f^2 - xi^2),    lambda(xi) = tanh(xi / 2) / 4 xi.

The prior times these Gaussians is Gaussian, and its integral is a lower bound of the marginal likelihood. This bound is
maximised over the contacts xi and the parameters of the kernel. GPML, the toolbox of the paper, calls this inference
'VB'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, qr, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from scipy.special import expit, log_expit
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils import check_random_state

from coxfield.baselines.base import Baseline
from coxfield.kernels.protocol import rows_named
from coxfield.kernels.radial import recognise
from coxfield.kernels.sklearn_tree import diagonal_of, factorise, gradient_of, length_unit, values_of, with_logarithms
from coxfield.progress import progress, shares

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.utils.numbers import RandomState


CLOSE = 1e-6  # if the bound rises by less, in nats, the contacts have converged
ROUNDS = 200  # largest number of rounds of either iteration; about five are usual
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(64)
EVALUATIONS = 20  # of the bound that a start typically takes
ENOUGH = {"ftol": 1e-8, "gtol": 1e-3}  # a gradient of a thousandth of a nat per unit of a log parameter


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


@dataclass(frozen=True)
class Start:
    """The result of the maximisation from one start."""

    kernel: Any
    bound: float


def climb(kernel, X: NDArray, signs: NDArray, step: Callable[[], None] | None = None) -> Start:
    """Maximise the bound over the free parameters of a kernel, starting from their present values.

    `step` is called after each evaluation.
    """
    # Kept from one evaluation to the next. This saves most rounds.
    xi, scores = np.sqrt(diagonal_of(kernel, X)), np.zeros(len(X))

    def descent(theta: NDArray) -> tuple[float, NDArray]:
        nonlocal xi, scores
        K, K_gradient = gradient_of(kernel.clone_with_theta(theta), X)
        found, xi = settle(K, signs, xi, scores)
        scores = found.scores
        if step is not None:
            step()
        return -found.bound, -bound_gradient(found, K_gradient)

    if not kernel.n_dims:
        return Start(kernel, settle(values_of(kernel, X), signs, xi, scores)[0].bound)
    reached = minimize(descent, kernel.theta, jac=True, method="L-BFGS-B", bounds=kernel.bounds, options=ENOUGH)
    return Start(kernel.clone_with_theta(reached.x), -float(reached.fun))


def _climb_all(starts: list, X: NDArray, signs: NDArray) -> list[Start]:
    reached = []
    with progress(f"{len(starts)} starts", len(starts), None, "fewer n_restarts take less time") as done:
        for kernel in starts:
            with shares(done, EVALUATIONS) as step:
                reached.append(climb(kernel, X, signs, step))
    return reached


class VariationalGPClassifier(Baseline):
    r"""Gaussian process classification of two classes: logistic link, zero mean, variational inference.

    The posterior of the latent function is approximated by the Gaussian of the bound of Jaakkola and Jordan. The bound
    of the marginal likelihood is maximised over the parameters of the kernel from several starts. Each evaluation of
    the bound takes O(n^3) time.

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, default=None
        Prior covariance, and the first start. None means `1.0 * RBF(m)`, where m is the median distance of the training
        points. Parameters with bounds "fixed" stay.
    n_restarts : int, default=10
        Number of additional random starts. Length scales are drawn between a tenth of the median distance and ten times
        that, other parameters between 0.1 and 100. All are uniform in their logarithms and cut to their bounds. The
        best bound wins.
    random_state : int, RandomState instance, numpy Generator or None, default=None
        For the random starts.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    kernel_ : kernel
        The covariance in use.
    bound_ : float
        The maximised lower bound of the log marginal likelihood.
    restarts_ : list of Start
        `kernel` and `bound` that each start reached. The first belongs to the given kernel.
    X_fit_, y_fit_ : the training points, and their class numbers

    Examples
    --------
    >>> from coxfield.baselines import VariationalGPClassifier
    >>> from coxfield.datasets import load_synth
    >>> synth = load_synth()
    >>> clf = VariationalGPClassifier(n_restarts=0).fit(synth.X_train, synth.y_train)
    >>> bool(clf.score(synth.X_test, synth.y_test) > 0.89)
    True
    """

    def __init__(self, kernel: Any = None, *, n_restarts: int = 10, random_state: RandomState = None) -> None:
        self.kernel = kernel
        self.n_restarts = n_restarts
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X, y) -> Self:
        """Maximise the bound over the parameters of the kernel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of two classes.

        Returns
        -------
        self
        """
        if not isinstance(self.n_restarts, int | np.integer) or self.n_restarts < 0:
            raise ValueError(f"n_restarts must be an integer of at least 0, got {self.n_restarts!r}")
        X, self.y_fit_ = self._labelled_points(X, y)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass, with "
                f"{len(self.classes_)} classes: wrap the estimator in sklearn.multiclass.OneVsRestClassifier"
            )
        self.X_fit_ = X
        if self.kernel is not None:
            recognise(self.kernel, X.shape[1])  # refuses wrong kernels before any work is done
        signs = 2.0 * self.y_fit_ - 1
        coordinates = _coordinates(X, self.kernel)
        starts = self._starts(coordinates)
        with rows_named({"training points": X}):
            self.restarts_ = _climb_all(starts, coordinates, signs)
            best = max(self.restarts_, key=lambda start: start.bound)
            self.kernel_, self.bound_ = best.kernel, best.bound
            K = values_of(self.kernel_, coordinates)
        found, _ = settle(K, signs, np.sqrt(np.diag(K)), np.zeros(len(X)))
        self._scores, self._root, self._factor = found.scores, found.root, found.factor
        return self

    def _starts(self, X) -> list:
        """The given kernel, and copies of it with random parameters."""
        distances = pdist(X)
        typical = float(np.median(distances)) or float(distances.max()) or 1.0
        kernel = default_kernel(typical) if self.kernel is None else with_logarithms(clone(self.kernel))
        if not kernel.n_dims:
            return [kernel]
        low, high = _ranges(kernel, typical).T
        seed = self.random_state
        rng = seed if isinstance(seed, np.random.Generator) else check_random_state(seed)
        draws = rng.uniform(low, high, size=(self.n_restarts, kernel.n_dims))
        return [kernel, *map(kernel.clone_with_theta, draws)]

    def latent(self, X) -> tuple[NDArray, NDArray]:
        """Mean and variance of the latent function at new points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        two ndarrays of shape (n_samples,)
        """
        X = self._queries(X)
        with rows_named({"training points": self.X_fit_, "queries": X}):
            K, variances = values_of(self.kernel_, self.X_fit_, X), diagonal_of(self.kernel_, X)
        V = solve_triangular(self._factor, self._root[:, None] * K, lower=True)
        return K.T @ self._scores, np.maximum(variances - np.einsum("ij,ij->j", V, V), 0)

    def decision_function(self, X) -> NDArray:
        """Mean of the latent function: positive where the second class is the more probable.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.latent(X)[0]

    def predict_proba(self, X) -> NDArray:
        """Probabilities of the classes: the mean of sigma(f) over the posterior of f, by Gauss-Hermite quadrature.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, 2)
        """
        mean, variance = self.latent(X)
        f = mean[:, None] + np.sqrt(variance)[:, None] * NODES
        return np.stack([expit(-f) @ WEIGHTS, expit(f) @ WEIGHTS], axis=1) / WEIGHTS.sum()

    def _decisions(self, X) -> NDArray:
        return self.decision_function(X)


def default_kernel(typical: float):
    """The isotropic squared exponential with a signal variance, free within a few orders of magnitude."""
    return ConstantKernel(1.0, (1e-2, 1e4)) * RBF(typical, (1e-2 * typical, 1e2 * typical))


def _ranges(kernel, typical: float) -> NDArray:
    """The ranges of the random starts, as logarithms, shape (parameters, 2)."""
    ranges = [
        np.log(typical * np.array([0.1, 10.0]) if "length_scale" in parameter.name else np.array([0.1, 100.0]))
        for parameter in kernel.hyperparameters
        if not parameter.fixed
        for _ in range(parameter.n_elements)
    ]
    return np.clip(ranges, kernel.bounds[:, :1], kernel.bounds[:, 1:])


def _coordinates(X: NDArray, kernel) -> NDArray:
    """The points in the space they span, if it has fewer dimensions and the kernel depends only on distances."""
    wide = X.shape[1] > len(X)
    if not wide or (kernel is not None and not _isotropic(kernel)):
        return X
    (triangle,) = qr((X - X.mean(axis=0)).T, mode="r", check_finite=False)
    return triangle[: len(X)].T


def _isotropic(kernel) -> bool:
    """Whether the kernel is a function of Euclidean distances."""
    return factorise(kernel) is not None and np.size(length_unit(kernel)) == 1

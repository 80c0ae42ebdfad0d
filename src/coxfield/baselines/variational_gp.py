"""`VariationalGPClassifier`: Gaussian process classification with the logistic link, by a variational bound.

Jaakkola and Jordan (2000) bound each logistic factor from below by a Gaussian in f that touches it at f = xi and at
f = -xi:

    log sigma(y f) >= log sigma(xi) + (y f - xi) / 2 - lambda(xi) (f^2 - xi^2),    lambda(xi) = tanh(xi / 2) / 4 xi.

The prior times these Gaussians is Gaussian, its integral bounds the marginal likelihood, and it is maximised over the
contacts xi and the parameters of the kernel. This is the inference that GPML, the toolbox of the paper, calls 'VB'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, qr, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from coxfield.baselines.checks import class_numbers
from coxfield.covariance import recognise

if TYPE_CHECKING:
    from numpy.typing import NDArray

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(64)
CLOSE = 1e-6  # rise of the bound, in nats, below which the contacts have settled: nothing beside a unit of evidence
ROUNDS = 200  # of either iteration, at most; about five are usual
ENOUGH = {"ftol": 1e-8, "gtol": 1e-3}  # a thousandth of a nat for a parameter e times as large


@dataclass(frozen=True)
class Posterior:
    """The Gaussian that stands for the posterior of f at the training points, at given contacts."""

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
        """R = (K + 1 / 2 lambda)^-1, by which data lower the variance: S = K - K R K."""
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
    """The best contacts, where xi^2 = variance + mean^2, from contacts and scores to start with.

    Putting in mean and variance in turn never lowers the bound, but creeps. With the variance held, the best mean is
    the mode of a concave function, a few Newton steps away; the variance then needs a few rounds.

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

    There xi_i^2 = variance_i + m_i^2, and every term is concave in m. Newton's method with halved steps.
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
    """log(2 cosh(xi / 2)) = xi / 2 - log sigma(xi), of which the bound has the negative."""
    return xi / 2 - log_expit(xi)


def bound_gradient(found: Posterior, K_gradient: NDArray) -> NDArray:
    """Gradient of the bound by the parameters of the kernel.

    At the best contacts the bound does not change with them, so they count as constant (envelope theorem).
    """
    return np.einsum("ij,ijk->k", np.outer(found.scores, found.scores) - found.precision_of_data(), K_gradient) / 2


@dataclass(frozen=True)
class Start:
    """What one start of the maximisation reached."""

    kernel: Any
    bound: float


def climb(kernel, X: NDArray, signs: NDArray) -> Start:
    """Maximise the bound over the free parameters of a kernel, from where they are."""
    # Kept from one evaluation to the next, which saves most rounds.
    xi, scores = np.sqrt(kernel.diag(X)), np.zeros(len(X))

    def descent(theta: NDArray) -> tuple[float, NDArray]:
        nonlocal xi, scores
        K, K_gradient = kernel.clone_with_theta(theta)(X, eval_gradient=True)
        found, xi = settle(K, signs, xi, scores)
        scores = found.scores
        return -found.bound, -bound_gradient(found, K_gradient)

    if not kernel.n_dims:
        return Start(kernel, settle(kernel(X), signs, xi, scores)[0].bound)
    reached = minimize(descent, kernel.theta, jac=True, method="L-BFGS-B", bounds=kernel.bounds, options=ENOUGH)
    return Start(kernel.clone_with_theta(reached.x), -float(reached.fun))


class VariationalGPClassifier(ClassifierMixin, BaseEstimator):
    r"""Gaussian process classification of two classes: logistic link, zero mean, variational inference.

    The posterior of the latent function is approximated by the Gaussian of the bound of Jaakkola and Jordan, and the
    bound of the marginal likelihood is maximised over the parameters of the kernel from several starts. Fitting takes
    O(n^3) time for each evaluation of the bound.

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, default=None
        Prior covariance, and the first start. None stands for `1.0 * RBF(m)` with m the median distance of the training
        points. Parameters with bounds "fixed" stay.
    n_restarts : int, default=10
        Random starts besides: length scales between a tenth of the median distance and ten times that, other parameters
        between 0.1 and 100, uniform in their logarithms, cut to their bounds. The best bound wins.
    random_state : int, RandomState instance or None, default=None
        For the random starts.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    kernel_ : kernel
        The covariance in use.
    bound_ : float
        The maximised lower bound of the log marginal likelihood.
    restarts_ : list of Start
        `kernel` and `bound` that each start reached, the given kernel's first.
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

    def __init__(self, kernel=None, *, n_restarts=10, random_state=None):
        self.kernel = kernel
        self.n_restarts = n_restarts
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X, y):
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
        X, y = validate_data(self, X, y, dtype=np.float64)
        self.X_fit_, self.y_fit_ = X, self._codes(y)
        signs = 2.0 * self.y_fit_ - 1
        coordinates = _coordinates(X, self.kernel)
        starts = self._starts(coordinates)
        self.restarts_ = [climb(kernel, coordinates, signs) for kernel in starts]
        best = max(self.restarts_, key=lambda start: start.bound)
        self.kernel_, self.bound_ = best.kernel, best.bound
        K = self.kernel_(coordinates)
        found, _ = settle(K, signs, np.sqrt(np.diag(K)), np.zeros(len(X)))
        self._scores, self._root, self._factor = found.scores, found.root, found.factor
        return self

    def _codes(self, y) -> NDArray:
        """Set the classes; the class number of each row."""
        self.classes_, codes = class_numbers(y, self)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass, with "
                f"{len(self.classes_)} classes: wrap the estimator in sklearn.multiclass.OneVsRestClassifier"
            )
        return codes

    def _starts(self, X) -> list:
        """The given kernel, and copies of it with random parameters."""
        distances = pdist(X)
        typical = float(np.median(distances)) or float(distances.max()) or 1.0
        kernel = default_kernel(typical) if self.kernel is None else clone(self.kernel)
        if not kernel.n_dims:
            return [kernel]
        low, high = _ranges(kernel, typical).T
        draws = check_random_state(self.random_state).uniform(low, high, size=(self.n_restarts, kernel.n_dims))
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
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        K = self.kernel_(self.X_fit_, X)
        V = solve_triangular(self._factor, self._root[:, None] * K, lower=True)
        return K.T @ self._scores, np.maximum(self.kernel_.diag(X) - np.einsum("ij,ij->j", V, V), 0)

    def decision_function(self, X):
        """Mean of the latent function: positive where the second class is the more probable.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.latent(X)[0]

    def predict_proba(self, X):
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

    def predict(self, X):
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = (self.decision_function(X) > 0).astype(int)
        return self.classes_[codes]


def default_kernel(typical: float):
    """The isotropic squared exponential with a signal variance, free within a few orders of magnitude."""
    return ConstantKernel(1.0, (1e-2, 1e4)) * RBF(typical, (1e-2 * typical, 1e2 * typical))


def _ranges(kernel, typical: float) -> NDArray:
    """Where the random starts are drawn from, as logarithms, shape (parameters, 2)."""
    ranges = [
        np.log(typical * np.array([0.1, 10.0]) if "length_scale" in parameter.name else np.array([0.1, 100.0]))
        for parameter in kernel.hyperparameters
        if not parameter.fixed
        for _ in range(parameter.n_elements)
    ]
    return np.clip(ranges, kernel.bounds[:, :1], kernel.bounds[:, 1:])


def _coordinates(X: NDArray, kernel) -> NDArray:
    """The points in the space they span, where that has fewer dimensions and the kernel knows only distances."""
    wide = X.shape[1] > len(X)
    if not wide or (kernel is not None and not _isotropic(kernel, X.shape[1])):
        return X
    (triangle,) = qr((X - X.mean(axis=0)).T, mode="r", check_finite=False)
    return triangle[: len(X)].T


def _isotropic(kernel, n_features: int) -> bool:
    described = recognise(kernel, n_features)
    return described.recognised and isinstance(described.length_scale, float)

"""One class's permanental process: its kernels, and the ratio of alpha-permanents that a new point gives.

Exact, cyclic and sampled ratios differ only in the matrix Q of alpha C(x*, x*) + a' Q a, with a the covariances of x*
to the points of the class. Alpha and variances may be of any size: their products are sums of logarithms here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from sklearn.utils import gen_batches

from coxfield.engine.class_sums import ClassSums, Scores
from coxfield.geometry.window import Quadrature, Window, gauss_legendre
from coxfield.kernels.namespace import cross_out
from coxfield.permanents.cyclic import expand
from coxfield.permanents.permanent import importance_permanent, insertion_matrix
from coxfield.progress import progress
from coxfield.selection.loo import SelectionPath
from coxfield.utils.numbers import logs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from coxfield.kernels.protocol import Covariance, PerClass

# The two covariances of a permanental Cox process: C-hat for product densities, C-tilde for Janossy densities.
#
# C-hat = 2 C. On a box window, C-tilde has the eigenfunctions of C-hat with eigenvalues lambda / (1 + lambda), so as
# operators over the window C-tilde = C-hat - C-hat (1 + C-hat)^{-1} C-hat. With Gauss-Legendre nodes z and weights v,
#
# .. math:: \tilde C(x, x') = \hat C(x, x')
#           - \hat c(x)' V^{1/2} (1 + V^{1/2} \hat C[z] V^{1/2})^{-1} V^{1/2} \hat c(x'),
#
# which sums the eigen-expansion without dividing by small eigenvalues. It makes sense outside the window too: there,
# the density asks for a point and says nothing of others.


WIDEST = 1e80  # of a side of the window, or its inverse: the product of three is still a number
NODES = {1: 200, 2: 32, 3: 10}  # per axis; about 1000 in all, because their Cholesky factor costs O(nodes^3)
STRONGEST = 8e307  # variance; twice that must be a floating point number
COARSER = 0.75  # the share of nodes per side whose C-tilde is compared
TOLERANCE = 0.01  # the largest difference allowed between the two, relative to C-hat(x, x)
LOOKED_AT = 100  # points at which they are compared
DIGITS = 1e-6  # the largest share of C-tilde(x, x) that may be rounding


def check_window(window, X: NDArray) -> NDArray:
    """The window as one row (low, high) per feature; None stands for the box of the points, widened on each side.

    It is widened by the mean spacing of n points in a row: if n points are spread evenly over an interval, the
    outermost lie that far inside.
    """
    n, d = X.shape
    if d > max(NODES):
        raise ValueError(
            f"Janossy densities integrate over a window in at most {max(NODES)} dimensions, but the data have {d} "
            'features: give density="product"'
        )
    if window is None:
        low, high = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
        _refuse_extreme(low, high)
        gap = (high - low) / max(n - 1, 1)
        window = np.stack([low - gap, high + gap], axis=1)
    elif np.shape(window) != (d, 2):
        raise ValueError(f"window must be a pair (low, high) for each of {d} features, got shape {np.shape(window)}")
    return np.array(Window(window).sides)


def _refuse_extreme(low: NDArray, high: NDArray) -> None:
    """Refuse features whose window has a volume that is not a number."""
    size = np.maximum(np.abs(low), np.abs(high))
    wide = np.maximum(high / 2 - low / 2, size * np.finfo(float).eps)
    for k in np.flatnonzero((size > WIDEST) | ((wide < 1 / WIDEST) & (size > 0))):
        raise ValueError(
            f"feature {k} has values from {low[k]:.3g} to {high[k]:.3g}, so that the volume of the window is beyond "
            "what numbers can say: multiply it by a power of ten, or give a window"
        )


def quadrature(window: Window | ArrayLike, share: float = 1.0) -> Quadrature:
    """Gauss-Legendre nodes over the window, with a share of the usual number per axis."""
    window = Window.of(window)
    return gauss_legendre(window, round(share * NODES[window.dimension]))


@dataclass(frozen=True)
class ScaledRows:
    """Rows of covariances relative to the largest of each row, so that underflow spoils nothing that counts."""

    values: NDArray
    log_scale: NDArray

    @classmethod
    def of(cls, covariances: NDArray, *, leave_out: bool) -> ScaledRows:
        """Scale rows of covariances; with `leave_out` the diagonal is zero."""
        if leave_out:
            np.fill_diagonal(covariances, 0)
        largest = np.abs(covariances).max(axis=1)
        return cls(covariances / np.where(largest > 0, largest, 1)[:, None], logs_of(largest))

    @classmethod
    def of_logs(cls, logs: NDArray) -> ScaledRows:
        """The same from logs of covariances."""
        top = logs.max(axis=1)
        return cls(np.exp(logs - np.where(np.isneginf(top), 0, top)[:, None]), top)


@dataclass(frozen=True)
class ProductKernel:
    """C-hat = 2 C: with it, alpha = k / 2 is the process whose intensity is the sum of k squared Gaussian processes."""

    covariance: Covariance

    def diagonal(self, X: NDArray) -> NDArray:
        """C-hat(x, x) of each row."""
        variances = np.broadcast_to(self.covariance.diagonal(X), len(X)).astype(float)
        wrong = ~((variances > 0) & (variances < STRONGEST))
        if wrong.any():
            raise ValueError(
                f"{self.covariance.kernel!r} has variance {variances[wrong][0]:.3g} at a point: it must be positive "
                f"and below {STRONGEST:.0e}"
            )
        return 2 * variances

    def rows(self, X: NDArray, Y: NDArray, *, leave_out: bool = False) -> ScaledRows:
        """C-hat between each row of X and all of Y."""
        return ScaledRows.of_logs(self._logs(X, Y, np.arange(len(X)) if leave_out else None))

    def values(self, X: NDArray, Y: NDArray) -> NDArray:
        """C-hat between all pairs, where it may underflow."""
        return np.exp(self._logs(X, Y))

    def _logs(self, X: NDArray, Y: NDArray, leave_out: NDArray | None = None) -> NDArray:
        points = self.covariance.bind(Y)
        logs = points.at(X).log_tile(points) + np.log(2)
        return logs if leave_out is None else cross_out(logs, leave_out, 0, -np.inf)

    def matrix(self, X: NDArray) -> NDArray:
        """C-hat of some points, with what the kernel says of a point and itself on the diagonal."""
        values = self.values(X, X)
        np.fill_diagonal(values, self.diagonal(X))
        return (values + values.T) / 2


@dataclass(frozen=True)
class LocalKernel:
    """C-tilde over a window; build it with `localise`. Values may be negative, by a little."""

    whole: ProductKernel
    quadrature: Quadrature
    factor: NDArray
    """Lower Cholesky factor of 1 + V^(1/2) C-hat V^(1/2)."""

    def _removed(self, X: NDArray) -> NDArray:
        """Columns whose inner products are what the window takes from C-hat."""
        columns = self.quadrature.roots[:, None] * self.whole.values(self.quadrature.nodes, X)
        return solve_triangular(self.factor, columns, lower=True)

    def diagonal(self, X: NDArray) -> NDArray:
        """C-tilde(x, x) of each row."""
        whole = self.whole.diagonal(X)
        return self._with_digits(whole, whole - np.square(self._removed(X)).sum(axis=0))

    def _with_digits(self, whole: NDArray, left: NDArray) -> NDArray:
        """What is left of variances; refused if it has no digits, or is not positive."""
        if not (np.finfo(float).eps * whole < DIGITS * left).all():
            raise ValueError(too_strong(self.whole, whole.max() / 2))
        return left

    def rows(self, X: NDArray, Y: NDArray, *, leave_out: bool = False) -> ScaledRows:
        """C-tilde between each row of X and all of Y."""
        return ScaledRows.of(self.whole.values(X, Y) - self._removed(X).T @ self._removed(Y), leave_out=leave_out)

    def matrix(self, X: NDArray) -> NDArray:
        """C-tilde of some points."""
        removed, whole = self._removed(X), self.whole.matrix(X)
        left = whole - removed.T @ removed
        self._with_digits(np.diagonal(whole), np.diagonal(left))
        return left

    @property
    def log_void(self) -> float:
        """D, the sum of log(1 + lambda): the probability of an empty window is exp(-alpha D)."""
        return 2 * float(np.log(np.diagonal(self.factor)).sum())


def localise(whole: ProductKernel, rule: Quadrature) -> LocalKernel:
    """C-tilde from C-hat, in O(nodes^3) operations."""
    with np.errstate(over="ignore", invalid="ignore"):
        weighted = whole.matrix(rule.nodes) * np.outer(rule.roots, rule.roots)
    try:
        if not np.isfinite(weighted).all():
            raise LinAlgError
        factor = cholesky(weighted + np.eye(len(weighted)), lower=True)
    except LinAlgError:  # beside such eigenvalues, 1 is lost
        raise ValueError(too_strong(whole, whole.diagonal(rule.nodes).max() / 2)) from None
    return LocalKernel(whole, rule, factor)


def too_strong(whole: ProductKernel, variance: float) -> str:
    """What to say of a variance that leaves no digits to lambda / (1 + lambda)."""
    return (
        f"{whole.covariance.kernel!r} has variance {variance:.3g}, too large for Janossy densities: give a smaller "
        'variance, a larger alpha if kernel is None, or density="product"'
    )


def local_kernel(whole: ProductKernel, box: NDArray, X: NDArray) -> LocalKernel | None:
    """C-tilde over the box, or None when the nodes are too few for a covariance so short.

    They are too few when three quarters as many per side give another C-tilde, at some of the points X or at some of
    the coarser nodes: a covariance that reaches from no node to a point shows up at the nodes.
    """
    local, coarse = localise(whole, quadrature(box)), localise(whole, quadrature(box, COARSER))
    some = np.concatenate([_some(X), _some(coarse.quadrature.nodes)])
    difference = np.abs(local.matrix(some) - coarse.matrix(some)).max()
    return local if difference <= TOLERANCE * whole.diagonal(some).max() else None


def _some(points: NDArray) -> NDArray:
    return points[:: -(-len(points) // LOOKED_AT)]


ROWS = 1000  # queries at a time
FASTER = "fewer length_scales or cycles take less time"


@dataclass(frozen=True)
class Units:
    """Standard deviations of some points. In these units covariances are correlations, however large variances are."""

    relative: NDArray
    """Standard deviations divided by the largest."""
    log_largest: float

    @classmethod
    def of(cls, A: NDArray) -> Units:
        """The units of a matrix of covariances."""
        deviations = np.sqrt(np.diagonal(A))
        return cls(deviations / deviations.max(), float(np.log(deviations.max())))

    def matrix(self, A: NDArray) -> NDArray:
        """Correlations."""
        deviations = np.sqrt(np.diagonal(A))
        return A / deviations[:, None] / deviations

    def rows(self, rows: ScaledRows) -> ScaledRows:
        """Covariances of new points with these points, in the units of these points."""
        found = ScaledRows.of(rows.values / self.relative, leave_out=False)
        return ScaledRows(found.values, found.log_scale + rows.log_scale - self.log_largest)


@dataclass(frozen=True)
class ClassProcess:
    """The fitted process of one class; build it with `fit_class`."""

    kernel: ProductKernel | LocalKernel
    alpha: float
    points: NDArray
    method: str
    units: Units
    insertion: NDArray
    """Q of the correlations."""
    effective_samples: float | None = None

    def log_prior(self, X: NDArray) -> NDArray:
        """log of alpha C(x*, x*): the ratio far from all points."""
        return np.log(self.alpha) + np.log(self.kernel.diagonal(X))

    def log_excess(self, X: NDArray) -> tuple[NDArray, NDArray]:
        """Sign and log of a' Q a: what the points of the class add to the prior."""
        signs, logs = np.empty(len(X)), np.empty(len(X))
        for batch in gen_batches(len(X), ROWS):
            rows = self.units.rows(self.kernel.rows(X[batch], self.points))
            values = usable(rows.values, self.method)
            signs[batch], logs[batch] = sign_and_log(np.einsum("ij,ij->i", values @ self.insertion, values), rows)
        return signs, logs


def sign_and_log(forms: NDArray, rows: ScaledRows) -> tuple[NDArray, NDArray]:
    """Quadratic forms in scaled rows, as sign and log."""
    return np.sign(forms), logs_of(np.abs(forms)) + 2 * rows.log_scale


def usable(covariances: NDArray, method: str) -> NDArray:
    """C-tilde as a method can use it: the cyclic expansion and the sampler need its negative values to be zero."""
    return covariances if method == "exact" else np.maximum(covariances, 0)


def fit_class(kernel, X: NDArray, alpha: float, method: str, *, cycles: int, n_samples: int, rng) -> ClassProcess:
    """Compute Q for the points of a class by one of the methods "exact", "cyclic" and "importance"."""
    kernel.diagonal(X)  # refuses variances that are rounding
    A = usable(kernel.matrix(X), method)
    units = Units.of(A)
    correlations = units.matrix(A)
    if method == "exact":
        return ClassProcess(kernel, alpha, X, method, units, insertion_matrix(correlations, alpha))
    if method == "cyclic":
        return ClassProcess(kernel, alpha, X, method, units, expand(correlations, alpha, cycles).insertion())
    estimate = importance_permanent(correlations, alpha, n_samples=n_samples, random_state=rng)
    return ClassProcess(kernel, alpha, X, method, units, estimate.insertion, estimate.effective_samples)


def log_ratios(processes: Sequence[ClassProcess], X: NDArray) -> Scores:
    """Log ratios of alpha-permanents for each query and class, as prior + sums.values, arrays (n, n_classes).

    The logs of what the points add are kept apart, for decisions far from all points.
    """
    prior = np.stack([process.log_prior(X) for process in processes], axis=1)
    excess = []
    with progress(f"ratios of {len(X)} points", len(processes), None) as done:
        for process in processes:
            excess.append(process.log_excess(X))
            done(1)
    signs, logs = map(np.array, zip(*excess, strict=True))
    return Scores(prior, excess_sums(prior, signs.T, logs.T))


def excess_sums(prior: NDArray, signs: NDArray, logs: NDArray) -> ClassSums:
    """Log of (prior + excess) / prior, beside the log of the excess itself."""
    if ((signs < 0) & (logs >= prior)).any():
        raise ValueError(
            "a ratio of alpha-permanents is not positive, so that there is no permanental process for this alpha and "
            'covariance: give an alpha that is a multiple of 1/2, or method="cyclic"'
        )
    relative = logs - prior
    # If alpha is small, the excess may exceed the prior by more than floating point can say.
    gained = np.logaddexp(0, np.where(signs > 0, relative, -np.inf))
    lost = np.log1p(-np.exp(np.where(signs < 0, relative, -np.inf)))
    return ClassSums(gained + lost, np.where(signs > 0, logs, -np.inf))


def loo_log_ratios(X: NDArray, y: NDArray, kernels: PerClass, alpha: NDArray, cycles: int, done=None) -> Scores:
    """Log ratios of each training point from all the others, for each class, as from `log_ratios`.

    The cyclic approximation leaves a point out of its own class in its expansion; to the other classes it is a new
    point. That takes O(n^3) operations, where n refits would be O(n^4). `done` is called with the share of each
    class in the work.
    """
    n, n_classes = len(y), len(kernels)
    prior, signs, logs = (np.empty((n, n_classes)) for _ in range(3))
    for c, kernel in enumerate(kernels):
        own, other = y == c, y != c
        A = usable(kernel.matrix(X[own]), "cyclic")
        units = Units.of(A)
        expansion = expand(units.matrix(A), alpha[c], cycles)
        process = ClassProcess(kernel, alpha[c], X[own], "cyclic", units, expansion.insertion())
        prior[:, c] = process.log_prior(X)
        signs[other, c], logs[other, c] = process.log_excess(X[other])
        rows = units.rows(kernel.rows(X[own], X[own], leave_out=True))
        forms = expansion.leave_one_out(usable(rows.values, "cyclic"))
        # Nothing here is negative but by rounding, in what is taken away.
        signs[own, c], logs[own, c] = sign_and_log(np.maximum(forms, 0), rows)
        if done is not None:
            done(float(own.mean()))
    return Scores(prior, excess_sums(prior, signs, logs))


def loo_path(X: NDArray, y: NDArray, alpha: NDArray, cycles: int, factors: NDArray, at: Callable, criteria):
    """Leave-one-out losses for factors of the length scale, longest first, as a `SelectionPath`.

    `at(factor)` gives one covariance per class, or None when the length scale is too short for the window: the path
    then ends there. `criteria` are those of the path.
    """
    rows = []
    with progress(f"leave-one-out, {len(factors)} length scales", len(factors), None, FASTER) as done:
        for factor in factors.tolist():
            kernels = at(factor)
            if kernels is None:
                break
            scores = loo_log_ratios(X, y, kernels, alpha, cycles, done)
            losses = -scores.log_probabilities[np.arange(len(y)), y]
            error = float(np.mean(scores.decisions != y))
            rows.append({"factor": factor, "variance": 1.0, "loo_error": error, "loo_log_loss": float(losses.mean())})
    return SelectionPath.of(rows, criteria)

r"""The latent field given a pattern: where the intensity really was high, and how sure one can be.

On a grid, cell j has a count :math:`y_j \sim \text{Poisson}(a_j \exp f_j)`, where a is its volume in the window, and f
is Gaussian with the covariance of the process. The posterior of f is approximated by a Gaussian distribution. All
products with the covariance are Fourier transforms on the torus of the circulant embedding, and all equations are
solved by conjugate gradients, so that no matrix is ever formed on large grids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy import fft
from scipy.linalg import solve_triangular
from scipy.special import ndtr

from coxfield.process.densities import mean_at, variance
from coxfield.process.fields import Grid, Intensity, embed
from coxfield.progress import progress
from coxfield.utils.numbers import generator, positive_number, whole_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray
    from sklearn.gaussian_process.kernels import Kernel

    from coxfield.process.densities import Mean
    from coxfield.process.pattern import PointPattern

APPROXIMATIONS = ("variational", "laplace")
CELLS = {1: 512, 2: 64, 3: 16}  # along the longest side
DENSE = 2500  # cells up to which variances are exact, by a Cholesky factor
NEWTON = 1e-4  # largest change of the field in the last step
CG = 1e-5  # relative residual of a solution by conjugate gradients
CG_DRAWS = 1e-2  # the same for draws, whose variances have a standard error of a tenth anyway
ROUNDS = 3  # of variances and means of the variational approximation
EARLY = 20  # draws in all rounds but the last
STEPS = 100  # of Newton at most


class GaussianLog(Protocol):
    """The prior of the log intensity: a Gaussian process, such as that of a `LogGaussianCoxProcess`."""

    @property
    def kernel(self) -> Kernel:
        """C."""

    @property
    def mean(self) -> Mean:
        """mu."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """A Gaussian approximation of the log intensity given a pattern, cell by cell."""

    grid: Grid
    log_mean: NDArray
    """Mean of f, an array of the grid's shape."""
    log_sd: NDArray
    """Standard deviation of f."""
    inside: NDArray
    """Whether a cell lies in the window, at least in part."""

    @property
    def mean(self) -> NDArray:
        """Posterior mean of the intensity, E exp(f) = exp(m + v/2)."""
        return np.exp(self.log_mean + self.log_sd**2 / 2)

    @property
    def sd(self) -> NDArray:
        """Posterior standard deviation of the intensity."""
        return self.mean * np.sqrt(np.expm1(self.log_sd**2))

    def interval(self, level: float = 0.9) -> tuple[NDArray, NDArray]:
        """Bounds between which the intensity of each cell lies with probability `level`."""
        from scipy.stats import norm

        half = norm.ppf((1 + level) / 2) * self.log_sd
        return np.exp(self.log_mean - half), np.exp(self.log_mean + half)

    def exceedance(self, threshold: float) -> NDArray:
        """Probability that the intensity of each cell is above a threshold."""
        return ndtr((self.log_mean - np.log(positive_number("threshold", threshold))) / self.log_sd)

    def intensity(self) -> Intensity:
        """The posterior mean as an intensity, 0 outside of the window."""
        return Intensity(self.grid, np.where(self.inside, self.mean, 0.0))

    def plot(self, ax: Axes | None = None, *, what: str = "mean") -> Axes:
        """Draw the mean or the standard deviation (of the log intensity), `what="mean"` or `"sd"`."""
        from coxfield.plotting.processes import plot_map

        if what not in ("mean", "sd"):
            raise ValueError(f"what must be 'mean' or 'sd', got {what!r}")
        values = self.mean if what == "mean" else self.log_sd
        name = "posterior mean intensity" if what == "mean" else "standard deviation of the log intensity"
        return plot_map(self.grid, np.where(self.inside, values, np.nan), name, ax, root=what == "mean")


def latent_posterior(
    process: GaussianLog,
    pattern: PointPattern,
    grid: Grid | None = None,
    *,
    approximation: str = "variational",
    n_samples: int = 100,
    random_state=0,
) -> Posterior:
    """Approximate the posterior of the log intensity of a process given a pattern of it.

    Parameters
    ----------
    process : LogGaussianCoxProcess
    pattern : PointPattern
    grid : Grid, optional
        Over the box of the window. Default: 64 cells along the longest side of a plane window.
    approximation : {"variational", "laplace"}
        "laplace" has the mode as its mean. "variational" is the Gaussian distribution of least Kullback-Leibler
        divergence. It costs a few rounds of the first, and its means are closer, because posteriors of few counts are
        skew.
    n_samples : int
        On grids of more than 2,500 cells variances come from so many draws of the Gaussian approximation. Their
        relative standard error is sqrt(2 / n_samples), and half of that for standard deviations.
    random_state : int, RandomState instance, numpy Generator or None
        Of these draws.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.process import LogGaussianCoxProcess
    >>> process = LogGaussianCoxProcess(RBF(1.0), mean=1.0)
    >>> pattern = process.sample([(0, 8), (0, 8)], random_state=1)
    >>> found = latent_posterior(process, pattern, Grid.over(pattern.window, 32))
    >>> truth = np.log(pattern.intensity(found.grid.centres())).reshape(32, 32)
    >>> bool((abs(truth - found.log_mean) < 1.64 * found.log_sd).mean() > 0.8)
    True
    """
    if approximation not in APPROXIMATIONS:
        raise ValueError(f"approximation must be one of {', '.join(APPROXIMATIONS)}; got {approximation!r}")
    window = pattern.window
    grid = Grid.over(window.box, CELLS[window.dimension]) if grid is None else grid
    if grid.window.sides != window.sides:
        raise ValueError(f"the grid covers {grid.window.sides}, but the window is {window.sides}: make them agree")
    problem = _Problem.of(process, pattern, grid)
    rng, n_samples = generator(random_state), whole_number("n_samples", n_samples, least=2)
    u, spread = None, np.zeros(grid.shape)
    rounds = 1 if approximation == "laplace" else ROUNDS
    with progress(f"posterior on {np.prod(grid.shape)} cells", rounds, None, "a coarser grid takes less time") as done:
        for number in range(1, rounds + 1):
            u, field = problem.solve(u, spread)
            some = n_samples if number == rounds else min(EARLY, n_samples)
            spread = problem.variances(problem.rates(field, spread), some, rng)
            done(1)
        if approximation == "variational":
            _, field = problem.solve(u, spread)
    return Posterior(grid, field, np.sqrt(spread), problem.exposure > 0)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Counts on a grid and the prior of their log intensity."""

    eigenvalues: NDArray
    """Of half the torus, for real transforms."""
    torus: tuple[int, ...]
    embedding: object
    counts: NDArray
    exposure: NDArray
    level: NDArray
    top: float

    @classmethod
    def of(cls, process: GaussianLog, pattern: PointPattern, grid: Grid) -> _Problem:
        embedding = embed(process.kernel, grid)
        torus = embedding.eigenvalues.shape
        counts = grid.counts(pattern.points)
        exposure = pattern.window.cell_volumes(grid.shape)
        # A point on the rim of a polygon may lie in a cell whose share of the window is rounded to 0.
        exposure = np.where((counts > 0) & (exposure <= 0), grid.cell_volume * 1e-3, exposure)
        level = mean_at(process.mean, grid.centres()).reshape(grid.shape)
        half = embedding.eigenvalues[..., : torus[-1] // 2 + 1]
        return cls(half, torus, embedding, counts, exposure, level, variance(process.kernel, len(grid.shape)))

    def times(self, v: NDArray) -> NDArray:
        """K v for fields v of shape (..., *grid.shape)."""
        axes = range(-len(self.torus), 0)
        around = fft.irfftn(fft.rfftn(v, self.torus, axes=axes) * self.eigenvalues, self.torus, axes=axes)
        return around[(..., *(slice(n) for n in self.counts.shape))]

    def rates(self, f: NDArray, spread) -> NDArray:
        """Expected counts; for the variational approximation, E exp(f) = exp(m + v/2)."""
        return self.exposure * np.exp(np.minimum(f + spread / 2, 100))

    def solve(self, begin: NDArray | None, spread) -> tuple[NDArray, NDArray]:
        """The field where K^-1 (f - mu) = y - a exp(f + v/2), by Newton's method on a concave function.

        With f = mu + K u, the step solves (I + W^1/2 K W^1/2) z = W^1/2 (K b) with b = W (f - mu) + y - rate, and
        u = b - W^1/2 z (Rasmussen and Williams, 2006, algorithm 3.1).
        """
        u, start = (np.zeros_like(self.level) if begin is None else begin), None
        f = self.level + self.times(u)
        value = self._value(u, f, spread)
        for _ in range(STEPS):
            rate = self.rates(f, spread)
            root = np.sqrt(rate)
            b = rate * (f - self.level) + self.counts - rate
            start = self._conjugate(root, root * self.times(b), start)
            u, moved, value = self._step(u, b - root * start, spread, value)
            change = float(np.abs(moved - f).max())
            f = moved
            if change < NEWTON:
                break
        return u, f

    def _value(self, u: NDArray, f: NDArray, spread) -> float:
        """Log posterior density of f = mu + K u, up to a constant."""
        return float((self.counts * f - self.rates(f, spread)).sum() - (u * (f - self.level)).sum() / 2)

    def _step(self, u: NDArray, target: NDArray, spread, value: float) -> tuple[NDArray, NDArray, float]:
        """Go to the target of a Newton step, or part of the way if the log posterior would fall."""
        along, share = self.times(target - u), 1.0
        before = self.level + self.times(u)
        while True:
            field, new = before + share * along, u + share * (target - u)
            there = self._value(new, field, spread)
            if there >= value - 1e-9 * abs(value) or share < 1e-4:
                return new, field, there
            share /= 2

    def _conjugate(self, root: NDArray, right: NDArray, start: NDArray | None = None, goal: float = CG) -> NDArray:
        """Solve (I + W^1/2 K W^1/2) z = right by conjugate gradients, for one field or several at a time."""
        axes = tuple(range(-len(self.torus), 0))
        z = np.zeros_like(right) if start is None else start
        residual = right - z - root * self.times(root * z) if start is not None else right.copy()
        direction = residual.copy()
        size = (residual**2).sum(axis=axes, keepdims=True)
        enough = goal**2 * (right**2).sum(axis=axes, keepdims=True)
        for _ in range(10 * int(np.sqrt(root.size)) + 100):
            if (size <= enough).all():
                break
            image = direction + root * self.times(root * direction)
            alpha = size / np.maximum((direction * image).sum(axis=axes, keepdims=True), 1e-300)
            z = z + alpha * direction
            residual = residual - alpha * image
            last, size = size, (residual**2).sum(axis=axes, keepdims=True)
            direction = residual + size / np.maximum(last, 1e-300) * direction
        return z

    def variances(self, rate: NDArray, n_samples: int, rng: np.random.Generator) -> NDArray:
        """Variances of the Gaussian approximation (K^-1 + W)^-1: exact on small grids, from draws on large ones."""
        return self._exact(rate) if rate.size <= DENSE else self._drawn(rate, n_samples, rng)

    def _exact(self, rate: NDArray) -> NDArray:
        """Diagonal of K - K W^1/2 (I + W^1/2 K W^1/2)^-1 W^1/2 K."""
        n, root = rate.size, np.sqrt(rate).ravel()
        K = self.times(np.eye(n).reshape(n, *rate.shape)).reshape(n, n)
        factor = np.linalg.cholesky(np.eye(n) + root[:, None] * K * root)
        half = solve_triangular(factor, root[:, None] * K, lower=True, check_finite=False)
        return np.maximum(self.top - (half**2).sum(axis=0), 1e-12 * self.top).reshape(rate.shape)

    def _drawn(self, rate: NDArray, n_samples: int, rng: np.random.Generator) -> NDArray:
        """From exact draws of the Gaussian approximation: a draw of the prior, moved by a draw of the data.

        If f ~ N(0, K) and e ~ N(0, I), then f - K W^1/2 (I + W^1/2 K W^1/2)^-1 (W^1/2 f + e) has the covariance wanted.
        """
        root, total, left = np.sqrt(rate), np.zeros(rate.shape), n_samples
        while left:
            some = min(left, 20)
            prior = self.embedding.draw(some, rng)  # type: ignore[attr-defined]
            noise = rng.standard_normal(prior.shape)
            z = self._conjugate(root, root * prior + noise, goal=CG_DRAWS)
            total += ((prior - self.times(root * z)) ** 2).sum(axis=0)
            left -= some
        return total / n_samples

"""Parameter learning: signal variances, length scales and class means by maximum pseudo-likelihood.

The log pseudo-likelihood of the Potts model is the sum of leave-one-out log probabilities, so what is maximised is what
leave-one-out would report. A weak prior is added, without which parameters may run off (`selection/priors.py`), and one
observation of a uniform label, shared out over all points: when every decision is right, the pseudo-likelihood alone
grows with the signal variance for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from coxfield.engine.class_sums import arrange
from coxfield.kernels.covariance import recognise
from coxfield.progress import progress
from coxfield.selection.learning.gradients import pseudo_likelihood
from coxfield.selection.learning.priors import default_prior

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.engine.class_sums import TrainingPoints
    from coxfield.selection.learning.priors import NormalPrior

# By what a parameter is; "mean" for the class means, None for anything else.
REACH = {"constant_value": 300.0, "mean": np.inf, None: 12.0}
"""How far a logarithm may move from its start: beyond, floating-point numbers end before the model changes."""
MOST_ROWS = 20_000  # whose probabilities count, drawn at random where there are more; all points are in the sums
MOST_STEPS = 100
TOLERANCE = 0.01  # nats: a step that gains less is the last


@dataclass(frozen=True)
class Parameters:
    """Kernels and class means, which can be written as one vector."""

    kernels: tuple
    """The different kernels."""
    owner: NDArray
    """Number of the kernel of each class."""
    mean: NDArray

    @classmethod
    def of(cls, kernels: Sequence, mean: NDArray) -> Parameters:
        """From one kernel a class; classes given the same object share it."""
        distinct = {id(kernel): kernel for kernel in kernels}
        order = list(distinct)
        return cls(tuple(distinct.values()), np.array([order.index(id(kernel)) for kernel in kernels]), mean)

    @property
    def vector(self) -> NDArray:
        """Logarithms of what is free in each kernel, then the means."""
        return np.concatenate([*(kernel.theta for kernel in self.kernels), self.mean])

    @property
    def kinds(self) -> list[tuple[str, int]]:
        """What the entries of the vector are, such as "length_scale", and of how many numbers each."""
        free = [entry for kernel in self.kernels for entry in kernel.hyperparameters if not entry.fixed]
        return [*((entry.name.rsplit("__", 1)[-1], entry.n_elements) for entry in free), ("mean", len(self.mean))]

    def at(self, vector: NDArray) -> Parameters:
        """The same kernels with the parameters of a vector."""
        *thetas, mean = np.split(vector, np.cumsum([kernel.n_dims for kernel in self.kernels]))
        kernels = tuple(kernel.clone_with_theta(theta) for kernel, theta in zip(self.kernels, thetas, strict=True))
        return Parameters(kernels, self.owner, mean)

    def bounds(self, *, learn_mean: bool) -> NDArray:
        """Bounds of the vector, shape (len(vector), 2): the kernels' own, within reach of where it is now."""
        reach = np.concatenate([np.full(size, REACH.get(kind, REACH[None])) for kind, size in self.kinds])
        if not learn_mean:
            reach[len(reach) - len(self.mean) :] = 0
        around = self.vector[:, None] + reach[:, None] * [-1, 1]
        own = np.concatenate([kernel.bounds.reshape(-1, 2) for kernel in self.kernels])
        around[: len(own)] = np.clip(around[: len(own)], own[:, :1], own[:, 1:])
        return around

    def prior(self) -> NormalPrior:
        """The default prior, centred where the vector is now."""
        return default_prior(self.vector, self.kinds)

    def arranged(self, training: TrainingPoints) -> TrainingPoints:
        """The training points under these kernels."""
        covariances = [recognise(kernel, training.X.shape[1]) for kernel in self.kernels]
        return arrange(training.X, training.y, [covariances[k] for k in self.owner], training.weights)


@dataclass(frozen=True)
class Learned:
    """What learning arrived at, and how."""

    kernels: list
    """One a class."""
    mean: NDArray
    path: dict[str, NDArray]
    """Columns "step", "log_pseudo_likelihood" and "log_posterior", the start being step 0."""


@dataclass(frozen=True)
class _Objective:
    """The log posterior, pseudo-likelihood times prior, as a function of the vector of parameters."""

    training: TrainingPoints
    start: Parameters
    rows: NDArray
    n_jobs: int | None
    seen: dict[bytes, tuple[float, float]]
    """Log pseudo-likelihood and log posterior by vector."""

    @classmethod
    def of(cls, training: TrainingPoints, start: Parameters, n_jobs) -> _Objective:
        n = len(training.y)
        rows = np.arange(n)
        if n > MOST_ROWS:
            rows = np.sort(np.random.default_rng(0).choice(n, MOST_ROWS, replace=False))
        return cls(training, start, rows, n_jobs, {})

    @property
    def total(self) -> float:
        """Weight of all points."""
        return float(len(self.training.y) if self.training.weights is None else self.training.weights.sum(dtype=float))

    def loss(self, vector: NDArray) -> tuple[float, NDArray]:
        """Negative log posterior a point, and its gradient."""
        here, prior = self.start.at(vector), self.start.prior()
        arranged = here.arranged(self.training)
        found = pseudo_likelihood(arranged, here.mean, rows=self.rows, smoothing=1 / self.total, n_jobs=self.n_jobs)
        share = len(self.training.y) / len(
            self.rows
        )  # so that the sum over rows drawn at random stands for all, without bias
        log_posterior = share * found.smoothed + prior.log_density(vector)
        gradient = share * np.concatenate([*found.by_theta, found.by_mean]) + prior.gradient(vector)
        self.seen[vector.tobytes()] = share * found.value, log_posterior
        return -log_posterior / self.total, -gradient / self.total


def learn(
    training: TrainingPoints, kernels: Sequence, mean: NDArray, *, learn_mean: bool = True, n_jobs=None, verbose=0
) -> Learned:
    """Climb from the given kernels and means to a maximum of pseudo-likelihood times prior, by L-BFGS-B.

    Parameters
    ----------
    training : TrainingPoints
    kernels : sequence of kernels, one a class
        Where to start; what is free in them is learned, within their bounds.
    mean : array of shape (n_classes,)
        Where the means start, and the centre of their prior. They move without changing their sum, since a common shift
        changes no probability.
    learn_mean : bool
    n_jobs : int, optional
    verbose : int
        Above 0, show the progress.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.engine.class_sums import arrange
    >>> from coxfield.kernels.covariance import recognise
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = rng.normal(size=(60, 2)) + 2 * y[:, None] * [1, 0]  # the second feature says nothing
    >>> kernel = 1.0 * RBF([1.0, 1.0])
    >>> learned = learn(arrange(X, y, [recognise(kernel, 2)] * 2), [kernel] * 2, np.zeros(2))
    >>> first, second = learned.kernels[0].k2.length_scale
    >>> bool(second > 2 * first), bool((np.diff(learned.path["log_posterior"]) > 0).all())
    (True, True)
    """
    start = Parameters.of(kernels, np.asarray(mean, dtype=float))
    bounds = start.bounds(learn_mean=learn_mean)
    if not (bounds[:, 0] < bounds[:, 1]).any():
        raise ValueError(f"there is nothing to learn: everything in {kernels[0]!r} is fixed; give selection=None")
    steps = [np.clip(start.vector, *bounds.T)]
    objective = _Objective.of(training, start, n_jobs)
    with progress(f"learning, {MOST_STEPS} steps at most", MOST_STEPS, verbose) as done:

        def arrived(vector: NDArray) -> None:
            steps.append(vector.copy())
            if done is not None:
                done(1)

        limits = {"maxiter": MOST_STEPS, "ftol": TOLERANCE / objective.total}
        minimize(objective.loss, steps[0], jac=True, method="L-BFGS-B", bounds=bounds, callback=arrived, options=limits)
    end = start.at(steps[-1])
    values = np.array([objective.seen[vector.tobytes()] for vector in steps])
    path = {"step": np.arange(len(steps)), "log_pseudo_likelihood": values[:, 0], "log_posterior": values[:, 1]}
    return Learned([end.kernels[k] for k in end.owner], end.mean, path)

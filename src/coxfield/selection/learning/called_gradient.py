"""Derivatives of class sums for kernels that are not recognised: scikit-learn's own, for all pairs at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn import get_config

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.class_sums import Group, TrainingPoints


@dataclass(frozen=True)
class CalledPart:
    """Class sums of some rows with their derivatives."""

    sums: NDArray
    """Shape (rows, classes of the group)."""
    derivatives: NDArray
    """Of the scores, C(x, x) / 2 included, shape (rows, classes of the group, len(theta))."""

    def by_theta(self, residual: NDArray) -> NDArray:
        """Derivatives of the pseudo-likelihood by `kernel.theta`."""
        return np.einsum("ji,jip->p", residual, self.derivatives)


@dataclass(frozen=True)
class CalledGroup:
    """The points of one group as seen from all rows, through a kernel that can only be called."""

    whole: CalledPart

    @classmethod
    def of(cls, training: TrainingPoints, group: Group, rows: NDArray, *, shared: bool) -> CalledGroup:
        """Call the kernel with its gradient, once: scikit-learn gives gradients for all pairs of one set only."""
        kernel = group.covariance.kernel
        _check_size(kernel, training.X.shape[0])
        values, gradient = kernel(training.X, eval_gradient=True)
        halves = np.einsum("jjp->jp", gradient)[rows] / 2
        everything = np.concatenate([values[..., None], gradient], axis=2)[rows]
        everything[np.arange(len(rows)), rows] = 0
        weights = 1.0 if group.weights is None else group.weights[:, None].astype(float)
        sums = np.add.reduceat(everything[:, group.rows] * weights, group.starts, axis=1)
        return cls(CalledPart(sums[..., 0], sums[..., 1:] + halves[:, None, :]))

    def part(self, X, block: slice) -> CalledPart:
        """What a block of rows sees."""
        return CalledPart(self.whole.sums[block], self.whole.derivatives[block])


def _check_size(kernel, n: int) -> None:
    megabytes, limit = 3 * 8 * n**2 * (1 + kernel.n_dims) / 2**20, get_config()["working_memory"]
    if megabytes > limit:
        raise ValueError(
            f"learning {kernel!r} on {n} points would hold {megabytes:.0f} MiB of its gradients, more than the "
            f"working_memory of {limit} MiB: use a product of constants with one RBF, Matern or RationalQuadratic, "
            "which is learned block by block, or fewer points, or raise sklearn.set_config(working_memory=...)"
        )

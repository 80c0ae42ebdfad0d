"""Looking for a length scale along a path: a coarse grid, then finer around its best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coxfield.kernels.covariance import variance_is_free
from coxfield.progress import progress
from coxfield.selection.length_scale_path import finer_factors, passes
from coxfield.selection.loo import loo_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.class_sums import TrainingPoints
    from coxfield.selection.loo import LooPath


@dataclass(frozen=True)
class Search:
    """How to look for a length scale by leave-one-out."""

    mean: NDArray
    criterion: str
    """ "loo_error" or "loo_log_loss"."""
    length_scales: object
    """What the user asks for; None for the default grid, refined around its best."""
    bounded: bool
    """Whether the default grid is cut to the bounds of the kernels."""
    set_variance: bool
    """Whether the signal variance is chosen with each length scale, where it is free."""
    n_jobs: int | None
    verbose: int

    def path(self, training: TrainingPoints, kernels: list, factors: NDArray) -> LooPath:
        """Leave-one-out losses for some factors of the length scales and, by default, finer ones around the best."""
        path = self._tried(training, kernels, factors)
        if self.length_scales is not None or len(factors) < 2:
            return path
        finer = finer_factors(path.factor[path.best(self.criterion)], kernels, bounded=self.bounded)
        return path.joined(self._tried(training, kernels, finer)) if finer.size else path

    def _tried(self, training: TrainingPoints, kernels: list, factors: NDArray) -> LooPath:
        free = self.set_variance and all(map(variance_is_free, kernels))
        total = passes(training, len(factors)) * len(training.y)
        with progress(f"leave-one-out, {len(factors)} length scales", total, self.verbose) as done:
            return loo_path(training, self.mean, factors, free_variance=free, n_jobs=self.n_jobs, done=done)

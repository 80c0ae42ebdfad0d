"""From class sums to probabilities and decisions, in any array library; `coxfield.engine.decision` says why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coxfield.arrays.class_sums import ArraySums
    from coxfield.arrays.library import Library


@dataclass(frozen=True)
class ArrayScores:
    """F of eq. activationFunction in two parts; it answers the same questions as `engine.decision.Scores`."""

    library: Library
    prior: Any
    """mu_i + C_i(x*, x*) / 2, shape (1, n_classes)."""
    sums: ArraySums

    @property
    def values(self) -> Any:
        """F itself, shape (n, n_classes)."""
        return self.prior + self.sums.values

    @property
    def relative(self) -> Any:
        """F up to a constant per row."""
        return self.prior - self.library.xp.max(self.prior, axis=1, keepdims=True) + self.sums.values

    @property
    def log_probabilities(self) -> Any:
        """Log of eq. predictiveDistribution."""
        xp, scores = self.library.xp, self.relative
        scores = scores - xp.max(scores, axis=1, keepdims=True)
        return scores - xp.log(xp.sum(xp.exp(scores), axis=1, keepdims=True))

    @property
    def decisions(self) -> Any:
        """Class of largest score; if rounding has made scores equal, the one with the largest log sum among them."""
        xp, scores = self.library.xp, self.relative
        best = scores == xp.max(scores, axis=1, keepdims=True)
        finite = xp.clip(self.sums.logs, min=float(xp.finfo(scores.dtype).min))
        return xp.argmax(xp.where(best, finite, -float("inf")), axis=1)

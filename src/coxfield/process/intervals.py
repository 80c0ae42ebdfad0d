"""How sure one can be of fitted parameters: fits of patterns that the fitted process draws, and inverted tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Fits of patterns that a fitted process drew."""

    names: tuple[str, ...]
    fitted: NDArray
    """The estimates from the data, shape (k,)."""
    estimates: NDArray
    """Those from simulated patterns, shape (n, k)."""

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard deviation of each estimate."""
        return dict(zip(self.names, self.estimates.std(axis=0, ddof=1).tolist(), strict=True))

    @property
    def bias(self) -> dict[str, float]:
        """Mean of each estimate, minus the value that the patterns were drawn with."""
        return dict(zip(self.names, (self.estimates.mean(axis=0) - self.fitted).tolist(), strict=True))

    def intervals(self, level: float = 0.9) -> dict[str, tuple[float, float]]:
        """Intervals for each parameter: the estimate, and normal quantiles times its standard deviation on both sides.

        Variance and length are taken as logarithms, because they are positive. For weak clustering and few points the
        intervals are too short: see `docs/patterns.md`.
        """
        half, found = norm.ppf((1 + level) / 2), {}
        for name, at, drawn in zip(self.names, self.fitted, self.estimates.T, strict=True):
            if name in ("variance", "correlation_length"):
                factor = np.exp(half * np.log(drawn).std(ddof=1))
                found[name] = (float(at / factor), float(at * factor))
            else:
                spread = half * drawn.std(ddof=1)
                found[name] = (float(at - spread), float(at + spread))
        return found

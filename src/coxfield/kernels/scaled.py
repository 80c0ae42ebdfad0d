"""Points in units of a length scale, as data. Radial covariances compute everything from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from coxfield.kernels.distances import Points, place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.profiles import Profile


class RadialForm(Protocol):
    """C(x, x') = variance * profile(|(x - x') / length_scale|^2)."""

    @property
    def kernel(self) -> Any:
        """The kernel of scikit-learn."""

    @property
    def profile(self) -> Profile:
        """The function of squared distances."""

    @property
    def variance(self) -> float:
        """C(0)."""

    @property
    def length_scale(self) -> float | NDArray:
        """One number, or one per feature."""

    def floored_profile(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by C / C(0), with no value below a floor that stands for zero."""


@dataclass(frozen=True)
class ScaledPoints:
    """Some rows of data, scaled by the length scale and moved to the origin."""

    covariance: RadialForm
    X: NDArray
    """The data that contain the points as rows, as they were given."""
    rows: NDArray
    """Row of each point in `X`."""
    points: Points
    origin: NDArray | None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows) -> Self:
        return replace(self, rows=self.rows[rows], points=self.points[rows])

    @property
    def dtype(self) -> np.dtype:
        """Precision of the coordinates."""
        return self.points.dtype

    def in_double(self) -> Points:
        """The points in double precision, from the data as they were given."""
        if self.dtype == np.float64:
            return self.points
        origin = None if self.origin is None else self.origin.astype(np.float64)
        double = place(self.X[self.rows].astype(np.float64), self.covariance.length_scale, origin)
        return double.stretched(None if self.points.stretch is None else self.points.stretch.astype(np.float64))

"""All points at one length scale, with their couplings held if possible: every fold needs the same ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.field.potts import LabelField
from coxfield.kernels.held import all_held, hold
from coxfield.kernels.values import bind_precisely

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.per_class import PerClass
    from coxfield.kernels.protocol import Bound, Covariance


@dataclass(frozen=True)
class AllPoints:
    """Labelled and unlabelled points under given covariances; build it with `at`."""

    X: Any
    covariances: PerClass[Covariance]
    points: tuple[Bound, ...]
    mean: NDArray

    @classmethod
    def at(cls, X, covariances: PerClass[Covariance], mean: NDArray, factor: float) -> AllPoints:
        """The points at a factor of the length scales."""
        scaled = covariances.map(lambda covariance: covariance.rescaled(length=factor))
        return cls(X, scaled, tuple(hold(bind_precisely(covariance, X)) for covariance in scaled.distinct), mean)

    @property
    def held(self) -> bool:
        """Whether all couplings are held."""
        return all_held(self.points)

    def field(self, codes: NDArray) -> LabelField:
        """The field of the rows whose class number is -1, given the others."""
        return LabelField.of_bound(self.X, self.covariances, self.points, codes, self.mean)

    def free_field(self, variance: float = 1.0) -> LabelField:
        """The field of all rows, none of them labelled, at a factor of the signal variance."""
        scaled = self.covariances.map(lambda covariance: covariance.rescaled(variance=variance))
        points = tuple(bound.rescaled(variance=variance) for bound in self.points)
        return AllPoints(self.X, scaled, points, self.mean).field(np.full(self.X.shape[0], -1))

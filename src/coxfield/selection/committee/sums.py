"""Class sums of the members at all points, and at the labelled points without themselves.

A covariance is the inner product of features, so a class sum is one product of features with the sum of the features
of the class. No matrix of all pairs is formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Given:
    """The labelled points."""

    rows: NDArray
    """Their rows among all points."""
    y: NDArray
    n_classes: int

    @property
    def counts(self) -> NDArray:
        """Labelled points per class."""
        return np.bincount(self.y, minlength=self.n_classes)

    @property
    def indicators(self) -> NDArray:
        """1 where a labelled point has the class, shape (n_labelled, n_classes)."""
        return np.eye(self.n_classes)[self.y]

    @property
    def in_company(self) -> NDArray:
        """Whether another labelled point has the same class. Leave-one-out says nothing about the others."""
        return self.counts[self.y] > 1


@dataclass(frozen=True)
class MemberSums:
    """Class sums of one member."""

    whole: NDArray
    """At all points, shape (n, n_classes)."""
    left_out: NDArray
    """At the labelled points without themselves, shape (n_labelled, n_classes)."""
    directions: NDArray
    """What features are multiplied with to give class sums, shape (n_features, n_classes)."""


def member_sums(features: NDArray, given: Given, *, means: bool) -> MemberSums:
    """Class sums, or class means, of the covariance that is the inner product of unit features.

    Means are sums divided by the number of points in the class. The number leaves out the point itself where the sum
    does. A covariance that takes negative values would let the larger class speak louder on both sides.
    """
    own, indicators = features[given.rows], given.indicators.astype(features.dtype)
    counts = given.counts.astype(features.dtype)
    directions = own.T @ indicators
    left_out = own @ directions - indicators * np.einsum("ij,ij->i", own, own)[:, None]
    if means:
        directions = directions / counts
        left_out = left_out / np.maximum(counts - indicators, 1)
    return MemberSums(features @ directions, left_out.astype(float), directions)

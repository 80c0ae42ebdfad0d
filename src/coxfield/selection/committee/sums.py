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
    def judged(self) -> Judged:
        """What leave-one-out can judge."""
        classes = np.flatnonzero(self.counts > 1)
        rows = np.flatnonzero(np.isin(self.y, classes) & (len(classes) > 1))
        return Judged(rows, classes, np.searchsorted(classes, self.y[rows]))


@dataclass(frozen=True)
class Judged:
    """Labels that leave-one-out can judge: those of classes with several labels, among these classes.

    A label that is alone in its class would be predicted without any point of its class, which speaks against every
    member. So such labels do not count. Their classes do not count either: otherwise the member would win that never
    names them.
    """

    rows: NDArray
    """Of the labelled points."""
    classes: NDArray
    y: NDArray
    """Numbers of the labels among these classes."""

    def __len__(self) -> int:
        return len(self.rows)

    def among(self, left_out: NDArray) -> NDArray:
        """The rows and classes that count, of an array of shape (n_labelled, n_classes)."""
        return left_out[np.ix_(self.rows, self.classes)]

    def own(self, probabilities: NDArray) -> NDArray:
        """The probability of each label that counts, given that it is one of these classes."""
        some = self.among(probabilities)
        return some[np.arange(len(self)), self.y] / np.maximum(some.sum(axis=1), np.finfo(float).tiny)


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
    does. A covariance that takes negative values would let the larger class speak louder on both sides. Other sums are
    divided by the root of the number: labels are often asked for, and their numbers say little about the classes.
    """
    own, indicators = features[given.rows], given.indicators.astype(features.dtype)
    power = 1.0 if means else 0.5
    directions = own.T @ indicators
    left_out = own @ directions - indicators * np.einsum("ij,ij->i", own, own)[:, None]
    left_out = left_out / np.maximum(given.counts - given.indicators, 1) ** power
    directions = directions / (given.counts**power).astype(features.dtype)
    return MemberSums(features @ directions, left_out.astype(float), directions)

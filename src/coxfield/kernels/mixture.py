"""A mixture of covariances: C = sum of w k(t(x), t(x')) / (q(x) q(x'))^alpha over its members.

A member is a kernel k on a representation t of the points, such as the features as they are, standardised or whitened.
It is divided by the density q of the points, q(x) = sum of k(t(x), t(x')) over reference points x', to the power of
alpha. Weights are not negative, so the mixture is a covariance. It is never negative if its kernels are not.

Kernels on one representation that differ only in their length scale form a `Ladder`. They share their distances.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.kernels.mixture_ladder import Ladder, LadderPoints, own_log_densities
from coxfield.kernels.mixture_points import MixturePoints
from coxfield.kernels.values import values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Mixture:
    """A sum of members, with the reference points of their densities; `Covariance` says what the methods are for."""

    ladders: tuple[Ladder, ...]
    X: Any
    """The reference points."""
    counts: NDArray | None = None
    """Weight of each reference point; None if each counts once."""
    log_densities: tuple[NDArray, ...] | None = field(default=None, repr=False)
    """log q of the reference points, shape (F, n) for each ladder; None to compute it."""

    @property
    def kernel(self) -> Mixture:
        """The mixture itself."""
        return self

    @property
    def n_reference(self) -> int:
        """Number of reference points."""
        return self.X.shape[0]

    def bind(self, X, rows: NDArray | None = None) -> MixturePoints:
        """Hold rows of X, in all representations."""
        chosen = X if rows is None else X[rows]
        return MixturePoints(self, tuple(points.at(chosen) for points in self._reference))

    def bind_reference(self) -> MixturePoints:
        """Hold the reference points, with their densities."""
        densities = self.log_densities
        # Not those of `_reference`: as long as nobody asks for them, the points need not be held twice.
        points = self._bound()
        if densities is None:
            densities = tuple(own_log_densities(each, self.counts) for each in points)
        held = zip(points, densities, strict=True)
        ladders = tuple(replace(each, known=known) for each, known in held)
        mixture = self if self.log_densities is not None else replace(self, log_densities=densities)
        return MixturePoints(mixture, ladders, np.arange(self.n_reference), learned=True)

    def over(
        self, X, counts: NDArray | None, origin: NDArray, points: tuple[LadderPoints, ...] | None = None
    ) -> MixturePoints:
        """The same members with densities over other reference points, which are bound to the new mixture.

        Parameters
        ----------
        X : array or CSR array
            The new reference points.
        counts : array, optional
            The weight of each of them.
        origin : integer array
            The place of each of them among the reference points so far, -1 for none.
        points : tuple of LadderPoints, optional
            The new reference points in each representation, with their densities. They are computed otherwise.
        """
        ladders = tuple(ladder.reindexed(origin) for ladder in self.ladders)
        if points is None:
            return Mixture(ladders, X, counts).bind_reference()
        densities = tuple(each.known for each in points if each.known is not None)
        new = Mixture(ladders, X, counts, densities)
        bound = tuple(replace(each, ladder=ladder) for each, ladder in zip(points, ladders, strict=True))
        new.__dict__["_anchor"] = bound  # as long as nobody asks for them, reference points need not be held twice
        return MixturePoints(new, bound, np.arange(len(origin)), learned=True)

    def reweighed(self, weights: Sequence[NDArray]) -> Mixture:
        """The same members with other weights: an array of shape (F, A) for each ladder."""
        ladders = (replace(ladder, weights=each) for ladder, each in zip(self.ladders, weights, strict=True))
        new, anchor = replace(self, ladders=tuple(ladders)), self.__dict__.get("_anchor")
        if anchor is not None:
            held = zip(anchor, new.ladders, strict=True)
            new.__dict__["_anchor"] = tuple(replace(points, ladder=ladder) for points, ladder in held)
        return new

    def apart(self, X, counts: NDArray | None, scale: float) -> Mixture:
        """The same members with densities that were fixed before other points were seen.

        Each point has the density of the reference points X times `scale`, and one point more, which stands for itself.
        So all points that are not among X are treated alike, whether they are labelled or not.
        """
        ladders = tuple(replace(ladder, floors=ladder.floors + 1) for ladder in self.ladders)
        return Mixture(ladders, X, np.full(X.shape[0], scale) if counts is None else scale * counts)

    def _bound(self) -> tuple[LadderPoints, ...]:
        anchor = self.__dict__.get("_anchor")
        if anchor is not None:
            return tuple(points.at(self.X) for points in anchor)
        return tuple(ladder.bind(self.X) for ladder in self.ladders)

    @cached_property
    def _reference(self) -> tuple[LadderPoints, ...]:
        return self._bound()

    def reference(self, k: int) -> LadderPoints:
        """The reference points of a ladder."""
        return self._reference[k]

    def diagonal(self, X) -> NDArray:
        """C(x, x) of each row."""
        return self.bind(X).diagonal()

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Mixture:
        """All length scales and all weights multiplied; other length scales have other densities."""
        ladders = tuple(
            replace(ladder, factors=ladder.factors * length, weights=ladder.weights * variance)
            for ladder in self.ladders
        )
        return replace(self, ladders=ladders, log_densities=self.log_densities if length == 1 else None)

    @property
    def stationary(self) -> bool:
        """Whether every member is, without a representation or a density."""
        plain = (
            ladder.transform is None and ladder.covariance.stationary and not ladder.alphas.any()
            for ladder in self.ladders
        )
        return all(plain)

    def check_nonnegative(self) -> None:
        """Raise ValueError if a kernel may take negative values."""
        for ladder in self.ladders:
            ladder.covariance.check_nonnegative()

    def __call__(self, X, Y=None) -> NDArray:
        """Covariances of all pairs, like a kernel of scikit-learn."""
        X = np.asarray(X, dtype=float)
        rows = self.bind(X)
        return values(rows, rows if Y is None else self.bind(np.asarray(Y, dtype=float)))

    def diag(self, X) -> NDArray:
        """`diagonal`, under the name that kernels of scikit-learn have for it."""
        return self.diagonal(np.asarray(X, dtype=float))

    def is_stationary(self) -> bool:
        """`stationary`, under the name that kernels of scikit-learn have for it."""
        return self.stationary

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name not in {"_reference", "_anchor"}}

    def __repr__(self) -> str:
        return " + ".join(
            f"{ladder.weights[f, a]:.3g} * {ladder.kernel(f)!r} of {ladder.name} points / density**{ladder.alphas[a]:g}"
            for ladder in self.ladders
            for f, a in ladder.terms
        )

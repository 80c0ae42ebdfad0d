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
from sklearn.utils import gen_batches

from coxfield.kernels.mixture_ladder import VALUES, Ladder, LadderPoints, log_densities, own_log_densities
from coxfield.kernels.mixture_points import MixturePoints
from coxfield.kernels.namespace import rows_of, to_numpy
from coxfield.kernels.protocol import values

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


# Reference points of a mixture that come and go: densities are sums over the points that are there.
#
# A point that arrives adds its terms to the densities of all others, and a point that leaves takes its terms away. So
# the evidence of a region does not grow with the number of points in it, and no point has a density that lacks
# itself. Where most of a density goes, it is computed again: a small difference of large numbers has no digits.


MOST = 0.5  # share of a density that may be subtracted


def gain(points: MixturePoints, X: Any, counts: NDArray | None, rows: Any) -> MixturePoints:
    """The reference points of a mixture with more of them at the end, bound to the mixture over all of them.

    Parameters
    ----------
    points : MixturePoints
        All reference points, in their order, with their densities.
    X : array or CSR array
        All reference points as they are, with the new ones at the end.
    counts : array, optional
        The weight of each of them.
    rows : array or CSR array
        The new ones.
    """
    mixture, fresh, n = points.covariance, points.at(rows), len(points)
    before, arrived = (None, None) if counts is None else (counts[:n], counts[n:])
    joined = []
    for old, new in zip(points.ladders, fresh.ladders, strict=True):
        assert old.known is not None
        if old.ladder.free:
            grown, own = old.known, np.zeros((len(old.known), len(new)))
        else:
            grown = np.logaddexp(old.known, log_densities(old, new, arrived))
            own = np.logaddexp(log_densities(new, old, before), own_log_densities(new, arrived))
        joined.append(LadderPoints(old.ladder, old.points.joined(new.points), np.hstack([grown, own])))
    origin = np.concatenate([np.arange(n), np.full(len(fresh), -1)])
    return mixture.over(X, counts, origin, tuple(joined))


def lose(points: MixturePoints, places: NDArray, X: Any, counts: NDArray | None) -> MixturePoints:
    """The reference points of a mixture without some of them, bound to the mixture over those that stay.

    Parameters
    ----------
    points : MixturePoints
        All reference points, in their order, with their densities.
    places : integer array
        The places of those that go.
    X : array or CSR array
        Those that stay, as they are.
    counts : array, optional
        The weight of each point, those that go included.
    """
    kept = np.setdiff1d(np.arange(len(points)), places)
    stay, gone = points[kept], points[places]
    weights = np.ones(len(points)) if counts is None else counts
    left = tuple(
        replace(old, known=_less(old, lost, weights[kept], weights[places]))
        for old, lost in zip(stay.ladders, gone.ladders, strict=True)
    )
    return points.covariance.over(X, None if counts is None else counts[kept], kept, left)


def _less(stay: LadderPoints, gone: LadderPoints, counts: NDArray, lost: NDArray) -> NDArray:
    """log q of the points that stay, without the terms of those that go, shape (F, n)."""
    log_q = stay.known
    assert log_q is not None
    if stay.ladder.free:
        return log_q
    new = np.empty_like(log_q)
    for some in gen_batches(len(stay), max(1, VALUES // max(1, len(gone)))):
        share = _share(stay[some], gone, lost)
        with np.errstate(divide="ignore"):
            new[:, some] = log_q[:, some] + np.log1p(-np.minimum(share, 1))
        again = some.start + np.flatnonzero((share > MOST).any(axis=0))
        if again.size:
            new[:, again] = log_densities(stay[again], stay, counts)
    return new


def _share(stay: LadderPoints, gone: LadderPoints, lost: NDArray) -> NDArray:
    """The share of each density that comes from the points that go, shape (F, n)."""
    points, log_q = stay.points, stay.known
    assert log_q is not None
    share = np.empty_like(log_q)
    for f, tile in enumerate(points.tiles_at(gone.points, stay.ladder.factors)):
        sums = to_numpy(tile).astype(float) @ lost
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            ratio = np.exp(np.log(np.maximum(sums, 0)) - log_q[f])
        # Where the density itself has vanished, it is computed again.
        share[f] = np.where(np.isneginf(log_q[f]) | np.isnan(ratio), 1.0, ratio)
    return share


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
    def tied(self) -> tuple[Ladder, ...]:
        """The ladders that are a covariance: all but the free ones."""
        return tuple(ladder for ladder in self.ladders if not ladder.free)

    @property
    def tied_log_densities(self) -> list[NDArray] | None:
        """log q of the reference points for each of the `tied` ladders, if it is known."""
        if self.log_densities is None:
            return None
        return [log_q for ladder, log_q in zip(self.ladders, self.log_densities, strict=True) if not ladder.free]

    @property
    def support(self) -> NDArray:
        """Whether each reference point has a free weight."""
        weights = [ladder.point_weights for ladder in self.ladders if ladder.point_weights is not None]
        return np.any([each.any(axis=0) for each in weights], axis=0) if weights else np.zeros(self.n_reference, bool)

    @property
    def n_reference(self) -> int:
        """Number of reference points."""
        return self.X.shape[0]

    def bind(self, X, rows: NDArray | None = None) -> MixturePoints:
        """Hold rows of X, in all representations."""
        chosen = X if rows is None else rows_of(X, rows)
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

    def reweighed(self, weights: Sequence[NDArray], point_weights: Sequence[NDArray] = ()) -> Mixture:
        """The same members with other weights: an array of shape (F, A) for each tied ladder, (F, n) for free ones."""
        tied, free = iter(weights), iter(point_weights)
        return self._with_ladders(
            replace(ladder, point_weights=next(free)) if ladder.free else replace(ladder, weights=next(tied))
            for ladder in self.ladders
        )

    def counting(self, share: float) -> Mixture:
        """The same members if each point counts so much, in densities and in class sums.

        k / ((q + e) (q' + e))^alpha with q and k times `share` is the same with another floor and another weight. Class
        sums over more points are then about what they were when the weights were chosen.
        """
        return self._with_ladders(
            ladder
            if ladder.free
            else replace(
                ladder, floors=ladder.floors / share, weights=ladder.weights * share ** (1 - 2 * ladder.alphas)
            )
            for ladder in self.ladders
        )

    def at_powers(self, alphas: NDArray, floors: NDArray) -> Mixture:
        """The same tied kernels at some powers of their densities, before the weights of these members are known."""
        powers: dict[str, Any] = {"alphas": alphas, "floors": floors}
        shapes = ((ladder, np.zeros((len(ladder.factors), len(alphas)))) for ladder in self.ladders)
        return self._with_ladders(
            ladder if ladder.free else replace(ladder, weights=weights, **powers) for ladder, weights in shapes
        )

    def _with_ladders(self, ladders: Iterable[Ladder]) -> Mixture:
        """Other members on the same representations and length scales, so that points and densities are held."""
        ladders, known = tuple(ladders), self.log_densities
        if known is not None:
            both = zip(ladders, known, strict=True)
            known = tuple(log_q if each.point_weights is None else each.point_weights for each, log_q in both)
        new, anchor = replace(self, ladders=ladders, log_densities=known), self.__dict__.get("_anchor")
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
            for ladder in self.tied
        )
        return all(plain)

    def check_nonnegative(self) -> None:
        """Raise ValueError if a kernel may take negative values, or if there is nothing but weights of points."""
        if not self.tied:
            raise ValueError(
                "all weights of this mixture are those of single points, so as a covariance it is 0: learn one with "
                "LGCPClassifier(bank='simple')"
            )
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
        tied = [
            f"{ladder.weights[f, a]:.3g} * {ladder.kernel(f)!r} of {ladder.name} points / density**{ladder.alphas[a]:g}"
            for ladder in self.ladders
            for f, a in ladder.terms
        ]
        free = [
            f"free weights of {np.count_nonzero(weights)} points * {ladder.kernel(f)!r} of {ladder.name} points"
            for ladder in self.ladders
            if ladder.point_weights is not None
            for f, weights in enumerate(ladder.point_weights)
        ]
        return " + ".join(tied + free)

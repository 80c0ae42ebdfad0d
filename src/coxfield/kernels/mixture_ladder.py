"""Members of a mixture on one representation, points bound to them, and the densities of points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import gen_batches

from coxfield.kernels.distances import Stretch
from coxfield.kernels.namespace import at_home, is_foreign, like, rows_of, to_numpy
from coxfield.kernels.radial import RadialPoints
from coxfield.kernels.sklearn_tree import length_unit, rescale_length
from coxfield.kernels.transforms import correction, reindexed
from coxfield.utils.numbers import ORDINARY, logs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from coxfield.kernels.protocol import Covariance


# `Member`: a kernel on a representation of the points, for the bank of a mixture.


# With 0, dense regions decide everything. With 1 and no floor, the classifier is too certain far from the data.
ALPHAS = (0.5, 0.75, (0.75, 3.0), (1.0, 3.0))


@dataclass(frozen=True)
class Member:
    """A kernel on a representation of the points.

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, optional
        Never negative. None for squared exponentials at all useful length scales.
    transform : str or transformer of scikit-learn, default="raw"
        The representation: "raw" (the features as they are), "standardised", "whitened" (by their covariance within
        classes, `coxfield.kernels.transforms.Whitening`), "principal" (40 principal directions), "compressed" (heavy
        tails are compressed, `coxfield.kernels.transforms.Compression`), "principal, whitened", "compressed,
        whitened", or a transformer, which is fitted to the training points and their labels.
    alphas : tuple of float or of pairs (float, float), default=(0.5, 0.75, (0.75, 3), (1, 3))
        Powers of the density by which the kernel may be divided; 0 for the kernel itself. A pair is a power and a floor
        that is added to the density, in points: with a floor, a few points that are far from all others say little.
        The mixture chooses among them.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> bank = [Member(RBF(1.0)), Member(transform="whitened"), Member(RBF(2.0), PCA(2), alphas=(0.5,))]
    """

    kernel: Any = None
    transform: Any = "raw"
    alphas: tuple[Any, ...] = ALPHAS


LARGEST_LOG = 700.0  # exp of more than this overflows


def inverse(log_divisor: NDArray) -> NDArray:
    """One over what a member divides by; far from all reference points the largest number, not an infinite one."""
    return np.exp(np.minimum(-log_divisor, LARGEST_LOG))


VALUES = 2**22  # kernel values that are held at a time while densities are computed


@dataclass(frozen=True, eq=False)
class Ladder:
    """Kernels on one representation: one covariance, at several factors of its length scale."""

    name: str
    """Name of the representation."""
    transform: Any
    """A fitted transformer of scikit-learn, or None for the features as they are."""
    covariance: Covariance
    factors: NDArray
    """Factors of the length scales, shape (F,)."""
    alphas: NDArray
    """Powers of the density, shape (A,)."""
    floors: NDArray
    """What is added to the density before the power is taken, in points, shape (A,)."""
    weights: NDArray
    """Weight of each factor with each power, shape (F, A)."""
    one: float = 1.0
    """What a point adds to the density at its own place: C(x, x)."""
    point_weights: NDArray | None = None
    """Of a *free* ladder, the weight of each factor and reference point, shape (F, n). It has no powers of the density,
    and no part in the covariance between points that are not reference points."""

    @property
    def free(self) -> bool:
        """Whether each reference point has a weight of its own."""
        return self.point_weights is not None

    @property
    def plain(self) -> Ladder:
        """The ladder that new points see: itself, unless labelled points see others."""
        return self

    def log_divisor(self, a: int | np.integer, log_q: NDArray) -> NDArray:
        """log of (q + floor)^alpha, by which a member divides at each of its two points."""
        if not self.alphas[a]:
            return np.zeros_like(log_q)
        return self.alphas[a] * (np.logaddexp(log_q, np.log(self.one * self.floors[a])) if self.floors[a] else log_q)

    @property
    def powers(self) -> list[tuple[float, float]]:
        """Power and floor of each kind of member."""
        return list(zip(self.alphas.tolist(), self.floors.tolist(), strict=True))

    def represent(self, X) -> Any:
        """The points in this representation."""
        if self.transform is None:
            return X
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is far from all points
            # Transformers of scikit-learn take no empty arrays.
            found = self.transform.transform(at_home(X) if X.shape[0] else np.zeros((1, X.shape[1]), X.dtype))
        found = found[: X.shape[0]]
        return like(found, X) if is_foreign(X) else found

    def reindexed(self, origin: NDArray) -> Ladder:
        """The ladder, whose representation knows other points by their place; `origin` is the old place of each."""
        new, weights = reindexed(self.transform, origin), self.point_weights
        if weights is not None:
            return replace(self, transform=new, point_weights=np.where(origin >= 0, weights[:, origin], 0))
        return self if new is self.transform else replace(self, transform=new)

    def bind(self, X, rows: NDArray | None = None) -> LadderPoints:
        """Hold rows of X, in the representation."""
        chosen = X if rows is None else rows_of(X, rows)
        return LadderPoints(self, self.covariance.bind(self.represent(chosen)))

    def bind_some(self, X, rows: NDArray | None) -> LadderPoints:
        """Hold rows of X where `bind` would place them if it held all."""
        return LadderPoints(self, self.covariance.bind(self.represent(X), rows))

    def sees_as(self, other: Ladder) -> bool:
        """Whether points that are bound are the same for another ladder."""
        return self.transform is other.transform and self.covariance is other.covariance

    def kernel(self, f: int) -> Any:
        """The kernel of one factor, as users see it."""
        return rescale_length(self.covariance.kernel, float(self.factors[f]))

    def length_scale(self, f: int) -> float:
        """The length scale of one factor; the factor itself if there is no single length scale."""
        unit = np.asarray(length_unit(self.covariance.kernel))
        return float(self.factors[f] * (unit.item() if unit.size == 1 else 1.0))

    @property
    def terms(self) -> Iterator[tuple[int, int]]:
        """Factor and power of each member that has a weight, by number."""
        return zip(*np.nonzero(self.weights), strict=True)

    def pruned(self) -> Ladder:
        """The ladder without the factors and powers that have no weight."""
        f, a = (self.weights > 0).any(axis=1), (self.weights > 0).any(axis=0)
        return replace(
            self,
            factors=self.factors[f],
            alphas=self.alphas[a],
            floors=self.floors[a],
            weights=self.weights[np.ix_(f, a)],
        )


@dataclass(frozen=True)
class LadderPoints:
    """Points in one representation, bound to the covariance of a ladder."""

    ladder: Ladder
    points: Any
    """`KernelPoints` of the covariance."""
    known: NDArray | None = None
    """log q of each factor and point, shape (F, n), if it is known; of a free ladder, the weights of the points."""

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, rows) -> LadderPoints:
        return replace(self, points=self.points[rows], known=None if self.known is None else self.known[:, rows])

    def at(self, X) -> LadderPoints:
        """Other points in the same representation."""
        return LadderPoints(self.ladder, self.points.at(self.ladder.represent(X)))

    def column_factors(self, f: int, a: int | np.integer) -> NDArray:
        """What the weights of these points as columns of a member are multiplied by."""
        assert self.known is not None
        return inverse(self.ladder.log_divisor(a, self.known[f]))

    def left_out(self, rows: NDArray, own: LadderPoints | None = None) -> LadderPoints:
        """The points under the representation that was learned without them, if it was learned from labels.

        `own` are the points that it was learned from, if these are others.
        """
        correct = correction(self.ladder.transform)
        if correct is None or not hasattr(self.points, "points"):  # kernels that are called know no distances
            return self
        learned = self.points if own is None else own.points
        directions, factors = correct(at_home(rows_of(learned.X, learned.rows)), rows)
        coordinates = self.points.points.coordinates
        stretch = Stretch(like(directions, coordinates), like(factors, coordinates))
        return LadderPoints(self.ladder, replace(self.points, points=self.points.points.stretched(stretch)))


@dataclass(frozen=True)
class SupportPoints:
    """Reference points of a free ladder, of which those that have a weight are held.

    Sums need no others. Where others are asked for, all are bound as they would have been.
    """

    ladder: Ladder
    data: Any
    """All reference points, as they are."""
    places: NDArray | slice
    """Which of them these are."""
    held: RadialPoints
    """Those that have a weight."""
    column: NDArray
    """The place among them of each reference point, -1 for none."""

    @classmethod
    def of(cls, ladder: Ladder, X, order: NDArray | None = None) -> SupportPoints:
        """Hold the points that have a weight."""
        assert ladder.point_weights is not None
        has_weight = ladder.point_weights.any(axis=0)
        support, column = np.flatnonzero(has_weight), np.where(has_weight, np.cumsum(has_weight) - 1, -1)
        held = ladder.bind_some(X, support).points
        return cls(ladder, X, np.arange(len(column)) if order is None else order, held, column)

    def __len__(self) -> int:
        return len(self.column[self.places])

    def __getitem__(self, rows) -> Any:
        places = np.arange(len(self.column))[self.places][rows]
        column = self.column[places]
        if len(column) and (column >= 0).all():
            return self.held[column]
        return replace(self, places=places) if isinstance(rows, slice) or len(places) == len(self) else self.whole[rows]

    def at(self, X) -> RadialPoints:
        """Other points in the same coordinates."""
        return self.held.at(X)

    def in_single(self) -> SupportPoints:
        """The same points in single precision; the same object, if they cannot be had."""
        held = in_single(LadderPoints(self.ladder, self.held)).points
        return self if held is self.held else replace(self, held=held)

    @cached_property
    def whole(self) -> RadialPoints:
        """All of them."""
        return self.held.at(self.ladder.represent(rows_of(self.data, self.places)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "held" not in self.__dict__:  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self.held if name in {"dtype", "library"} else self.whole, name)


def in_single(points: LadderPoints) -> LadderPoints:
    """The points with coordinates in single precision; the same object, if they cannot be had."""
    bound = points.points
    if isinstance(bound, SupportPoints):
        single = bound.in_single()
        return points if single is bound else replace(points, points=single)
    if not isinstance(bound, RadialPoints) or not isinstance(bound.points.coordinates, np.ndarray):
        return points
    if bound.dtype == np.float32 or bound.points.farthest > ORDINARY[np.dtype(np.float32)] ** 2:
        return points
    return replace(points, points=replace(bound, points=bound.points.astype(np.float32)))


def log_densities(rows: LadderPoints, reference: LadderPoints, counts: NDArray | None, omitted=None) -> NDArray:
    """log q of each factor: log of the sum of kernel values over reference points, shape (F, n).

    `omitted` says for each point which reference point does not count, -1 for none.
    """
    if rows.ladder.free:  # a point that is not a reference point has no weight
        return np.zeros((len(rows.ladder.factors), len(rows)))
    omitted = np.full(len(rows), -1) if omitted is None else omitted
    found = np.empty((len(rows.ladder.factors), len(rows)))
    weights = np.ones(len(reference)) if counts is None else counts
    for some in gen_batches(len(rows), max(1, VALUES // max(1, len(reference)))) if len(rows) else ():
        found[:, some] = log_totals(rows[some], reference, weights.astype(rows.points.dtype), omitted[some])
    return found


def own_log_densities(points: LadderPoints, counts: NDArray | None) -> NDArray:
    """`log_densities` over the points themselves. The term of a point itself is exact, also far from all others."""
    if points.ladder.point_weights is not None:
        return points.ladder.point_weights
    others = log_densities(points, points, counts, np.arange(len(points)))
    own = np.log(points.points.diagonal()) + (0 if counts is None else np.log(counts.astype(float)))
    return np.logaddexp(others, own)


def log_totals(rows: LadderPoints, reference: LadderPoints, weights: NDArray, omitted: NDArray) -> NDArray:
    """`log_densities` of so few points that all their kernel values may be held at a time."""
    adder = Total(weights, np.zeros((len(rows.ladder.factors), len(rows))))
    tops = rows.points.walk(reference.points, rows.ladder.factors, omitted, adder)
    return logs_of(adder.sums) + tops  # a point without any other


@dataclass(frozen=True)
class Total:
    """Adds the tiles of a walk over all columns; `Sink` says what the methods are for."""

    weights: NDArray
    sums: NDArray

    def add(self, k: int, start: int, tile: NDArray) -> None:
        """Add a tile."""
        self.sums[k] += to_numpy(tile @ like(self.weights[start : start + tile.shape[1]], tile))

    def rescale(self, scale: NDArray) -> None:
        """Multiply what was added so far."""
        self.sums[...] *= scale

    def add_entries(self, k: int, at: NDArray, columns: NDArray, values: NDArray) -> None:
        """Add single values of a tile."""
        self.sums[k] += np.bincount(at, values * self.weights[columns], minlength=self.sums.shape[1])

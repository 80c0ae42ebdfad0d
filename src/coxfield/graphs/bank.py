"""The bank of `SLGCPClassifier`: covariances of all points as unit features, and their class sums.

A covariance is the inner product of features, so a class sum is one product of features with the sum of the features of
the class, and no matrix of all pairs is formed. Members of one `Block` scale the same columns: the modes of a graph at
several times, or the principal axes at several shrinkages. What does not depend on labels is one matrix per block, and
the lengths of its rows. So new labels cost one thin product per member.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg
from sklearn.cluster import KMeans
from sklearn.utils import gen_batches

from coxfield.graphs.neighbours import EdgeRule
from coxfield.graphs.spectrum import Heat, time_of_rank
from coxfield.utils.numbers import power_of_two

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.graphs.spectrum import Axes, Modes


# Few neighbours follow thin shapes, and many follow clouds. With one scale and a sharp rule, edges do not cross gaps.
EDGE_RULES = (
    EdgeRule(5),
    EdgeRule(40),
    EdgeRule(10, sharpness=4.0, common=True),
    EdgeRule(10, sharpness=10.0, common=True),
)
MULTIPLES = (1.2, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # of Q - 1: effective ranks
LEAST_MODES = 64
MODES_PER_CLASS = 6
RESOLVED = 0.6  # effective ranks up to this share of the modes are those of all modes
SHRINKAGES = (0.03, 0.1, 0.3, 1.0)
ROUNDING = 1e-12  # of the largest count: smaller differences of counts are zero
LINEAR = -1  # source of linear covariances
TIED, ROUND = -2, -3  # sources of covariances of clusters
COMPONENTS = (1, 2, 4, 8)  # of Q: components of Gaussian mixtures
PER_COMPONENT = 4  # points at least
CAUTION = 2.0  # times the effective rank of clusters: they are wrong more often than graphs where nothing can be judged
TIED_AXES = 32  # principal axes on which components with one covariance matrix are fitted
ROUND_AXES = 256  # likewise for round components
SAMPLE = 5000  # points to which Gaussian mixtures are fitted
STEPS = 40  # of the EM algorithm, at most
SETTLED = 3e-4  # nats per point that a step gains when it is the last
ROWS = 2048  # points at a time, so that steps between them stay near the processor
BLUR = 1e-5  # of the squares of two points: below it, their squared distance in single precision is rounding
LEAST_MIXED, MIXED_PER_CLASS = 24, 4  # labels in all, and per class, from which clusters are mixed, and kriging is
NUGGET = 1.0  # variance of the noise in kriging, relative to that of the covariance
LEAST_FREEDOM = 1e-9  # of a label: what its leverage leaves
RIDGE = 1e-3  # of the mean variance, added to variances of components


@dataclass(frozen=True)
class Member:
    """One covariance of the bank."""

    source: int
    """Index of its graph; -1 for linear covariances."""
    rank: float
    """Effective rank."""
    parameter: float
    """The time t of a heat covariance, or the shrinkage h of a linear one."""
    means: bool
    """Whether it takes negative values, so that class means are used instead of sums: without mode 0, or linear."""
    view: int = 0
    """Index of the units in which points are compared."""
    kriged: bool = False
    """Whether it predicts by kriging instead of class sums."""


def n_modes(n_points: int, n_classes: int) -> int:
    """How many modes of a graph are computed."""
    return min(n_points, max(LEAST_MODES, MODES_PER_CLASS * (n_classes - 1)))


@dataclass(frozen=True)
class Given:
    """The labelled points."""

    rows: NDArray
    """Their rows among all points."""
    y: NDArray
    n_classes: int
    weights: NDArray | None = None
    """How often each counts; None for once."""

    @cached_property
    def counted(self) -> NDArray:
        """How often each counts."""
        return np.ones(len(self.y)) if self.weights is None else self.weights

    @cached_property
    def counts(self) -> NDArray:
        """Labelled points per class, with their weights."""
        return np.bincount(self.y, self.counted, minlength=self.n_classes)

    @cached_property
    def indicators(self) -> NDArray:
        """The weight where a labelled point has the class, else 0, shape (n_labelled, n_classes)."""
        return np.eye(self.n_classes)[self.y] * self.counted[:, None]

    @property
    def many(self) -> bool:
        """Whether leave-one-out is sure enough to choose among more members."""
        return len(self.y) >= max(LEAST_MIXED, MIXED_PER_CLASS * self.n_classes)

    @cached_property
    def judged(self) -> Judged:
        """What leave-one-out can judge."""
        classes = np.flatnonzero(np.bincount(self.y, minlength=self.n_classes) > 1)
        rows = np.flatnonzero(np.isin(self.y, classes) & (len(classes) > 1))
        return Judged(rows, classes, np.searchsorted(classes, self.y[rows]))


@dataclass(frozen=True)
class Judged:
    """Labels that leave-one-out can judge: those of classes with several labels, among these classes.

    The only label of its class would be predicted without any point of its class, which is evidence against every
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
    """At all points, shape (n, n_classes); classes are contiguous, so that largest classes are found fast."""
    left_out: NDArray
    """At the labelled points without themselves, shape (n_labelled, n_classes)."""
    directions: NDArray
    """What features are multiplied with to give class sums, shape (n_features, n_classes)."""


@dataclass(frozen=True)
class Kriged:
    """Likewise what kriging predicts: the mean of a Gaussian process given the labels, 1 for the class and 0 else."""

    left_out: NDArray
    directions: NDArray
    block: Block
    number: int
    """Of the member in its block."""

    @cached_property
    def whole(self) -> NDArray:
        """Formed only for members that are chosen."""
        return self.block.at_all([self.number], [self.directions])[0]


@dataclass(frozen=True)
class Block:
    """Members whose features are the columns of one matrix, each times a weight, and scaled to length 1."""

    members: tuple[Member, ...]
    base: NDArray
    """Shape (n, k)."""
    weights: NDArray
    """Of the columns, shape (members, k)."""

    @cached_property
    def inverse(self) -> NDArray:
        """One over the lengths of the features, shape (members, n); 0 for a point that no column reaches."""
        squares = (self.weights**2) @ (self.base**2).T
        return np.divide(1, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)

    def features(self, m: int, rows=slice(None)) -> NDArray:
        """Features of a member at some points."""
        return self.base[rows] * self.weights[m] * self.inverse[m, rows, None]

    def sums(self, given: Given) -> list[MemberSums]:
        """Class sums of all members, or class means, without forming the features of all points."""
        if not self.members:
            return []
        left_out, directions = zip(*(self._of_labelled(m, given) for m in range(len(self.members))), strict=True)
        return list(map(MemberSums, self.at_all(range(len(self.members)), directions), left_out, directions))

    def at_all(self, members: Sequence[int], directions: Sequence[NDArray]) -> NDArray:
        """Products of the features of some members with directions, shape (members, n, n_classes)."""
        numbers = list(members)
        weighted = [(self.weights[m][:, None] * one).T for m, one in zip(numbers, directions, strict=True)]
        whole = (np.concatenate(weighted) @ self.base.T).reshape(len(numbers), -1, len(self.base))
        whole *= self.inverse[numbers][:, None, :]
        return whole.transpose(0, 2, 1)

    def kriged(self, given: Given) -> list[tuple[Member, Kriged]]:
        """Members of graphs and linear ones, by kriging."""
        targets, noise = np.eye(given.n_classes)[given.y] - 1 / given.n_classes, NUGGET / given.counted
        found = []
        for m, member in enumerate(self.members):
            if member.source > TIED:
                own = self.features(m, given.rows).astype(float)
                directions, leverages = _ridge(own, targets, noise)
                left_out = (own @ directions - leverages * targets) / np.maximum(1 - leverages, LEAST_FREEDOM)
                kriged = Kriged(left_out, directions.astype(self.base.dtype), self, m)
                found.append((replace(member, kriged=True), kriged))
        return found

    def _of_labelled(self, m: int, given: Given) -> tuple[NDArray, NDArray]:
        """Class sums at the labelled points without themselves, and what features are multiplied with.

        Means are sums divided by the number of points in the class. The number leaves out the point itself where the
        sum does. A covariance that takes negative values would favour the larger class on both sides. Other sums are
        divided by the root of the number: labels are often asked for, and their numbers say little about the classes.
        """
        power = 1.0 if self.members[m].means else 0.5
        own, indicators = self.features(m, given.rows), given.indicators.astype(self.base.dtype)
        directions = own.T @ indicators
        left_out = own @ directions - indicators * np.einsum("ij,ij->i", own, own)[:, None]
        left_out = left_out / _or_one(given.counts - given.indicators) ** power
        return left_out.astype(float), directions / (_or_one(given.counts) ** power).astype(self.base.dtype)


def _ridge(features: NDArray, targets: NDArray, noise: NDArray) -> tuple[NDArray, NDArray]:
    """Coefficients of ridge regression with a noise variance per point, and leverages; in the smaller of two forms."""
    n, k = features.shape
    if n <= k:
        inverse = np.linalg.inv(features @ features.T + np.diag(noise))
        return features.T @ (inverse @ targets), (1 - noise * np.diag(inverse))[:, None]
    weighted = features / noise[:, None]
    inverse = np.linalg.inv(features.T @ weighted + np.eye(k))
    return inverse @ (weighted.T @ targets), np.einsum("ij,ij->i", weighted @ inverse, features)[:, None]


def _or_one(counts: NDArray) -> NDArray:
    """Numbers to divide by; 1 where nothing was counted, up to rounding."""
    return np.where(counts > ROUNDING * counts.max(initial=0.0), counts, 1)


def graph_block(source: int, modes: Modes, n_classes: int, view: int = 0) -> Block:
    """Heat covariances of a graph, with and without mode 0."""
    n = len(modes.vectors)
    most = min(n / 4, RESOLVED * len(modes)) if len(modes) < n else n / 4
    ranks = [(n_classes - 1) * multiple for multiple in MULTIPLES]
    ranks = [rank for rank in ranks if rank <= most] or ranks[:1]
    times: dict[float, float] = {}
    for rank in ranks if len(modes) > 1 else []:
        times.setdefault(time_of_rank(modes.values, rank), rank)  # a graph that falls apart repeats its longest time
    members = tuple(Member(source, rank, time, means, view) for time, rank in times.items() for means in (False, True))
    weights = [Heat(modes, one.parameter, one.means).weights for one in members]
    return Block(members, modes.vectors, np.reshape(weights, (len(members), len(modes))).astype(modes.vectors.dtype))


def linear_block(axes: Axes, coordinates: NDArray, view: int = 0) -> Block:
    """Linear covariances at several shrinkages, none if all points are the same."""
    shares = SHRINKAGES if axes.variances.any() else ()
    members = tuple(Member(LINEAR, axes.rank(share), share, True, view) for share in shares)
    weights = np.reshape([axes.weights(share) for share in shares], (len(members), coordinates.shape[1]))
    return Block(members, coordinates, weights.astype(coordinates.dtype))


@dataclass(frozen=True)
class Clusters:
    """A mixture of Gaussians of all points, as the probabilities of its components at a point.

    The sum of p(c | x) p(c | x') over the components c is a covariance, and is not negative: the chance that two points
    belong to the same component.
    """

    member: Member
    axes: NDArray
    """Numbers of the principal axes that are used."""
    unit: float
    """A power of two by which coordinates are divided, so that their squares are numbers."""
    coefficients: NDArray
    """Log densities are the products of these with z, |z|^2 and 1, shape (axes + 2, components)."""

    @property
    def name(self) -> str:
        """What users see."""
        return f"{self.coefficients.shape[1]} clusters, {'of one shape' if self.member.source == TIED else 'round'}"

    def probabilities(self, coordinates: NDArray) -> NDArray:
        """Probabilities of the components, from coordinates along the principal axes."""
        coefficients = self.coefficients.astype(coordinates.dtype)
        found = np.empty((len(coordinates), coefficients.shape[1]), coordinates.dtype)
        for part in gen_batches(len(found), ROWS) if len(found) else ():
            z = coordinates[part][:, self.axes] / coordinates.dtype.type(self.unit)
            found[part] = _responsibilities(_with_squares(z), coefficients)[0].T
        return found

    def block(self, coordinates: NDArray) -> Block:
        """Its covariance at all points."""
        found = self.probabilities(coordinates)
        return Block((self.member,), found, np.ones((1, found.shape[1]), found.dtype))


def fit_clusters(axes: Axes, coordinates: NDArray, n_classes: int) -> list[Clusters]:
    """Mixtures with as many components as classes, and more; with one covariance matrix, and round."""
    n = len(coordinates)
    leading = np.argsort(-axes.variances, kind="stable")
    leading = leading[axes.variances[leading] > 0][:ROUND_AXES]
    if not len(leading):
        return []
    unit = power_of_two(float(np.sqrt(axes.variances[leading[0]])))
    some = np.asarray(coordinates[:: -(-n // SAMPLE), leading] / unit, dtype=np.float32)
    counts = [
        count for count in (n_classes * multiple for multiple in COMPONENTS) if count * PER_COMPONENT <= len(some)
    ]
    centres = _spread_out(some, max(counts, default=0))
    found = []
    for count in counts:
        if count > len(centres):
            break
        nearest = KMeans(count, init=centres[:count], n_init=1, max_iter=10).fit(some).labels_
        start = (np.arange(count)[:, None] == nearest).astype(np.float32)
        for source, most in ((TIED, TIED_AXES), (ROUND, ROUND_AXES)):
            rank, coefficients = _expectation_maximisation(some[:, :most], start, source)
            found.append(Clusters(Member(source, rank, count, False), leading[:most], unit, coefficients))
    return found


def _spread_out(z: NDArray, count: int) -> NDArray:
    """Points that are far from each other, by greedy k-means++; fewer if there are fewer different ones.

    The first of them are such points too. So one sequence serves mixtures of all sizes.
    """
    rng, squares = np.random.default_rng(0), np.einsum("ij,ij->i", z, z)
    nearest, chosen = np.full(len(z), np.inf), [int(rng.integers(len(z)))] if count else []
    while chosen:
        nearest = np.minimum(nearest, _squared_distances(z, squares, chosen[-1:])[:, 0])
        total = np.cumsum(nearest, dtype=float)
        if len(chosen) == count or total[-1] <= 0:
            break
        drawn = np.searchsorted(total, rng.random(2 + int(np.log(count))) * total[-1], side="right")
        drawn = np.minimum(drawn, len(z) - 1)
        left = np.minimum(nearest[:, None], _squared_distances(z, squares, drawn)).sum(axis=0, dtype=float)
        chosen.append(int(drawn[left.argmin()]))
    return z[chosen]


def _squared_distances(z: NDArray, squares: NDArray, rows) -> NDArray:
    """Squared distances of all points from some, 0 where rounding is all that is left."""
    found = squares[:, None] - 2 * (z @ z[rows].T) + squares[rows]
    found[found <= BLUR * (squares[:, None] + squares[rows])] = 0
    return found


def _with_squares(z: NDArray) -> NDArray:
    """Points with two more columns: |z|^2 and 1."""
    return np.column_stack([z, np.einsum("ij,ij->i", z, z), np.ones(len(z), z.dtype)])


def _responsibilities(wide: NDArray, coefficients: NDArray, room: NDArray | None = None) -> tuple[NDArray, float]:
    """Probabilities of the components at points, and the mean log density; `room` is overwritten with the former.

    A row is a component: sums over few components are several times as fast as sums within short rows.
    """
    logs = np.matmul(coefficients.T, wide.T, out=room)
    largest = logs.max(axis=0)
    logs -= largest
    found = np.exp(logs, out=logs)
    totals = found.sum(axis=0)
    found /= totals
    return found, float(np.mean(largest + np.log(totals), dtype=float))


def _expectation_maximisation(z: NDArray, parts: NDArray, source: int) -> tuple[float, NDArray]:
    """The effective rank and the coefficients of a mixture, from first probabilities of its components at points."""
    wide, before, room = _with_squares(z), -np.inf, np.empty_like(parts)
    moments = (z.T @ z).astype(float) / len(z)
    ridge = RIDGE * float(z.var(axis=0, dtype=float).mean())
    step = _tied_step if source == TIED else _round_step
    for _ in range(STEPS):
        coefficients, constant = step((parts @ wide).astype(float), ridge, moments)
        parts, density = _responsibilities(wide, coefficients.astype(z.dtype), room)
        if density + constant - before < SETTLED:
            break
        before = density + constant
    gram = (parts @ parts.T).astype(float)
    return CAUTION * float(np.trace(gram) ** 2 / (gram**2).sum()), coefficients


def _round_step(sums: NDArray, ridge: float, moments: NDArray) -> tuple[NDArray, float]:
    """Coefficients of round components from their sums of z, |z|^2 and 1."""
    counts, d = sums[:, -1] + np.finfo(float).tiny, len(moments)
    means = sums[:, :-2] / counts[:, None]
    lengths = np.einsum("ij,ij->i", means, means)
    variances = np.maximum(sums[:, -2] / counts - lengths, 0) / d + ridge
    logs = np.log(counts / counts.sum()) - d / 2 * np.log(variances) - lengths / (2 * variances)
    return np.vstack([means.T / variances, -0.5 / variances, logs]), 0.0


def _tied_step(sums: NDArray, ridge: float, moments: NDArray) -> tuple[NDArray, float]:
    """Likewise for components with one covariance matrix; its part of the mean log density is the same for all."""
    counts = sums[:, -1] + np.finfo(float).tiny
    means = sums[:, :-2] / counts[:, None]
    within = moments - (means.T * counts) @ means / counts.sum() + ridge * np.eye(len(moments))
    factor = linalg.cho_factor(within, lower=True, check_finite=False)
    slopes = linalg.cho_solve(factor, means.T, check_finite=False)
    logs = np.log(counts / counts.sum()) - np.einsum("ij,ji->i", means, slopes) / 2
    half = np.log(np.diag(factor[0])).sum() + np.trace(linalg.cho_solve(factor, moments, check_finite=False)) / 2
    return np.vstack([slopes, np.zeros(len(counts)), logs]), -float(half)

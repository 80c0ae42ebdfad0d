"""The committee of `SLGCPClassifier`: from points and few labels to distributions, at all points and at new ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.estimators.supervised import LGCPClassifier
from coxfield.graphs.bank import EDGE_RULES, LINEAR, TIED, Given, fit_clusters, graph_block, linear_block, n_modes
from coxfield.graphs.experts import Opinion, cut_opinion, meet_shares, powers, prior_strength
from coxfield.graphs.experts import learn_experts as learn_committee
from coxfield.graphs.spectrum import spectrum_of_distances, spectrum_of_graph, spectrum_of_points, unit_rows
from coxfield.graphs.units import AsGiven, units_for
from coxfield.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from coxfield.graphs.bank import Block, Clusters, Kriged, Member, MemberSums
    from coxfield.graphs.experts import Experts as Committee
    from coxfield.graphs.spectrum import GraphSpectrum
    from coxfield.graphs.units import Units

NEARLY_CERTAIN = 0.8  # probability of a class
LEAST_GUESS = 1e-9  # probability of a class that a guess excludes
ENOUGH = 6  # labels per class, on average, from which a classifier that sees only the labelled points is asked


@dataclass
class Prepared:
    """What does not depend on labels: points, graphs, and the bank of members. It is made when it is needed."""

    X: Any
    """Points, or affinities or distances between them."""
    kernel: str | None = None
    """None for points, "precomputed" for affinities, "precomputed_distances"."""
    n_categories: int = 0
    """How many columns of the points, the last ones, are categories."""
    views: tuple[View, ...] = ()
    count: int = 0
    """How many modes of each graph were asked for."""
    clusters: dict[int, list[Clusters]] = field(default_factory=dict, repr=False)
    """Of points in the units of the first view, for a number of classes."""
    _blocks: dict[int, list[Block]] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_blocks": {}}  # made again when they are needed: a file need not hold them

    @property
    def points(self) -> Any:
        """The points, or None if there is only a graph."""
        return self.X if self.kernel is None else None

    def blocks(self, n_classes: int, verbose: int = 0) -> list[Block]:
        """All members. The number of modes and the effective ranks follow from the number of classes."""
        if n_classes not in self._blocks:
            count = n_modes(self.X.shape[0], n_classes)
            if not self.views or count > self.count:
                self.views, self.count = self._views(count, verbose), count
            coordinates = [view.coordinates(self.X) for view in self.views]
            found: list[Block] = []
            for k, view in enumerate(self.views):
                found += view.blocks(k, coordinates[k], count, n_classes)
            axes, first = self.views[0].spectrum.axes, coordinates[0]
            if axes is not None and first is not None:
                if n_classes not in self.clusters:
                    self.clusters = {n_classes: fit_clusters(axes, first, n_classes)}
                found += [clusters.block(first) for clusters in self.clusters[n_classes]]
            self._blocks = {n_classes: found}  # those of other numbers of classes are not kept
        return self._blocks[n_classes]

    def name(self, member: Member) -> str:
        """What users see."""
        if member.source > TIED:
            return self.views[member.view].name(member) + (", kriging" if member.kriged else "")
        return next(one.name for found in self.clusters.values() for one in found if one.member == member)

    def features(self, members: Sequence[Member], n_classes: int, rows: NDArray) -> Iterator[NDArray]:
        """Features of some members at some points."""
        places = {one: (block, m) for block in self.blocks(n_classes) for m, one in enumerate(block.members)}
        found = (places[replace(member, kriged=False)] for member in members)
        return (block.features(m, rows) for block, m in found)

    def _views(self, count: int, verbose: int) -> tuple[View, ...]:
        if self.kernel == "precomputed":
            return (View(AsGiven(), spectrum_of_graph(self.X, count, verbose)),)
        if self.kernel == "precomputed_distances":
            return (View(AsGiven(), spectrum_of_distances(self.X, EDGE_RULES, count, verbose)),)
        units = units_for(self.X, self.n_categories)
        return tuple(View(one, spectrum_of_points(one.place(self.X), EDGE_RULES, count, verbose)) for one in units)


@dataclass(frozen=True)
class View:
    """All points in some units."""

    units: Units
    spectrum: GraphSpectrum

    def blocks(self, number: int, coordinates: NDArray | None, count: int, n_classes: int) -> list[Block]:
        """The members of this view; `count` modes of each graph are used."""
        found = [graph_block(k, modes.lowest(count), n_classes, number) for k, modes in enumerate(self.spectrum.modes)]
        axes = self.spectrum.axes
        return found if axes is None or coordinates is None else [*found, linear_block(axes, coordinates, number)]

    def coordinates(self, X) -> NDArray | None:
        """Coordinates of points along the principal axes, if the points have features."""
        return None if self.spectrum.axes is None else self.spectrum.axes.coordinates(self.units.place(X))

    def name(self, member: Member) -> str:
        """What users see."""
        graph = member.source >= 0
        name = self.spectrum.names[member.source] if graph else f"linear, shrinkage {member.parameter:g}"
        return f"{name}, {self.units.name}" if self.units.name else name

    def joined(self, X, of_all: NDArray) -> NDArray:
        """What the cut says at new points: weighted means of what it says at their neighbours."""
        source = 0 if self.spectrum.cut is None else self.spectrum.cut.source
        return self.spectrum.join.shares(self.units.place(X), [source])[source] @ of_all

    def sums(self, X, members: Sequence[Member], sums, directions, clusters: dict[Member, Clusters]) -> list[NDArray]:
        """Class sums of its members at new points: weighted means of those of the neighbours, in each graph."""
        coordinates = self.coordinates(X) if any(member.source < 0 for member in members) else None
        graphs = sorted({member.source for member in members if member.source >= 0})
        shares, axes = self.spectrum.join.shares(self.units.place(X), graphs), self.spectrum.axes
        found = []
        for member, own, direction in zip(members, sums, directions, strict=True):
            if member.source >= 0:
                found.append(shares[member.source] @ own)
            elif axes is None or coordinates is None:
                raise AssertionError("only members of graphs do without features")
            elif member.source == LINEAR:
                found.append(axes.features(coordinates, member.parameter) @ direction)
            else:
                found.append(unit_rows(clusters[member].probabilities(coordinates)) @ direction)
        return found


@dataclass(frozen=True)
class FewLabels:
    """What all points together say about the labels."""

    prepared: Prepared
    committee: Committee
    alone: LGCPClassifier | None
    """The classifier that looks at the labelled points alone; None if there are few of them."""
    distributions: NDArray
    """Probabilities of the classes at all points, shape (n, n_classes)."""
    rows: NDArray
    """Rows of the labelled points."""
    left_out: NDArray
    """Probabilities of the classes at the labelled points, each from the others, shape (n_labelled, n_classes).

    A label that is left out counts in no class sum. It has counted when the weights of the members were learned.
    """
    cut: NDArray | None = None
    """What the minimum cut says at all points, shape (n, n_classes); None if it is not heard."""
    shift: NDArray | None = None
    """What is added to log probabilities, so that the classes have the shares that the user states."""
    unexpected: tuple[NDArray, NDArray] | None = None
    """Class shares of the points without a label: as stated, and those that are nearly certain without that."""

    @property
    def table(self) -> dict[str, NDArray]:
        """The members, the loudest first; see `SLGCPClassifier.members_`."""
        members, shares = self.committee.members, self.committee.shares
        order = np.argsort(-shares, kind="stable")
        return {
            "covariance": np.array([self.prepared.name(one) for one in members])[order],
            "effective_rank": np.array([one.rank for one in members])[order],
            "without_mode_0": np.array([one.means and one.source >= 0 for one in members])[order],
            "share": shares[order],
        }

    def features(self, rows: NDArray) -> NDArray:
        """Features of some points whose inner products are the covariance of the committee: the mean of all members."""
        members, shares = self.committee.members, np.sqrt(self.committee.shares)
        found = self.prepared.features(members, self.distributions.shape[1], rows)
        return np.hstack([share * one.astype(float) for share, one in zip(shares, found, strict=True)])

    def probabilities(self, X) -> NDArray:
        """Probabilities of the classes at new points."""
        alone = self.alone if self.committee.hears_supervised else None
        cut = None if self.cut is None else self.prepared.views[0].joined(X, self.cut)
        found = self.committee.probabilities(self._sums(X), None if alone is None else alone.predict_proba(X), cut)
        return found if self.shift is None else powers(found * np.exp(self.shift), 1.0)

    def _sums(self, X) -> list[NDArray]:
        """Class sums of the members at new points."""
        members = self.committee.members
        found: dict[int, NDArray] = {}
        clusters = {one.member: one for fitted in self.prepared.clusters.values() for one in fitted}
        for k, view in enumerate(self.prepared.views):
            own = [m for m, member in enumerate(members) if member.view == k]
            sums, directions = ([part[m] for m in own] for part in (self.committee.sums, self.committee.directions))
            if own:
                new = view.sums(X, [members[m] for m in own], sums, directions, clusters)
                found |= dict(zip(own, new, strict=True))
        return [found[m] for m in range(len(members))]


@dataclass(frozen=True)
class Known:
    """What a user knows beside the labels."""

    weights: NDArray | None = None
    """How often each row counts if it is labelled; None for once."""
    prior: NDArray | None = None
    """Guessed probabilities of the classes at all points, shape (n, n_classes)."""
    shares: NDArray | None = None
    """Of the classes among all points."""


def learn_few_labels(
    prepared: Prepared, codes: NDArray, mean: NDArray, known: Known | None = None, *, verbose: int = 0
) -> FewLabels:
    """Learn from all points and the labels of some.

    Parameters
    ----------
    prepared : Prepared
    codes : array of shape (n,)
        Class numbers, -1 where the label is not known. A class may have no label.
    mean : array of shape (n_classes,)
    known : Known, optional
    """
    known = Known() if known is None else known
    X, rows = prepared.points, np.flatnonzero(codes >= 0)
    given = Given(rows, codes[rows], len(mean), None if known.weights is None else known.weights[rows])
    blocks = prepared.blocks(len(mean), verbose)
    with progress("class sums", None, verbose):
        members = [member for block in blocks for member in block.members]
        sums: list[MemberSums | Kriged] = [one for block in blocks for one in block.sums(given)]
        for member, one in (pair for block in blocks if given.many for pair in block.kriged(given)):
            members.append(member)
            sums.append(one)
    asked = X is not None and len(rows) >= ENOUGH * len(mean) and given.counts.all()
    alone, opinion = _alone(X, given, mean, verbose) if asked else (None, None)
    with progress("weights of the members", None, verbose):
        cut = cut_opinion(prepared.views[0].spectrum.cut, given, len(codes))
        committee = learn_committee(members, sums, given, mean, opinion, cut)
        heard = [opinion if committee.hears_supervised else None, cut if committee.loudness[3] else None]
        whole = [None if one is None else one.whole() for one in heard]
        distributions = committee.probabilities(committee.sums, *whole)
        left_out = committee.probabilities(committee.left_out, *(getattr(one, "left_out", None) for one in heard))
    if known.prior is not None:
        strength = prior_strength(left_out, known.prior[rows], given.judged)
        distributions = powers(distributions * np.maximum(known.prior, LEAST_GUESS) ** strength, 1.0)
    shift = unexpected = None
    if known.shares is not None:
        blank, stated = distributions[codes < 0], _left(codes, known.shares)
        shift, unexpected = meet_shares(blank, stated), (stated, (blank > NEARLY_CERTAIN).mean(axis=0))
        distributions = powers(distributions * np.exp(shift), 1.0)
    distributions[rows] = np.eye(len(mean))[codes[rows]]
    return FewLabels(prepared, committee, alone, distributions, rows, left_out, whole[1], shift, unexpected)


def _left(codes: NDArray, shares: NDArray) -> NDArray:
    """Class shares of the points without a label, if all points together have the shares that the user states."""
    left = np.maximum(shares * len(codes) - np.bincount(codes[codes >= 0], minlength=len(shares)), 0)
    return left / left.sum() if left.any() else shares


def _alone(X, given: Given, mean: NDArray, verbose: int) -> tuple[LGCPClassifier, Opinion]:
    """A classifier that looks at the labelled points alone, and what it says."""
    with progress("mixture of the labelled points alone", None, verbose), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X is sparse", UserWarning)  # it lacks members that others replace
        classifier = LGCPClassifier(mean=dict(enumerate(mean.tolist())), bank="simple")
        classifier.fit(X[given.rows], given.y, sample_weight=given.weights)
        return classifier, Opinion(lambda: classifier.predict_proba(X), classifier.loo_predict_proba())

"""The committee of `SLGCPClassifier`: from points and few labels to distributions, at all points and at new ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.estimators.supervised import LGCPClassifier
from coxfield.graphs.bank import EDGE_RULES, Given, graph_block, linear_block, n_modes
from coxfield.graphs.experts import SupervisedExpert as Opinion
from coxfield.graphs.experts import learn_experts as learn_committee
from coxfield.graphs.spectrum import spectrum_of_distances, spectrum_of_graph, spectrum_of_points
from coxfield.progress import progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.graphs.bank import Block
    from coxfield.graphs.experts import Experts as Committee
    from coxfield.graphs.spectrum import GraphSpectrum

ENOUGH = 128  # labels from which a classifier that sees only the labelled points may be better, and is asked


@dataclass
class Prepared:
    """What does not depend on labels: points, graphs, and the bank of members. It is made when it is needed."""

    X: Any
    """Points, or affinities or distances between them."""
    kernel: str | None = None
    """None for points, "precomputed" for affinities, "precomputed_distances"."""
    spectrum: GraphSpectrum | None = None
    count: int = 0
    """How many modes of each graph were asked for."""
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
            if self.spectrum is None or count > self.count:
                self.spectrum, self.count = self._spectrum(count, verbose), count
            found = [graph_block(k, modes.lowest(count), n_classes) for k, modes in enumerate(self.spectrum.modes)]
            if self.spectrum.axes is not None:
                found.append(linear_block(self.spectrum.axes, self.spectrum.axes.coordinates(self.X)))
            self._blocks = {n_classes: found}  # those of other numbers of classes are not kept
        return self._blocks[n_classes]

    def _spectrum(self, count: int, verbose: int) -> GraphSpectrum:
        if self.kernel == "precomputed":
            return spectrum_of_graph(self.X, count, verbose)
        if self.kernel == "precomputed_distances":
            return spectrum_of_distances(self.X, EDGE_RULES, count, verbose)
        return spectrum_of_points(self.X, EDGE_RULES, count, verbose)


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

    @property
    def spectrum(self) -> GraphSpectrum:
        """The graphs of all points."""
        assert self.prepared.spectrum is not None  # it was needed to learn
        return self.prepared.spectrum

    @property
    def table(self) -> dict[str, NDArray]:
        """The members, the loudest first; see `SLGCPClassifier.members_`."""
        members, shares = self.committee.members, self.committee.shares
        order = np.argsort(-shares, kind="stable")
        graphs = self.spectrum.names
        names = [graphs[one.source] if one.source >= 0 else f"linear, shrinkage {one.parameter:g}" for one in members]
        return {
            "covariance": np.array(names)[order],
            "effective_rank": np.array([one.rank for one in members])[order],
            "without_mode_0": np.array([one.means and one.source >= 0 for one in members])[order],
            "share": shares[order],
        }

    def probabilities(self, X) -> NDArray:
        """Probabilities of the classes at new points."""
        sums = self._sums(X)
        alone = None if self.alone is None else self.alone.predict_proba(X)
        return self.committee.probabilities(sums, alone)

    @property
    def left_out(self) -> NDArray:
        """Probabilities of the classes at the labelled points, each from the others, shape (n_labelled, n_classes).

        A label that is left out counts in no class sum. It has counted when the weights of the members were learned.
        """
        alone = None if self.alone is None else self.alone.loo_predict_proba()
        return self.committee.probabilities(self.committee.left_out, alone)

    def _sums(self, X) -> list[NDArray]:
        """Class sums of the members at new points: weighted means of those of the neighbours, in each graph."""
        members = self.committee.members
        graphs = sorted({member.source for member in members if member.source >= 0})
        shares = self.spectrum.join.shares(X, graphs)
        found, coordinates = [], None
        for member, sums, directions in zip(members, self.committee.sums, self.committee.directions, strict=True):
            if member.source >= 0:
                found.append(shares[member.source] @ sums)
            elif self.spectrum.axes is not None:
                coordinates = self.spectrum.axes.coordinates(X) if coordinates is None else coordinates
                found.append(self.spectrum.axes.features(coordinates, member.parameter) @ directions)
        return found


def learn_few_labels(prepared: Prepared, codes: NDArray, mean: NDArray, *, verbose: int = 0) -> FewLabels:
    """Learn from all points and the labels of some.

    Parameters
    ----------
    prepared : Prepared
    codes : array of shape (n,)
        Class numbers, -1 where the label is not known. A class may have no label.
    mean : array of shape (n_classes,)
    """
    X, rows = prepared.points, np.flatnonzero(codes >= 0)
    given = Given(rows, codes[rows], len(mean))
    blocks = prepared.blocks(len(mean), verbose)
    with progress("class sums", None, verbose):
        members = [member for block in blocks for member in block.members]
        sums = [block.sums(m, given) for block in blocks for m in range(len(block.members))]
    asked = X is not None and len(rows) >= ENOUGH and given.counts.all()
    alone, opinion = _alone(X, given, mean, verbose) if asked else (None, None)
    with progress("weights of the members", None, verbose):
        committee = learn_committee(members, sums, given, mean, opinion)
        whole = None if opinion is None else opinion.whole
        distributions = committee.probabilities(committee.sums, whole)
    distributions[rows] = np.eye(len(mean))[codes[rows]]
    return FewLabels(prepared, committee, alone, distributions, rows)


def _alone(X, given: Given, mean: NDArray, verbose: int) -> tuple[LGCPClassifier, Opinion]:
    """A classifier that looks at the labelled points alone, and what it says."""
    with progress("mixture of the labelled points alone", None, verbose), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X is sparse", UserWarning)  # it lacks members that others replace
        classifier = LGCPClassifier(mean=dict(enumerate(mean.tolist()))).fit(X[given.rows], given.y)
        return classifier, Opinion(classifier.predict_proba(X), classifier.loo_predict_proba())

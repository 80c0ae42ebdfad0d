"""The committee of `SLGCPClassifier`: from points and few labels to distributions, at all points and at new ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.estimators.supervised import LGCPClassifier
from coxfield.graphs.experts import Given, graph_members, linear_members, member_sums
from coxfield.graphs.experts import SupervisedExpert as Opinion
from coxfield.graphs.experts import learn_experts as learn_committee
from coxfield.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from coxfield.graphs.experts import Experts as Committee
    from coxfield.graphs.experts import Member
    from coxfield.graphs.spectrum import GraphSpectrum as Shape

ENOUGH = 128  # labels from which a classifier that sees only the labelled points may be better, and is asked


@dataclass(frozen=True)
class FewLabels:
    """What all points together say about the labels."""

    shape: Shape
    committee: Committee
    alone: LGCPClassifier | None
    """The classifier that looks at the labelled points alone; None if there are few of them."""
    distributions: NDArray
    """Probabilities of the classes at all points, shape (n, n_classes)."""
    rows: NDArray
    """Rows of the labelled points."""

    @property
    def table(self) -> dict[str, NDArray]:
        """The members, the loudest first; see `SLGCPClassifier.members_`."""
        members, shares = self.committee.members, self.committee.shares
        order = np.argsort(-shares, kind="stable")
        names = [
            self.shape.names[one.source] if one.source >= 0 else f"linear, shrinkage {one.parameter:g}"
            for one in members
        ]
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
        shares = self.shape.join.shares(X, graphs)
        found, coordinates = [], None
        for member, sums, directions in zip(members, self.committee.sums, self.committee.directions, strict=True):
            if member.source >= 0:
                found.append(shares[member.source] @ sums)
            elif self.shape.axes is not None:
                coordinates = self.shape.axes.coordinates(X) if coordinates is None else coordinates
                found.append(self.shape.axes.features(coordinates, member.parameter) @ directions)
        return found


def learn_few_labels(X, codes: NDArray, shape: Shape, mean: NDArray, *, verbose: int = 0) -> FewLabels:
    """Learn from all points and the labels of some.

    Parameters
    ----------
    X : points, or None if there is only a graph
    codes : array of shape (n,)
        Class numbers, -1 where the label is not known.
    shape : Shape
    mean : array of shape (n_classes,)
    """
    rows = np.flatnonzero(codes >= 0)
    given = Given(rows, codes[rows], len(mean))
    with progress("class sums", None, verbose):
        bank = [
            (member, member_sums(features, given, means=member.means)) for member, features in _bank(X, shape, given)
        ]
    members, sums = zip(*bank, strict=True)
    alone, opinion = (None, None) if X is None or len(rows) < ENOUGH else _alone(X, given, mean, verbose)
    with progress("weights of the members", None, verbose):
        committee = learn_committee(members, sums, given, mean, opinion)
        whole = None if opinion is None else opinion.whole
        distributions = committee.probabilities(committee.sums, whole)
    distributions[rows] = np.eye(len(mean))[codes[rows]]
    return FewLabels(shape, committee, alone, distributions, rows)


def _bank(X, shape: Shape, given: Given) -> Iterator[tuple[Member, NDArray]]:
    """All members, and the features of each."""
    for source, modes in enumerate(shape.modes):
        yield from graph_members(source, modes, given.n_classes)
    if shape.axes is not None:
        yield from linear_members(shape.axes, shape.axes.coordinates(X))


def _alone(X, given: Given, mean: NDArray, verbose: int) -> tuple[LGCPClassifier, Opinion]:
    """A classifier that looks at the labelled points alone, and what it says."""
    with progress("mixture of the labelled points alone", None, verbose), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X is sparse", UserWarning)  # it lacks members that others replace
        classifier = LGCPClassifier(mean=dict(enumerate(mean.tolist()))).fit(X[given.rows], given.y)
        return classifier, Opinion(classifier.predict_proba(X), classifier.loo_predict_proba())

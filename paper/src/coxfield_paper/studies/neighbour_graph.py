"""The paper's check for a trivial solution: whether a nearest-neighbour graph falls apart into the two classes.

Two points are joined if one is among the k nearest neighbours of the other. As k grows, parts of this graph merge. So
it is enough to look at the graphs from k = 1 to the first one that is connected. A trivial solution is a k for which
the graph has exactly two parts, and these are the two classes.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from coxfield_paper.report.blocks import Claim, Mean, Table, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

JOINED = (
    "Two points are joined if one is among the k nearest neighbours of the other by Euclidean distance; parts are the "
    "connected components. With the last k, and with every larger k, the graph has one part."
)
RIGHT = (
    "Right: unlabelled points that get their own class when each part takes the most frequent label in it. A part "
    "without a label, or with a tie, takes none."
)
TRIVIAL = "A trivial solution is a graph of exactly two parts which are the two classes."
NEARLY = 99.0  # per cent of the points: a graph whose parts are right at so many is trivial in all but name


def parts(X) -> Iterator[NDArray]:
    """The part that each point belongs to, for k = 1, 2, ... until the graph has one part only.

    Examples
    --------
    >>> [found.tolist() for found in parts([[0.0], [1.0], [3.0], [4.1]])]
    [[0, 0, 1, 1], [0, 0, 0, 0]]
    """
    neighbours = NearestNeighbors().fit(X)
    for k in count(1):
        number, part = connected_components(neighbours.kneighbors_graph(n_neighbors=k), directed=False)
        yield part
        if number == 1:
            return


def inherited(part: NDArray, y: NDArray) -> NDArray:
    """The most frequent label of the part that each point belongs to; -1 if it has no label, or a tie.

    Examples
    --------
    >>> inherited(np.array([0, 0, 1, 1, 1, 2]), np.array([1, -1, 0, 1, -1, -1])).tolist()
    [1, 1, -1, -1, -1, -1]
    """
    votes = np.zeros((part.max() + 1, 2), dtype=int)
    np.add.at(votes, (part[y >= 0], y[y >= 0]), 1)
    winner = np.where(votes[:, 0] == votes[:, 1], -1, votes.argmax(axis=1))
    return winner[part]


def search(X, truth: NDArray, y: NDArray) -> dict[str, Any]:
    """Look for a trivial solution of one partition.

    Parameters
    ----------
    X : array of shape (n, d)
    truth : array of shape (n,)
        Classes, 0 and 1.
    y : array of shape (n,)
        The same, with -1 where the class is not known.

    Returns
    -------
    dict
        "parts": the number of parts for k = 1, 2, ...; "right": the unlabelled points, in per cent, that get their own
        class when parts inherit labels, for the same k; "trivial": the least k of a trivial solution, or None.
    """
    unknown = y < 0
    number, right, trivial = [], [], None
    for k, part in enumerate(parts(X), start=1):
        number.append(int(part.max()) + 1)
        right.append(100 * float(np.mean(inherited(part, y)[unknown] == truth[unknown])))
        # Two parts are numbered 0 and 1 like the classes, or the other way round.
        if trivial is None and number[-1] == 2 and (part == truth).mean() in (0, 1):
            trivial = k
    return {"parts": number, "right": right, "trivial": trivial}


def table(results: Sequence[dict[str, Any]], labels: int) -> Table:
    """The neighbour graphs of several partitions, one row for each k."""
    rows = [
        (str(k + 1), str(_at(results, "parts", k)), str(_at(results, "right", k)), _solved(results, k + 1))
        for k in range(_longest(results))
    ]
    return Table(
        caption=f"Parts of the k-nearest-neighbour graph of all points, mean of {len(results)} partitions.",
        headings=("k", "parts", f"right with {labels} labels, %", "trivial solutions"),
        rows=tuple(rows),
        notes=(JOINED, RIGHT, TRIVIAL),
    )


def _longest(results: Sequence[dict[str, Any]]) -> int:
    return max(len(result["parts"]) for result in results)


def _at(results: Sequence[dict[str, Any]], key: str, k: int) -> Mean:
    """Mean over partitions. A connected graph stays connected with more neighbours."""
    return Mean(tuple(float(result[key][min(k, len(result[key]) - 1)]) for result in results))


def _solved(results: Sequence[dict[str, Any]], k: int) -> str:
    return f"{sum(result['trivial'] == k for result in results)} of {len(results)}"


def claim(results: Sequence[dict[str, Any]], data: str) -> Claim:
    """Whether a trivial solution is ruled out: in no partition are the parts of a graph the classes, or nearly so."""
    statement = f"{data}: no trivial solution in terms of a nearest-neighbour graph"
    if not results:
        return Claim(statement, "no results", Verdict.NOT_TESTED)
    solved = sum(result["trivial"] is not None for result in results)
    best = max(max(result["right"]) for result in results)
    finding = (
        f"the two parts of a graph are the classes in {solved} of {len(results)} partitions; labels that spread over "
        f"whole parts are right at {best:.1f} % of the points in the best partition ({NEARLY:g} % would be trivial)"
    )
    return Claim(statement, finding, Verdict.of(solved == 0 and best < NEARLY))

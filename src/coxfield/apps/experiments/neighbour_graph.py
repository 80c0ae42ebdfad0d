"""The paper's check for a trivial solution: whether a nearest-neighbour graph falls apart into the two classes.

Two points are joined if one is among the k nearest neighbours of the other. As k grows the parts of this graph only
merge, so the graphs from k = 1 to the first that hangs together are all that there are to look at. A trivial solution
is a k for which there are exactly two parts, one the first class and one the second.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from coxfield.apps.report.blocks import Claim, Mean, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

JOINED = (
    "Two points are joined if one is among the k nearest neighbours of the other by Euclidean distance; parts are the "
    "connected components. From the last k on, no graph has more than one."
)
RIGHT = (
    "Right: unlabelled points that get their class when each part takes the more frequent of the labels in it; a part "
    "without a label, or with a tie, takes none."
)
TRIVIAL = "A trivial solution is a graph of exactly two parts, one the first class and one the second."


def parts(X) -> Iterator[NDArray]:
    """The part that each point belongs to, for k = 1, 2, ... up to the first graph that has one part only.

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
    """Labels that spread over whole parts: each takes the more frequent of the labels in it; -1 with none, or a tie.

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
        The same with -1 for those that are not known.

    Returns
    -------
    dict
        "parts" and "right", for k = 1, 2, ...: the number of parts, and the unlabelled points, in per cent, that get
        their class when parts inherit labels; "trivial": the least k of a trivial solution, or None.
    """
    unknown = y < 0
    number, right, trivial = [], [], None
    for k, part in enumerate(parts(X), start=1):
        number.append(int(part.max()) + 1)
        right.append(100 * float(np.mean(inherited(part, y)[unknown] == truth[unknown])))
        # Two parts are numbered 0 and 1, as the classes are, or the other way round.
        if trivial is None and number[-1] == 2 and (part == truth).mean() in (0, 1):
            trivial = k
    return {"parts": number, "right": right, "trivial": trivial}


def table(results: Sequence[dict[str, Any]], labels: int) -> Table:
    """What the neighbour graphs of some partitions are like, a row for each k."""
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
    """Mean over partitions; a graph that hangs together stays as it is with more neighbours."""
    return Mean(tuple(float(result[key][min(k, len(result[key]) - 1)]) for result in results))


def _solved(results: Sequence[dict[str, Any]], k: int) -> str:
    return f"{sum(result['trivial'] == k for result in results)} of {len(results)}"


def claim(results: Sequence[dict[str, Any]], data: str) -> Claim:
    """Whether a trivial solution is ruled out."""
    statement = f"{data}: no trivial solution in terms of a nearest-neighbour graph"
    if not results:
        return Claim(statement, "not tested: no results", None)
    solved = sum(result["trivial"] is not None for result in results)
    best, at = max((_at(results, "right", k).value, k + 1) for k in range(_longest(results)))
    finding = (
        f"a graph of two parts that are the classes in {solved} of {len(results)} partitions; labels that spread over "
        f"whole parts are right at {best:.1f} % of the points at best, with k = {at}"
    )
    return Claim(statement, finding, solved == 0)

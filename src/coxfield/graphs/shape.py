"""The shape of the data: graphs of all points with their modes, and how new points join them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scipy import sparse

from coxfield.graphs.affinity import row_shares
from coxfield.graphs.linear import Axes
from coxfield.graphs.modes import PRODUCTS, lowest_modes
from coxfield.graphs.neighbours import Listed, Search
from coxfield.progress import progress, shares, stages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.graphs.affinity import Ties
    from coxfield.graphs.modes import Modes


OF_MODES = 2.0  # the time that modes of a graph take, relative to the search for neighbours


@dataclass(frozen=True)
class Joined:
    """A new point is tied to its nearest neighbours, by the rule of each graph."""

    search: Search | Listed
    ties: tuple[Ties, ...]
    scales: tuple[NDArray, ...]

    def shares(self, X, graphs: Sequence[int]) -> dict[int, sparse.csr_array]:
        """For each graph, the weights of all points at each new point; they add up to 1."""
        if not len(graphs):
            return {}
        found = self.search.of(X, max(self.ties[g].neighbours for g in graphs))
        return {g: self.ties[g].shares(found, self.scales[g]) for g in graphs}


@dataclass(frozen=True)
class GivenWeights:
    """A new point comes with its weights, one column per point of the graph."""

    def shares(self, X, graphs: Sequence[int]) -> dict[int, sparse.csr_array]:
        """The given weights divided by their sums. A new point without a neighbour has none."""
        return dict.fromkeys(graphs, row_shares(sparse.csr_array(X)))


@dataclass(frozen=True)
class Shape:
    """Graphs of all points."""

    names: tuple[str, ...]
    modes: tuple[Modes, ...]
    join: Joined | GivenWeights
    """How new points join."""
    axes: Axes | None = None
    """Principal axes; None if the points have no features."""


def shape_of_points(X, ties: Sequence[Ties], n_modes: int, verbose: int = 0) -> Shape:
    """Graphs of points by several rules, and their principal axes."""
    shape = _shape(Search.among(X), ties, n_modes, verbose)
    with progress("principal axes", None, verbose):
        return replace(shape, axes=Axes.of(X))


def shape_of_distances(distances: sparse.csr_array, ties: Sequence[Ties], n_modes: int, verbose: int = 0) -> Shape:
    """Graphs of listed distances by several rules."""
    return _shape(Listed(distances), ties, n_modes, verbose)


def shape_of_graph(affinity: sparse.csr_array, n_modes: int, verbose: int = 0) -> Shape:
    """A graph of the user's own."""
    with progress("modes of the graph", 1, verbose) as done, shares(done, PRODUCTS) as step:
        modes = lowest_modes(affinity, n_modes, step)
    return Shape(("the given graph",), (modes,), GivenWeights())


def _shape(search: Search | Listed, ties: Sequence[Ties], n_modes: int, verbose: int) -> Shape:
    n, modes, scales = len(search), [], []
    with stages(f"{len(ties)} graphs of {n} points", 1 + OF_MODES * len(ties), verbose) as whole:
        with progress(f"nearest neighbours of {n} points", n, verbose) as done:
            found = search.of_all(max(rule.neighbours for rule in ties), _both(done, whole, n))
        for rule in ties:
            with progress(f"modes of the graph of {rule.name}", 1, verbose) as done:
                with shares(_both(done, whole, 1 / OF_MODES), PRODUCTS) as step:
                    modes.append(lowest_modes(rule.graph(found), n_modes, step))
                scales.append(rule.scales(found))
    join = Joined(search, tuple(ties), tuple(scales))
    return Shape(tuple(rule.name for rule in ties), tuple(modes), join)


def _both(done: Callable[[float], None], whole: Callable[[float], None], size: float = 1.0) -> Callable[[float], None]:
    """A function that tells of a stage, and of its share in the whole."""

    def tell(count: float) -> None:
        done(count)
        whole(count / size)

    return tell

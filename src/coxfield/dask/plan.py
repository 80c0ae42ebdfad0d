"""A plan: tasks that are not run yet, with the names that dashboards show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

import dask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

JOINED = 8  # results that one task of a tree joins


class Plan:
    """Tasks on chunks of Dask collections. Keys have the form (name of the step, number), as Dask's own do.

    Parameters
    ----------
    *inputs : Dask collections
        Whose keys may be arguments of tasks.
    """

    def __init__(self, *inputs):
        self.inputs = inputs
        self.tasks: dict[Any, Any] = {}
        self.token = uuid4().hex
        self.counts: dict[str, int] = {}

    def add(self, step: str, function: Callable, *arguments) -> tuple:
        """Add a task, and return its key. Arguments are keys, lists of keys, or values."""
        number = self.counts.get(step, 0)
        self.counts[step] = number + 1
        key = (f"lgcp-{step}-{self.token}", number)
        self.tasks[key] = (function, *arguments)
        return key

    def value(self, step: str, value) -> tuple:
        """Add a value that many tasks need, so that each worker gets it once, and return its key."""
        return self.add(step, _itself, _Closed(value))

    def tree(self, step: str, join: Callable[[list], Any], keys: Sequence) -> Any:
        """Join results pairwise or more at a time, in a tree, and return the key of the last one."""
        level = list(keys)
        while len(level) > 1:
            parts = [level[k : k + JOINED] for k in range(0, len(level), JOINED)]
            level = [self.add(step, join, part) if len(part) > 1 else part[0] for part in parts]
        return level[0]

    def graph(self) -> HighLevelGraph:
        """The tasks, and those of the inputs."""
        return HighLevelGraph.from_collections(f"lgcp-{self.token}", self.tasks, dependencies=self.inputs)

    def delayed(self, keys: Sequence) -> list[Delayed]:
        """The results of some tasks, as Dask objects."""
        graph = self.graph()
        return [Delayed(key, graph, layer=f"lgcp-{self.token}") for key in keys]

    def array(self, step: str, function: Callable, keys: Sequence, lengths: Sequence, *, tail=(), dtype=float):
        """A Dask array. Each chunk of rows is the function of one result.

        Parameters
        ----------
        step : str
        function : callable
        keys : sequence of keys
        lengths : sequence of int
            Rows of each chunk, NaN if nobody knows.
        tail : tuple of int
            Shape of a row.
        dtype : dtype
        """
        name = f"lgcp-{step}-{uuid4().hex}"
        zeros = (0,) * len(tail)
        blocks: dict[Any, Any] = {(name, number, *zeros): (function, key) for number, key in enumerate(keys)}
        graph = HighLevelGraph.merge(self.graph(), HighLevelGraph({name: blocks}, {name: {f"lgcp-{self.token}"}}))
        chunks = (tuple(lengths), *((size,) for size in tail))
        return da.Array(graph, name, chunks, dtype=np.dtype(dtype))


class _Closed:
    """A value into which Dask does not look for keys."""

    def __init__(self, value):
        self.value = value


def _itself(closed: _Closed):
    return closed.value


def computed(results: Sequence[Delayed], verbose: int = 0) -> list:
    """Compute results; above 0, `verbose` shows a bar."""
    return list(dask.compute(*_watched(results, verbose)))


def persisted(results: Sequence[Delayed], verbose: int = 0) -> list[Delayed]:
    """Compute results and leave them where they are."""
    return list(_watched(results, verbose) if verbose else dask.persist(*results))


def _watched(results: Sequence[Delayed], verbose: int) -> Sequence[Delayed]:
    """The results, being computed under a bar if that is asked for."""
    if not verbose:
        return results
    try:
        from distributed import get_client, progress

        get_client()
    except ValueError:  # no client: threads of this process
        from dask.diagnostics import ProgressBar

        with ProgressBar():
            return dask.persist(*results)
    held = dask.persist(*results)
    progress(*held, notebook=False)
    return held

"""A plan: tasks on chunks that are not run yet, with the names that dashboards show, and results that come later."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

import dask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.engine.class_sums import Scores

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


# From planned scores to the Dask arrays that users see.


@dataclass(frozen=True)
class Results:
    """`Scores` of blocks of rows, or what takes their place, not computed yet: `ScoredClassifier` asks them alike."""

    plan: Plan
    keys: Sequence
    """Of the scores of each block."""
    lengths: Sequence
    """Rows of each block, NaN if nobody knows."""
    n_classes: int
    precision: np.dtype
    here: bool = False
    """Whether to compute at once."""

    @property
    def values(self) -> Any:
        """Scores of the classes."""
        return self._per_class("class-scores", "values")

    @property
    def relative(self) -> Any:
        """The same up to a constant per row."""
        return self._per_class("decision-function", "relative")

    @property
    def log_probabilities(self) -> Any:
        """Log probabilities of the classes."""
        return self._per_class("predict-log-proba", "log_probabilities")

    @property
    def decisions(self) -> Any:
        """Numbers of the most probable classes."""
        return self.array("decide", _decisions, (), int)

    def _per_class(self, step: str, name: str) -> Any:
        return self.array(step, partial(_numbers, name, self.precision), (self.n_classes,), self.precision)

    def array(self, step: str, function: Callable, tail: tuple, dtype) -> Any:
        """An array whose chunks are the function of one result each, with rows of the shape `tail`."""
        array = self.plan.array(step, function, self.keys, self.lengths, tail=tail, dtype=dtype)
        return array.compute() if self.here else array


def _decisions(scores: Scores) -> NDArray:
    return scores.decisions


def _numbers(name: str, precision: np.dtype, scores: Scores) -> NDArray:
    """Numbers in the precision of the training points, and none of them infinite."""
    largest = np.finfo(precision).max
    return np.clip(getattr(scores, name), -largest, largest).astype(precision, copy=False)


def each_chunk(step: str, function: Callable, values: Any, dtype) -> Any:
    """A function of each chunk of a Dask array, under the name of a step; of an array of NumPy, at once."""
    if not isinstance(values, da.Array):
        return function(values)
    like = np.empty((0,) * values.ndim, dtype)
    mapped: Any = values.map_blocks
    return mapped(function, name=f"lgcp-{step}-{uuid4().hex}", dtype=like.dtype, meta=like)

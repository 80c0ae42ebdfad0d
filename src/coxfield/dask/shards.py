"""Shards: the chunks of training points, where they are, and what a first look at all of them tells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from scipy import sparse

import dask
from coxfield.dask.checks import Form, checked_labels, checked_weights
from coxfield.dask.chunks import references
from coxfield.engine.store import Labelled
from coxfield.estimators.validation import class_numbers, numbers_among
from coxfield.kernels.distances import feature_sizes, in_units
from coxfield.kernels.sklearn_tree import length_unit
from coxfield.selection.grid import Moments, moments
from coxfield.utils.numbers import units_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.kernels.per_class import PerClass


# A plan: tasks that are not run yet, with the names that dashboards show.


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


# How far apart the training points are, from moments that add over shards.


def class_distance(shards: Shards, kernels: PerClass, verbose: int = 0) -> float:
    """The typical distance of the points of a kernel's classes in units of its length scales, the largest of all."""
    survey, plan = shards.known, shards.plan()
    units = units_of(survey.sizes, shards.form.precision)
    origin = in_units(survey.first, units)
    form = plan.value("form", (shards.form, shards.classes, units, origin))
    keys = [plan.add("moments", shard_moments, form, kernels.owner, *parts) for parts in shards.references]
    (found,) = computed(plan.delayed([plan.tree("moments-join", joined_moments, keys)]), verbose)
    distinct = enumerate(kernels.distinct)
    return max(found[k].distance(length_unit(kernel)) for k, kernel in distinct if found[k].total)


def shard_moments(
    how: tuple[Form, NDArray, NDArray, Any], owner: NDArray, number: int, X, y, weights, densities=None
) -> list:
    """Moments of the points of each kernel in one shard."""
    form, classes, units, origin = how
    labelled = read(form, classes, number, X, y, weights).labelled
    found = []
    for k in range(int(owner.max()) + 1):
        rows = np.flatnonzero(owner[labelled.y] == k)
        some = labelled if len(rows) == len(labelled) else labelled[rows]
        found.append(moments(some.X, units, origin, some.weights))
    return found


def joined_moments(parts: Sequence[list[Moments]]) -> list[Moments]:
    """Moments over several sets of shards."""
    return [reduce(add, of_kernel) for of_kernel in zip(*parts, strict=True)]


@dataclass(frozen=True)
class Shard:
    """One chunk of training points in memory, without the rows of weight zero."""

    labelled: Labelled
    rows: NDArray
    """The row of each point in its chunk."""


@dataclass(frozen=True)
class Survey:
    """What a first look at chunks tells. Those of several chunks are joined."""

    lengths: tuple[int, ...]
    """Rows of each chunk."""
    kept: tuple[int, ...]
    """Rows of positive weight of each chunk."""
    labels: NDArray
    """Different labels of these rows."""
    sizes: NDArray
    """Largest absolute value of each feature."""
    first: Any
    """The first row of all; None for chunks without rows."""


@dataclass(frozen=True)
class Shards:
    """All training points, as Dask arrays. Nothing is copied to the client."""

    X: da.Array
    y: da.Array
    weights: da.Array | None
    form: Form
    classes: NDArray | None = None
    survey: Survey | None = None
    densities: tuple[Delayed, ...] | None = None
    """Of a mixture: `AtRows` of each ladder, for each shard, where they were computed."""

    @cached_property
    def references(self) -> list[tuple]:
        """For each shard its number, keys or recipes of points, labels and weights, and the key of its densities."""
        X, y = references(self.X), references(self.y)
        weights = [None] * len(X) if self.weights is None else references(self.weights)
        densities = [None] * len(X) if self.densities is None else [each.key for each in self.densities]
        return list(zip(range(len(X)), X, y, weights, densities, strict=True))

    def __len__(self) -> int:
        return self.X.numblocks[0]

    @property
    def inputs(self) -> list:
        """The Dask arrays."""
        return [each for each in (self.X, self.y, self.weights, *(self.densities or ())) if each is not None]

    def plan(self, *more) -> Plan:
        """A plan of tasks on the shards and on other Dask collections."""
        return Plan(*self.inputs, *more)

    def surveyed(self, estimator, verbose: int = 0) -> Shards:
        """The shards with their classes and lengths, after every chunk was checked."""
        plan = self.plan()
        name = type(estimator).__name__
        keys = [plan.add("check", survey_of, self.form, name, *parts) for parts in self.references]
        (survey,) = computed(plan.delayed([plan.tree("check-join", joined_surveys, keys)]), verbose)
        if not sum(survey.lengths):
            raise ValueError("Found array with 0 sample(s) in all chunks of X: give at least one row of each class")
        if not sum(survey.kept):
            raise ValueError("sample_weight is zero everywhere: at least one point must count")
        # Each label is listed once, which is no sign of quantities, of which scikit-learn would warn: so three times.
        classes, _ = class_numbers(np.tile(survey.labels, 3), estimator)
        form = replace(self.form, sparse=sparse.issparse(survey.first))  # distances need all points in one form
        return replace(self, form=form, classes=classes, survey=survey)

    @property
    def known(self) -> Survey:
        """The survey of shards that were surveyed."""
        assert self.survey is not None
        return self.survey

    @property
    def starts(self) -> NDArray:
        """Row of X at which each shard begins."""
        return np.concatenate([[0], np.cumsum(self.known.lengths)[:-1]]).astype(int)

    @property
    def places(self) -> NDArray:
        """Place among all rows of positive weight at which each shard begins."""
        return np.concatenate([[0], np.cumsum(self.known.kept)[:-1]]).astype(int)


def survey_of(form: Form, estimator: str, number: int, X, y, weights, densities=None) -> Survey:
    """Check a chunk, and look at it."""
    X = form.points(X, number)
    y = checked_labels(y, X, number, estimator)
    weights = checked_weights(weights, X, number)
    kept = np.ones(len(y), bool) if weights is None else weights > 0
    empty = not X.shape[0]
    sizes = np.zeros(form.n_features) if empty else feature_sizes(X)
    first = None if empty else X[:1].copy()
    return Survey((len(y),), (int(kept.sum()),), np.unique(y[kept]), sizes, first)


def joined_surveys(parts: Sequence[Survey]) -> Survey:
    """The survey of several chunks, in their order."""
    found = [part.labels for part in parts if len(part.labels)] or [parts[0].labels]
    texts = {labels.dtype.kind in "US" for labels in found}
    if len(texts) > 1:
        raise ValueError("y holds text in one chunk and numbers in another: write all labels as text, or none")
    return Survey(
        lengths=sum((part.lengths for part in parts), ()),
        kept=sum((part.kept for part in parts), ()),
        labels=np.unique(np.concatenate(found)),
        sizes=np.max([part.sizes for part in parts], axis=0),
        first=next((part.first for part in parts if part.first is not None), None),
    )


def read(form: Form, classes: NDArray, number: int, X, y, weights) -> Shard:
    """A shard in memory, from its chunks or their recipes."""
    X = form.points(X, number)
    y = checked_labels(y, X, number, "")
    weights = checked_weights(weights, X, number)
    rows = np.arange(len(y))
    if weights is not None:
        rows = np.flatnonzero(weights)
        X, y, weights = (X, y, weights) if len(rows) == len(y) else (X[rows], y[rows], weights[rows])
        weights = weights.astype(X.dtype)
    codes = numbers_among(y, classes) if len(y) else np.zeros(0, int)
    return Shard(Labelled(X, codes, len(classes), weights), rows)

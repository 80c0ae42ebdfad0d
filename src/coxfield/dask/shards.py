"""Shards: the chunks of training points, where they are, and what a first look at all of them tells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from scipy import sparse

import dask
from coxfield.dask.chunks import Form, Recipe, checked_labels, checked_weights, keys_of, made, references
from coxfield.dask.plan import Plan, computed
from coxfield.engine.store import Labelled
from coxfield.estimators.validation import class_numbers, numbers_among
from coxfield.kernels.namespace import Library, at_home, is_foreign, precision, rows_of
from coxfield.kernels.radial import check_library
from coxfield.kernels.sklearn_tree import length_unit
from coxfield.kernels.transforms import feature_sizes, in_units
from coxfield.selection.grid import Moments, moments
from coxfield.utils.numbers import units_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dask.delayed import Delayed
    from numpy.typing import NDArray

    from coxfield.kernels.protocol import Covariance, PerClass


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
    of_label: NDArray
    """For each label the number of its rows, and their weight: shape (2, labels)."""
    sizes: NDArray
    """Largest absolute value of each feature."""
    first: Any
    """The first row of all, in NumPy; None for chunks without rows."""
    library: str | None = None
    """Another library than NumPy that the points of some chunk are in."""


@dataclass(frozen=True)
class Piece:
    """Training points that were given together, as Dask arrays in chunks of the same rows."""

    X: da.Array
    y: da.Array
    weights: da.Array | None = None

    @property
    def arrays(self) -> list[da.Array]:
        """Points, labels, and weights if there are any."""
        return [each for each in (self.X, self.y, self.weights) if each is not None]

    @cached_property
    def references(self) -> list[tuple]:
        """For each chunk the keys or recipes of its points, labels and weights."""
        found = [references(each) for each in self.arrays]
        return list(zip(*found, *([[None] * len(found[0])] * (self.weights is None)), strict=True))

    def without(self, rows: Mapping[int, NDArray], lengths: Sequence[int]) -> Piece:
        """The same chunks without some of their rows; `lengths` says how many rows each chunk has."""
        left = [length - len(rows.get(k, ())) for k, length in enumerate(lengths)]
        plan = Plan(*self.arrays)
        found = []
        for each in self.arrays:
            keys = [plan.add("left", left_rows, key, rows.get(k, ())) for k, key in enumerate(keys_of(each))]
            found.append(plan.array("rows", _itself, keys, left, tail=each.shape[1:], dtype=each.dtype))
        return Piece(*(found if self._is_described(lengths) else dask.persist(*found)))

    def _is_described(self, lengths: Sequence[int]) -> bool:
        """Whether all chunks have recipes that are shorter than themselves, so that these do not hold the rows."""
        sizes = [each.dtype.itemsize * int(np.prod(each.shape[1:])) for each in self.arrays]
        return all(
            chunk is None or (isinstance(chunk, Recipe) and chunk.size < size * length)
            for length, chunks in zip(lengths, self.references, strict=True)
            for size, chunk in zip(sizes, chunks, strict=False)
        )


def left_rows(chunk, rows) -> Any:
    """A chunk without some rows, in memory of its own."""
    kept = np.setdiff1d(np.arange(chunk.shape[0]), rows)
    return rows_of(made(chunk), kept)


def _itself(chunk) -> Any:
    return chunk


@dataclass(frozen=True)
class Shards:
    """All training points, as Dask arrays. Nothing is copied to the client."""

    pieces: tuple[Piece, ...]
    form: Form
    classes: NDArray | None = None
    survey: Survey | None = None
    densities: tuple[Delayed, ...] | None = None
    """Of a mixture: `AtRows` of each ladder, for each shard, where they were computed."""

    @cached_property
    def references(self) -> list[tuple]:
        """For each shard its number, keys or recipes of points, labels and weights, and the key of its densities."""
        chunks = [chunk for piece in self.pieces for chunk in piece.references]
        densities = [None] * len(chunks) if self.densities is None else [each.key for each in self.densities]
        return [(k, *chunk, at) for k, (chunk, at) in enumerate(zip(chunks, densities, strict=True))]

    def __len__(self) -> int:
        return sum(piece.X.numblocks[0] for piece in self.pieces)

    @property
    def X(self) -> da.Array:  # noqa: N802
        """The points, as one Dask array."""
        return _together([piece.X for piece in self.pieces])

    @property
    def y(self) -> da.Array:
        """The labels, as one Dask array."""
        return _together([piece.y for piece in self.pieces])

    @property
    def weighted(self) -> bool:
        """Whether some points have weights."""
        return any(piece.weights is not None for piece in self.pieces)

    @property
    def inputs(self) -> list:
        """The Dask collections."""
        return [*(each for piece in self.pieces for each in piece.arrays), *(self.densities or ())]

    def plan(self, *more) -> Plan:
        """A plan of tasks on the shards and on other Dask collections."""
        return Plan(*self.inputs, *more)

    def looked_at(self, estimator, verbose: int = 0) -> Shards:
        """The shards with their lengths and labels, after every chunk was checked."""
        plan = self.plan()
        name = type(estimator).__name__
        keys = [plan.add("check", survey_of, self.form, name, *parts) for parts in self.references]
        (survey,) = computed(plan.delayed([plan.tree("check-join", joined_surveys, keys)]), verbose)
        return replace(self, survey=survey)

    def surveyed(self, estimator, verbose: int = 0) -> Shards:
        """The same with their classes, of which there are two at least."""
        found = self.looked_at(estimator, verbose)
        survey = found.known
        if not sum(survey.lengths):
            raise ValueError("Found array with 0 sample(s) in all chunks of X: give at least one row of each class")
        if not sum(survey.kept):
            raise ValueError("sample_weight is zero everywhere: at least one point must count")
        # Each label is listed once, which is no sign of quantities, of which scikit-learn would warn: so three times.
        classes, _ = class_numbers(np.tile(survey.labels, 3), estimator)
        form = replace(self.form, sparse=sparse.issparse(survey.first))  # distances need all points in one form
        return replace(found, form=form, classes=classes)

    def joined(self, more: Shards) -> Shards:
        """These shards and those that arrive after them; both were looked at."""
        survey = joined_surveys([self.known, more.known])
        return replace(self, pieces=self.pieces + more.pieces, survey=survey)

    def without(self, rows: NDArray, estimator, verbose: int = 0) -> Shards:
        """The shards without some rows of all. Those that stay are looked at again: the first row may be another."""
        of = np.searchsorted(np.cumsum(self.known.lengths), rows, side="right")
        pieces, end = [], 0
        for piece in self.pieces:
            start, end = end, end + piece.X.numblocks[0]
            gone = {int(k) - start: rows[of == k] - self.starts[k] for k in np.unique(of) if start <= k < end}
            pieces.append(piece.without(gone, self.known.lengths[start:end]) if gone else piece)
        return replace(self, pieces=tuple(pieces), densities=None).looked_at(estimator, verbose)

    def check_library(self, covariances: Sequence[Covariance]) -> None:
        """Refuse covariances that cannot be computed in the library of the points."""
        if self.known.library is not None:
            plan = self.plan()
            keys = [plan.add("library", library_of, self.form, covariances, *parts) for parts in self.references]
            computed(plan.delayed(keys))

    @property
    def known(self) -> Survey:
        """The survey of shards that were looked at."""
        assert self.survey is not None
        return self.survey

    @property
    def of_class(self) -> NDArray:
        """For each class the number of its rows, and their weight: shape (2, n_classes)."""
        assert self.classes is not None
        found = np.zeros((2, len(self.classes)))
        found[:, numbers_among(self.known.labels, self.classes)] = self.known.of_label
        return found

    @property
    def starts(self) -> NDArray:
        """Row of X at which each shard begins."""
        return np.concatenate([[0], np.cumsum(self.known.lengths)[:-1]]).astype(int)

    @property
    def places(self) -> NDArray:
        """Place among all rows of positive weight at which each shard begins."""
        return np.concatenate([[0], np.cumsum(self.known.kept)[:-1]]).astype(int)


def _together(arrays: list[da.Array]) -> da.Array:
    return arrays[0] if len(arrays) == 1 else da.concatenate(arrays, allow_unknown_chunksizes=True)


def library_of(form: Form, covariances: Sequence[Covariance], number: int, X, *_) -> None:
    """Refuse covariances that cannot be computed in the library of a chunk."""
    X = form.points(X, number)
    for covariance in covariances:
        check_library(covariance, X)


def survey_of(form: Form, estimator: str, number: int, X, y, weights, densities=None) -> Survey:
    """Check a chunk, and look at it."""
    X = form.points(X, number)
    y = checked_labels(y, X, number, estimator)
    weights = checked_weights(weights, X, number)
    kept = np.ones(len(y), bool) if weights is None else weights > 0
    labels, codes = np.unique(y[kept], return_inverse=True)
    counted = [np.bincount(codes, w, len(labels)) for w in (None, None if weights is None else weights[kept])]
    empty = not X.shape[0]
    sizes = np.zeros(form.n_features) if empty else feature_sizes(X)
    first = None if empty else at_home(rows_of(X, slice(0, 1))).copy()
    library = str(Library.of(X)) if is_foreign(X) else None
    return Survey((len(y),), (int(kept.sum()),), labels, np.stack(counted).astype(float), sizes, first, library)


def joined_surveys(parts: Sequence[Survey]) -> Survey:
    """The survey of several chunks, in their order."""
    found = [part for part in parts if len(part.labels)] or [parts[0]]
    texts = {part.labels.dtype.kind in "US" for part in found}
    if len(texts) > 1:
        raise ValueError("y holds text in one chunk and numbers in another: write all labels as text, or none")
    labels, codes = np.unique(np.concatenate([part.labels for part in found]), return_inverse=True)
    counted = np.concatenate([part.of_label for part in found], axis=1)
    return Survey(
        lengths=sum((part.lengths for part in parts), ()),
        kept=sum((part.kept for part in parts), ()),
        labels=labels,
        of_label=np.stack([np.bincount(codes, each, len(labels)) for each in counted]),
        sizes=np.max([part.sizes for part in parts], axis=0),
        first=next((part.first for part in parts if part.first is not None), None),
        library=next((part.library for part in parts if part.library is not None), None),
    )


def read(form: Form, classes: NDArray, number: int, X, y, weights) -> Shard:
    """A shard in memory, from its chunks or their recipes."""
    X = form.points(X, number)
    y = checked_labels(y, X, number, "")
    weights = checked_weights(weights, X, number)
    rows = np.arange(len(y))
    if weights is not None:
        rows = np.flatnonzero(weights)
        X, y, weights = (X, y, weights) if len(rows) == len(y) else (rows_of(X, rows), y[rows], weights[rows])
        weights = weights.astype(precision(X))
    codes = numbers_among(y, classes) if len(y) else np.zeros(0, int)
    return Shard(Labelled(X, codes, len(classes), weights), rows)

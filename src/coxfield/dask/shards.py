"""Shards: the chunks of training points, where they are, and what a first look at all of them tells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from coxfield.dask.checks import Form, checked_labels, checked_weights
from coxfield.dask.plan import Plan, computed
from coxfield.dask.recipes import references
from coxfield.engine.store import Labelled
from coxfield.estimators.labels import class_numbers, numbers_among
from coxfield.kernels.units import feature_sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import dask.array as da
    from numpy.typing import NDArray


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

    @cached_property
    def references(self) -> list[tuple]:
        """For each shard its number, and keys or recipes of points, labels and weights."""
        X, y = references(self.X), references(self.y)
        weights = [None] * len(X) if self.weights is None else references(self.weights)
        return list(zip(range(len(X)), X, y, weights, strict=True))

    def __len__(self) -> int:
        return self.X.numblocks[0]

    @property
    def inputs(self) -> list[da.Array]:
        """The Dask arrays."""
        return [self.X, self.y] if self.weights is None else [self.X, self.y, self.weights]

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


def survey_of(form: Form, estimator: str, number: int, X, y, weights) -> Survey:
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

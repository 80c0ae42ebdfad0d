"""From planned scores to the Dask arrays that users see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.dask.plan import Plan
    from coxfield.engine.decision import Scores


@dataclass(frozen=True)
class Results:
    """Scores of blocks of rows, or what takes their place, not computed yet."""

    plan: Plan
    keys: Sequence
    """Of the scores of each block."""
    lengths: Sequence
    """Rows of each block, NaN if nobody knows."""
    classes: NDArray
    precision: np.dtype
    here: bool = False
    """Whether to compute at once."""

    def labels(self) -> Any:
        """Most probable classes."""
        return self.array("predict", partial(_labels, self.classes), (), self.classes.dtype)

    def probabilities(self) -> Any:
        """Probabilities of the classes."""
        return self._per_class("predict-proba", _probabilities)

    def log_probabilities(self) -> Any:
        """Log probabilities of the classes."""
        return self._per_class("predict-log-proba", _log_probabilities)

    def class_scores(self) -> Any:
        """Scores of the classes."""
        return self._per_class("class-scores", _values)

    def decision_function(self) -> Any:
        """Score of class 1 minus score of class 0 for two classes; scores up to a constant per row for more."""
        if len(self.classes) > 2:
            return self._per_class("decision-function", _relative)
        return self.array("decision-function", partial(_difference, self.precision), (), self.precision)

    def _per_class(self, step: str, function: Callable) -> Any:
        return self.array(step, partial(function, self.precision), (len(self.classes),), self.precision)

    def array(self, step: str, function: Callable, tail: tuple, dtype) -> Any:
        """An array whose chunks are the function of one result each, with rows of the shape `tail`."""
        array = self.plan.array(step, function, self.keys, self.lengths, tail=tail, dtype=dtype)
        return array.compute() if self.here else array


def returned(precision: np.dtype, values: NDArray) -> NDArray:
    """Numbers in the precision of the training points, and none of them infinite."""
    largest = np.finfo(precision).max
    return np.clip(values, -largest, largest).astype(precision, copy=False)


def _labels(classes: NDArray, scores: Scores) -> NDArray:
    return classes[scores.decisions]


def _values(precision: np.dtype, scores: Scores) -> NDArray:
    return returned(precision, scores.values)


def _relative(precision: np.dtype, scores: Scores) -> NDArray:
    return returned(precision, scores.relative)


def _difference(precision: np.dtype, scores: Scores) -> NDArray:
    found = _relative(precision, scores)
    return found[:, 1] - found[:, 0]


def _log_probabilities(precision: np.dtype, scores: Scores) -> NDArray:
    return returned(precision, scores.log_probabilities)


def _probabilities(precision: np.dtype, scores: Scores) -> NDArray:
    return np.exp(_log_probabilities(precision, scores))

"""Length scale by transductive cross validation of the labelled points: the paper's training of the label field.

For each fold the labels of some labelled points are hidden. The most probable labels of these and of all unlabelled
points are found, and the hidden labels are compared with them. Nothing is proven here: only the labelling that is
returned to users gets a certificate. The sparse graph to start from is the same at all length scales, and each length
scale has the same couplings in all folds. So the graph and the couplings are computed once.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed

from coxfield import threads
from coxfield.field.edges import nearest_pairs
from coxfield.field.solve import find
from coxfield.kernels.protocol import bind_precisely
from coxfield.selection.folds import folds, hide
from coxfield.selection.grid import AllPoints
from coxfield.selection.loo import SelectionPath

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.field.edges import Pairs
    from coxfield.kernels.per_class import PerClass
    from coxfield.kernels.protocol import Covariance

NEIGHBOURS = 16  # in the sparse graph: they are searched once for hundreds of cuts, and more neighbours save cuts


@dataclass(frozen=True)
class Task:
    """Labels to start from, with some of the known ones hidden."""

    visible: NDArray
    """Class numbers, -1 for rows to label."""
    hidden: NDArray
    """Rows whose labels are known and hidden."""
    pairs: Pairs
    """The sparse graph on the rows to label."""

    @classmethod
    def of(cls, pairs: Pairs, codes: NDArray, hidden: NDArray) -> Task:
        """Hide some rows; `pairs` is the sparse graph on all rows."""
        visible = hide(codes, hidden)
        return cls(visible, hidden, pairs.among(np.flatnonzero(visible < 0)))

    def labels(self, everyone: AllPoints, solver: dict[str, Any]) -> NDArray:
        """Labels of all rows: the visible labels, and the most probable labels of the other rows.

        No search starts from a labelling found before, because that labelling would contain hidden labels. If several
        labellings are equally good, as at short length scales, the solver keeps the one it starts from.
        """
        field = everyone.field(self.visible)
        labels = self.visible.copy()
        labels[field.nodes] = find(field, self.pairs, **solver).labels
        return labels


def cv_path(
    X,
    codes: NDArray,
    covariances: PerClass[Covariance],
    mean: NDArray,
    factors: NDArray,
    *,
    n_folds: int = 10,
    tolerance: float = 1e-9,
    max_rounds: int = 100,
    done: Callable[[int], None] | None = None,
) -> SelectionPath:
    """Cross-validated error for each factor of the length scales.

    A length scale is trivial if it gives every unlabelled point to one class when no label is hidden. A trivial length
    scale is not a candidate, and its folds are not solved, unless all length scales are trivial.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
    codes : array of shape (n,)
        Class numbers, -1 for unlabelled rows.
    covariances : PerClass of Covariance
    mean : array of shape (n_classes,)
    factors : array
    n_folds : int
        At most; never more than there are labelled rows.
    tolerance, max_rounds
        As for `map_labels`.
    done : callable, optional
        Called after each labelling; over the path, `1 + number of folds` times the number of factors.

    Returns
    -------
    SelectionPath
        With columns "factor", "cv_error" and "trivial".
    """
    pairs = nearest_pairs(bind_precisely(covariances.distinct[0], X), NEIGHBOURS)
    everything = Task.of(pairs, codes, np.zeros(0, int))
    tasks = tuple(Task.of(pairs, codes, rows) for rows in folds(codes, n_folds))
    solver = {"tolerance": tolerance, "max_rounds": max_rounds}
    tried = _Tried(X, codes, covariances, mean, everything, tasks, solver)
    tell = done or (lambda count: None)
    rows = tried.path(factors.tolist(), tell, even_trivial=False)
    if all(row["trivial"] for row in rows):
        rows = tried.path(factors.tolist(), tell, even_trivial=True)
    return SelectionPath.of(rows, ("cv_error",))


@dataclass(frozen=True)
class _Tried:
    """What all length scales share."""

    X: Any
    codes: NDArray
    covariances: PerClass[Covariance]
    mean: NDArray
    everything: Task
    """No label is hidden."""
    tasks: tuple[Task, ...]
    """One per fold."""
    solver: dict[str, Any]

    def path(self, factors: list[float], tell: Callable[[int], None], *, even_trivial: bool) -> list[dict]:
        """The error of each factor: one after the other, or on a cluster if jobs of joblib go there."""
        if not threads.elsewhere():
            return [self.judged(factor, tell, even_trivial=even_trivial) for factor in factors]
        jobs = (delayed(_cross_validate)(self, factor, even_trivial) for factor in factors)
        rows = []
        for row in Parallel(return_as="generator")(jobs):
            tell(1 + len(self.tasks))
            rows.append(row)
        return rows

    def judged(self, factor: float, tell: Callable[[int], None], *, even_trivial: bool) -> dict[str, float]:
        """The error of one factor."""
        everyone = AllPoints.at(self.X, self.covariances, self.mean, factor)
        with threads.alone() if everyone.held else nullcontext():
            labels = self.everything.labels(everyone, self.solver)
            trivial = len(np.unique(labels[self.codes < 0])) < 2
            tell(1)
            if trivial and not even_trivial:
                tell(len(self.tasks))
                return {"factor": factor, "cv_error": np.nan, "trivial": trivial}
            wrong = 0
            for task in self.tasks:
                found = task.labels(everyone, self.solver)[task.hidden]
                wrong += int((found != self.codes[task.hidden]).sum())
                tell(1)
            return {"factor": factor, "cv_error": wrong / np.sum(self.codes >= 0), "trivial": trivial}


def _cross_validate(tried: _Tried, factor: float, even_trivial: bool) -> dict[str, float]:
    """One length scale, as a job; its name is what the dashboard of a cluster shows."""
    return tried.judged(factor, lambda count: None, even_trivial=even_trivial)

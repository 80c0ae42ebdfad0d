"""Length scale by cross validation of the labelled points, transductively: the paper's training of the label field.

For each fold the labels of some labelled points are hidden, the most probable labels of those and of all unlabelled
points are found, and the hidden ones compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.field import LabelField, map_labels
from coxfield.kernels.covariance import rescale_length

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class CvPath:
    """What cross validation said of each length scale tried; every array is over the path, longest first."""

    factor: NDArray
    """What the kernels' length scales were multiplied by."""
    cv_error: NDArray
    """Share of the hidden labels that were not recovered; NaN where it was not worth asking."""
    trivial: NDArray
    """Whether, with all labels known, every unlabelled point goes to one class. Such a length scale is no candidate,
    and its folds are not solved, unless all are such."""

    def best(self) -> int:
        """Index of the winner: least error, and the longest length scale among equals.

        With few labels the errors are coarse, and ties the rule. From long to short the field goes from one class
        taking all, through labellings that follow the gaps in the data, to every point on its own; the longest of the
        good ones that are not trivial is the smoothest.
        """
        return int(np.nanargmin(self.cv_error))  # the first of equals

    def columns(self, length_scale: float) -> dict[str, NDArray]:
        """The path as named columns."""
        return {
            "length_scale": self.factor * length_scale,
            "cv_error": self.cv_error,
            "trivial": self.trivial,
            "chosen": np.arange(len(self.factor)) == self.best(),
        }


def folds(codes: NDArray, n_folds: int) -> list[NDArray]:
    """Rows to hide together: labelled rows dealt out class by class, so that every fold has its share of each.

    No randomness: the same data give the same folds.
    """
    labelled = np.flatnonzero(codes >= 0)
    by_class = labelled[np.argsort(codes[labelled], kind="stable")]
    count = min(n_folds, len(labelled))
    return [by_class[fold::count] for fold in range(count)]


def cv_path(
    X, codes: NDArray, kernels: list, mean: NDArray, factors: NDArray, *, n_folds: int = 10, done=None, **solver
) -> CvPath:
    """Cross-validated error for each factor of the length scales.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
    codes : array of shape (n,)
        Class numbers, -1 for unlabelled rows.
    kernels : list of kernels, one a class
    mean : array of shape (n_classes,)
    factors : array
        Longest first.
    n_folds : int
        At most; never more than there are labelled rows.
    done : callable, optional
        Told of each labelling found; over the path, `1 + number of folds` times the number of factors.
    **solver
        Passed on to `map_labels`.
    """
    hidden = folds(codes, n_folds)
    scaled = [[rescale_length(kernel, factor) for kernel in kernels] for factor in factors]
    labels = []
    for one in scaled:
        labels.append(relabel(X, codes, one, mean, **solver))
        if done is not None:
            done(1)
    trivial = np.array([len(np.unique(found[codes < 0])) < 2 for found in labels])
    errors = np.full(len(factors), np.nan)
    for k in range(len(factors)):
        if not trivial[k] or trivial.all():
            errors[k] = cv_error(X, codes, scaled[k], mean, hidden, done, **solver)
        elif done is not None:
            done(len(hidden))
    return CvPath(np.asarray(factors, dtype=float), errors, trivial)


def cv_error(X, codes: NDArray, kernels, mean, hidden: list[NDArray], done=None, **solver) -> float:
    """Share of the labels, hidden fold by fold, that the most probable labelling does not recover.

    No fold starts from a labelling found before: it would know the hidden labels, and where several labellings are as
    good, as at short length scales, the solver keeps what it starts from.
    """
    wrong = 0
    for rows in hidden:
        visible = codes.copy()
        visible[rows] = -1
        labels = relabel(X, visible, kernels, mean, **solver)
        wrong += int((labels[rows] != codes[rows]).sum())
        if done is not None:
            done(1)
    return wrong / sum(map(len, hidden))


def relabel(X, codes: NDArray, kernels, mean: NDArray, **solver) -> NDArray:
    """Labels of all rows: the known ones, and the most probable ones of the others."""
    field = LabelField.from_points(X, kernels, codes, mean=mean, n_classes=len(kernels), n_jobs=solver.get("n_jobs"))
    labels = codes.copy()
    labels[field.nodes] = map_labels(field, **solver).labels
    return labels

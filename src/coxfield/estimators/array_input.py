"""Arrays of torch, CuPy and other libraries as input of `LGCPClassifier`, if scikit-learn dispatches to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coxfield.arrays.leave_one_out import loo_log_sums
from coxfield.arrays.library import Library, is_dispatched, is_foreign, to_numpy
from coxfield.arrays.model import ArrayModel
from coxfield.arrays.profiles import check_covariance
from coxfield.arrays.spread import class_distance
from coxfield.engine.store import Labelled
from coxfield.estimators import labels, validation
from coxfield.kernels.per_class import class_values
from coxfield.kernels.recognise import recognise
from coxfield.progress import stages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.arrays.decision import ArrayScores
    from coxfield.kernels.per_class import PerClass
    from coxfield.selection.loo import Search

NUMPY = "NumPy arrays"
SELECTIONS = ("loo_error", "loo_log_loss", None)  # that can be computed in all libraries


class ArrayInput:
    """Fit and predict in the library of the points and on their device. Other methods say that they need NumPy."""

    if TYPE_CHECKING:
        selection: str | None
        kernel: Any
        mean: Any
        verbose: int
        classes_: Any
        mean_: Any
        kernel_: Any
        selection_path_: Any
        loo_error_: float
        _given_kernels: Any
        _drawn: Any
        _search: Any
        _along: Any
        _forget_fit: Any

        def __getstate__(self) -> dict: ...

        def __setstate__(self, state: dict) -> None: ...

    _arrays: ArrayModel | None = None
    """The labelled points, if they are not those of NumPy."""

    def _fit_arrays(self, X, y, sample_weight) -> Self:
        """`fit` of arrays that scikit-learn dispatches."""
        library = Library.of(X)
        if self.selection not in SELECTIONS:
            allowed = ", ".join(map(repr, SELECTIONS))
            raise ValueError(
                f"selection={self.selection!r} needs NumPy arrays, but X holds {library}: give selection as one of "
                f"{allowed}, or convert X to NumPy"
            )
        X, y = validation.check_labelled_points(self, _detached(X), y, dtype=library.floats)
        weights = validation.check_weights(sample_weight, X, library.precision(X))
        if weights is not None:
            kept = weights > 0
            X, y, weights = _rows(X, np.flatnonzero(kept), library), y[kept], weights[kept]
        classes, codes = labels.class_numbers(y, self)
        self._choose_arrays(Labelled(X, codes, len(classes), weights), classes, library)
        return self

    def _choose_arrays(self, labelled: Labelled, classes: NDArray, library: Library) -> None:
        """Choose the covariance and hold the points."""
        self._forget_fit()
        self.classes_, self.mean_ = classes, class_values(self.mean, classes, "mean", default=0.0)
        kernels = self._given_kernels()
        for kernel in kernels.distinct:
            check_covariance(recognise(kernel, labelled.X.shape[1]), library)
        with stages("fit", None, self.verbose), np.errstate(all="ignore"):
            if self.selection is not None:
                kernels = self._select_arrays(labelled, kernels, library)
            covariances = kernels.map(lambda kernel: recognise(kernel, labelled.X.shape[1]))
            self._arrays = ArrayModel.of(labelled, covariances)
        self.kernel_ = validation.shown_kernel(kernels, self.kernel, classes)
        self.mean_ = library.array(self.mean_)
        self.classes_ = _held_classes(classes, library)

    def _select_arrays(self, labelled: Labelled, kernels: PerClass, library: Library) -> PerClass:
        """The kernels with the length scale, and the signal variance if it is free, that leave-one-out prefers."""
        chosen_from = self._drawn(labelled)
        if chosen_from is not None:
            rows = np.flatnonzero(chosen_from)
            weights = None if labelled.weights is None else labelled.weights[rows]
            labelled = Labelled(_rows(labelled.X, rows, library), labelled.y[rows], labelled.n_classes, weights)
        search: Search = replace(self._search(str(self.selection)), log_sums=loo_log_sums)
        return self._along(search, class_distance(labelled, kernels), labelled, kernels)

    def _array_scores(self, X) -> ArrayScores:
        """Scores of new points, after checking them."""
        assert self._arrays is not None
        held = self._arrays.labelled.X
        X = validation.check_points(self, _detached(X), dtype=held.dtype, reset=False)
        return self._arrays.scores(X, to_numpy(self.mean_))

    def _loo_array_scores(self) -> ArrayScores:
        assert self._arrays is not None
        labelled = self._arrays.labelled
        return self._arrays.scores(labelled.X, to_numpy(self.mean_), np.arange(len(labelled)))

    def _check_library(self, X, method: str) -> None:
        """Refuse points of another library or on another device than those of `fit`."""
        check_is_fitted(self)
        fitted = None if self._arrays is None else self._arrays.library
        given = Library.of(X) if is_dispatched(X) else None
        if given == fitted:
            return
        off = is_foreign(X) and given is None
        raise ValueError(
            f"Inputs passed to {type(self).__name__}.{method}() must use the same namespace and the same device as "
            f"those passed to fit(), which were {fitted or NUMPY}; got "
            + (
                "arrays without dispatch: use sklearn.config_context(array_api_dispatch=True)"
                if off
                else f"{given or NUMPY}: convert them, or fit again"
            )
        )

    def _returned(self, values):
        if self._arrays is None:
            return super()._returned(values)  # type: ignore[misc]
        return self._arrays.library.finite(values, self._arrays.labelled.X.dtype)

    def _exponentials(self, logs):
        return super()._exponentials(logs) if self._arrays is None else self._arrays.library.xp.exp(logs)  # type: ignore[misc]

    def _named(self, codes):
        """The classes of some class numbers: in the library of the points, unless they are text."""
        if self._arrays is None:
            return super()._named(codes)  # type: ignore[misc]
        if isinstance(self.classes_, np.ndarray):
            return self.classes_[to_numpy(codes)]
        return self._arrays.library.xp.take(self.classes_, codes)

    def _need_numpy(self, method: str, X=None) -> None:
        """Refuse arrays of other libraries in a method that can use only those of NumPy."""
        library = Library.of(X) if is_dispatched(X) else None if self._arrays is None else self._arrays.library
        if library is not None:
            raise TypeError(f"{method} needs NumPy arrays, but the points are {library}: fit on NumPy arrays")

    def _in_numpy(self) -> Self:
        """The same classifier on NumPy arrays; this one, if it is."""
        if self._arrays is None:
            return self
        shown = {name: value for name, value in self.__getstate__().items() if name != "_arrays"}
        state = {name: to_numpy(value) if is_foreign(value) else value for name, value in shown.items()}
        labelled = self._arrays.labelled
        held = {"X_fit_": to_numpy(labelled.X), "y_fit_": labelled.y, "_weights": labelled.weights}
        found = type(self).__new__(type(self))
        found.__setstate__({**state, **held})
        return found


def _held_classes(classes: NDArray, library: Library) -> Any:
    """Classes that are numbers, in the library; others stay as they are."""
    if classes.dtype.kind == "u" and classes.max() <= np.iinfo(np.int64).max:
        classes = classes.astype(np.int64)  # torch can hardly use other unsigned integers than bytes
    return library.array(classes) if classes.dtype.kind in "bif" else classes


def _detached(X) -> Any:
    """A tensor without its history, which would be kept for derivatives."""
    return X.detach() if hasattr(X, "detach") else X


def _rows(X, rows: NDArray, library: Library) -> Any:
    return library.xp.take(X, library.array(rows), axis=0)

"""Labels, probabilities and decision functions from scores, for all classifiers of the package."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from coxfield.arrays.class_sums import loo_log_sums
from coxfield.arrays.library import Library, is_dispatched, is_foreign, to_numpy
from coxfield.arrays.model import ArrayModel
from coxfield.arrays.points import check_covariance
from coxfield.arrays.store import class_distance
from coxfield.engine.class_sums import ClassSums, class_sums
from coxfield.engine.decision import Scores, prior_terms
from coxfield.engine.store import Labelled
from coxfield.estimators import validation
from coxfield.kernels.per_class import class_values
from coxfield.kernels.recognise import recognise
from coxfield.progress import progress, stages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.arrays.store import ArrayScores
    from coxfield.engine.store import Store
    from coxfield.kernels.per_class import PerClass
    from coxfield.kernels.protocol import Covariance
    from coxfield.selection.loo import Search


# Scores of many points, part by part, so that somebody can be told how far they are.


ROWS = 8192  # points of a part: several tiles for each thread


def scores_in_parts(
    store: Store, covariances: PerClass[Covariance], mean: NDArray, X, leave_out: NDArray | None = None
) -> Scores:
    """Scores of each row of X from labelled points.

    Parameters
    ----------
    store : Store
        The labelled points.
    covariances : PerClass of Covariance
    mean : array of shape (n_classes,)
    X : array or CSR array of shape (n, d)
    leave_out : array of shape (n,), optional
        For each row of X, the row of the store that must not count.
    """
    found = []
    with progress(f"scores of {X.shape[0]} points", X.shape[0], None, "float32 points take less time") as done:
        for part in gen_batches(X.shape[0], ROWS):
            some, left = X[part], None if leave_out is None else leave_out[part]
            found.append(Scores(prior_terms(covariances, some, mean), class_sums(store, some, left)))
            done(part.stop - part.start)
    return found[0] if len(found) == 1 else _joined(found)


def _joined(parts: list[Scores]) -> Scores:
    sums = ClassSums(*(np.concatenate([getattr(part.sums, name) for part in parts]) for name in ("values", "logs")))
    priors = [np.broadcast_to(part.prior, part.sums.values.shape) for part in parts]  # one row may stand for all
    return Scores(np.concatenate(priors), sums)


# Arrays of torch, CuPy and other libraries as input of `LGCPClassifier`, if scikit-learn dispatches to them.


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

    columns_: Any = None
    """How the columns of a table become points; None if all are numbers."""
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
        classes, codes = validation.class_numbers(y, self)
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


class ScoredClassifier(ClassifierMixin):
    """A classifier whose scores are `Scores`; a subclass has `classes_` and the first two methods below.

    The next ones are replaced by classifiers that take arrays of other libraries than NumPy.
    """

    classes_: Any

    def _scores(self, X) -> Any:
        """Scores of new points, after checking them: `Scores`, `StatedScores` or `ArrayScores`."""
        raise NotImplementedError

    @property
    def _precision(self):
        """The dtype of the returned numbers."""
        raise NotImplementedError

    def _returned(self, values):
        largest = np.finfo(self._precision).max
        return np.clip(values, -largest, largest).astype(self._precision, copy=False)

    def _exponentials(self, logs):
        return np.exp(logs)

    def _named(self, codes):
        """The classes of some class numbers."""
        return self.classes_[codes]

    def _check_library(self, X, method: str) -> None:
        """Refuse points of another array library than those of `fit`, for classifiers that take several libraries."""

    def class_scores(self, X) -> NDArray:
        """The score of each class. The probabilities are the softmax of the scores.

        For log Gaussian Cox processes it is F of eq. activationFunction: mean plus half the variance plus class sum.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        self._check_library(X, "class_scores")
        return self._returned(self._scores(X).values)

    def decision_function(self, X) -> NDArray:
        """Score of class 1 minus score of class 0 for two classes; scores up to a constant per row for more.

        Unlike `class_scores`, it omits the terms that all classes share, so that small differences keep their digits.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        self._check_library(X, "decision_function")
        scores = self._returned(self._scores(X).relative)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_log_proba(self, X) -> NDArray:
        """Log probabilities of the classes; see `predict_proba`."""
        self._check_library(X, "predict_log_proba")
        return self._returned(self._scores(X).log_probabilities)

    def predict_proba(self, X) -> NDArray:
        """Probabilities of the classes, eq. predictiveDistribution.

        Far from all data they tend to the probabilities without data, such as softmax(mu + C(0)/2).

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        self._check_library(X, "predict_proba")
        return self._exponentials(self.predict_log_proba(X))

    def predict(self, X) -> NDArray:
        """Most probable class of each row; if every covariance underflows, the class of the nearest neighbour.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        self._check_library(X, "predict")
        return self._named(self._scores(X).decisions)

    def predict_with_proba(self, X) -> tuple[NDArray, NDArray]:
        """Labels and probabilities together, in one pass over the training points.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            As by `predict`.
        probabilities : ndarray of shape (n_samples, n_classes)
            As by `predict_proba`.
        """
        self._check_library(X, "predict_with_proba")
        scores = self._scores(X)
        probabilities = self._exponentials(self._returned(scores.log_probabilities))
        return self._named(scores.decisions), probabilities

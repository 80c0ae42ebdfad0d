"""`ParzenClassifier`: a kernel density estimate per class, weighted by the share of the class in the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.gaussian_process.kernels import RBF

from coxfield.baselines.base import Baseline, candidates, check_length_scale
from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import Labelled
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from coxfield.progress import progress
from coxfield.selection.grid import finer_factors
from coxfield.selection.loo import CRITERIA, SelectionPath, loo_log_sums, work_units

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ParzenClassifier(Baseline):
    r"""Classify by kernel density estimates, one per class: eq. kdePredictive.

    The probability of class i at x* is the sum of Gaussian kernels over its points, divided by the sum over all points:

    .. math:: p(y^* = i) = \frac{N_i \hat p_i(x^*)}{\sum_j N_j \hat p_j(x^*)},
              \qquad \hat p_i(x^*) \propto \frac{1}{N_i} \sum_{x \in \text{class } i} e^{-|x^* - x|^2 / 2 l^2}.

    `LGCPClassifier` with a shared covariance and zero means takes the softmax of the same sums. So both make the same
    decisions, but their probabilities differ. Sums that underflow are computed as logarithms, more precisely than in
    `sklearn.neighbors.KernelDensity`.

    Parameters
    ----------
    length_scale : float, default=None
        Standard deviation l of the kernels. None chooses it by the leave-one-out 0-1 loss, in closed form, from the
        length scales that `LGCPClassifier` tries. This is the paper's rule, and with it both classifiers have the same
        errors. Ties are broken by the leave-one-out log loss.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_prior_ : ndarray of shape (n_classes,)
        Share of each class in the training points.
    length_scale_ : float
        The length scale in use.
    selection_path_ : dict of arrays
        What was tried: "length_scale", "loo_error", "loo_log_loss" and "chosen". Absent if `length_scale` was given.
    X_fit_, y_fit_ : the training points, and their class numbers

    Examples
    --------
    >>> from coxfield.baselines import ParzenClassifier
    >>> from coxfield.datasets import load_synth
    >>> synth = load_synth()
    >>> clf = ParzenClassifier().fit(synth.X_train, synth.y_train)
    >>> bool(clf.score(synth.X_test, synth.y_test) > 0.9)
    True
    """

    def __init__(self, length_scale: float | None = None) -> None:
        self.length_scale = length_scale

    def fit(self, X, y) -> Self:
        """Store the points, and choose the length scale if it is not given.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        self.X_fit_, self.y_fit_ = self._labelled_points(X, y)
        self.class_prior_ = np.bincount(self.y_fit_) / len(self.y_fit_)
        self.length_scale_ = self._select() if self.length_scale is None else check_length_scale(self.length_scale)
        return self

    def _select(self) -> float:
        """The length scale of least leave-one-out error: 24 of them, and six more around the best."""
        coarse = self._losses(candidates(self.X_fit_, None))
        path = coarse.joined(self._losses(finer_factors(coarse.chosen("factor"), [RBF(1.0)], bounded=False)))
        self.selection_path_ = path.table()
        return path.chosen("factor")

    def _labelled(self) -> Labelled:
        return Labelled(self.X_fit_, self.y_fit_, len(self.classes_))

    def _covariances(self, length_scale: float = 1.0) -> PerClass:
        return PerClass.shared_by(recognise(RBF(length_scale), self.X_fit_.shape[1]), len(self.classes_))

    def _losses(self, length_scales: NDArray) -> SelectionPath:
        """The leave-one-out error and log loss of each length scale."""
        own = np.arange(len(self.y_fit_))
        # If a class has only one point, leave-one-out cannot predict the class of that point.
        accompanied = np.bincount(self.y_fit_)[self.y_fit_] > 1
        rows = []
        labelled, covariances = self._labelled(), self._covariances()
        total = work_units(labelled, covariances, len(length_scales))
        with progress(f"leave-one-out, {len(length_scales)} length scales", total, None) as done:
            all_logs = loo_log_sums(labelled, covariances, length_scales, done)
            for length_scale, logs in zip(length_scales.tolist(), all_logs, strict=True):
                losses = -log_softmax(logs, axis=1)[own, self.y_fit_][accompanied]
                error = float(np.mean(logs.argmax(axis=1) != self.y_fit_))
                loss = float(losses.mean()) if losses.size else 0.0
                rows.append({"factor": length_scale, "loo_error": error, "loo_log_loss": loss})
        return SelectionPath.of(rows, CRITERIA["loo_error"])

    def predict_log_proba(self, X) -> NDArray:
        """Log probabilities of the classes; see `predict_proba`."""
        X = self._queries(X)
        store = self._labelled().under(self._covariances(self.length_scale_))
        return log_softmax(class_sums(store, X).logs, axis=1)

    def predict_proba(self, X) -> NDArray:
        """Probabilities of the classes. Far from all data, that of the class of the nearest point tends to one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.exp(self.predict_log_proba(X))

    def _decisions(self, X) -> NDArray:
        return self.predict_log_proba(X)

"""`PermanentalClassifier`: classification with permanental Cox processes, the appendix of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from coxfield.engine.class_sums import ClassSums, arrange
from coxfield.engine.decision import decide, log_probabilities, relative_scores
from coxfield.kernels import covariance
from coxfield.permanents.cyclic import check_cycles
from coxfield.permanents.exact import LARGEST
from coxfield.permanents.kernels import ProductKernel, local_kernel
from coxfield.permanents.leave_one_out import loo_path
from coxfield.permanents.ratios import fit_class, log_ratios
from coxfield.permanents.window import check_window
from coxfield.selection.length_scale_path import candidate_factors, finer_factors
from coxfield.validation import by_class, class_kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

METHODS = ("auto", "exact", "cyclic", "importance")
DENSITIES = ("product", "janossy")
SELECTIONS = ("loo_error", "loo_log_loss", None)
SMALL = 15  # points of a class that "auto" still takes exactly: a tenth of a second
FEW = 1000  # points in all, up to which matrices are small: threads gain little, and on a busy machine cost a lot


class PermanentalClassifier(ClassifierMixin, BaseEstimator):
    r"""Classify by permanental Cox processes, one a class: ratios of alpha-permanents.

    The probability of class i at x* is proportional to

    .. math:: \frac{\operatorname{Per}_\alpha(\hat C[x^{(i)} \cup x^*])}{\operatorname{Per}_\alpha(\hat C[x^{(i)}])},
              \qquad \operatorname{Per}_\alpha(A) = \sum_\sigma \alpha^{\#\text{cycles}} \prod_j A_{j\sigma(j)},

    with C-hat = 2 C, or the covariance C-tilde of Janossy densities on a window. The ratio is alpha C-hat(x*, x*) +
    a' Q a with a the covariances of x* to the n points of the class: fitting computes Q, and a prediction costs O(n^2).

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, or mapping class -> kernel, default=None
        Covariance function C, never negative, shared or one a class; None stands for `RBF(1.0)`. A common signal
        variance cancels in the product form. In the Janossy form it matters, and with None it makes the expected number
        of points in the window the number seen.
    alpha : float or mapping class -> float, default=1.0
        Positive; k/2 for an intensity that is the sum of k squared Gaussian processes. Small alpha trusts neighbours,
        large alpha the uniform distribution.
    method : {"auto", "exact", "cyclic", "importance"}, default="auto"
        How Q is computed for a class of n points. "exact" sweeps over subsets in O(2^n n^2), up to 20 points. "cyclic"
        approximates by cycles of up to four points in O(n^3). "importance" draws permutations in O(n_samples n^2), as
        a check for tens of points. "auto" is exact up to 15 points and cyclic beyond.
    density : {"product", "janossy"}, default="product"
        Whether the points are some of many (the paper's limit of strong thinning) or all there are in the window.
    window : array-like of shape (n_features, 2), default=None
        The box of the Janossy form as rows (low, high); None for the box of the training points, widened by a gap. At
        most three features; length scales too short for the quadrature are refused.
    cycles : {2, 3, 4}, default=4
        Longest cycle of the cyclic approximation.
    selection : {"loo_error", "loo_log_loss", None}, default="loo_error"
        "loo_error" multiplies the length scales by the factor of least leave-one-out 0-1 loss, ties broken by log loss,
        "loo_log_loss" by the factor of least log loss, both with the cyclic approximation in O(n^3) for each factor.
        None takes the kernel as it is. Parameters with bounds "fixed" stay.
    length_scales : array-like, default=None
        Factors tried, as in `LGCPClassifier`.
    n_samples : int, default=2000
        Permutations that "importance" draws for each class.
    random_state : int, RandomState instance or None, default=None
        For "importance".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernel_ : kernel, or dict class -> kernel
    alpha_ : ndarray of shape (n_classes,)
    methods_ : list of str
        Method used for each class.
    effective_samples_ : list of float or None
        For each class, how many permutations of the right distribution the sampled ones are worth; None for the other
        methods. A few say that the estimate is not to be trusted.
    window_ : ndarray of shape (n_features, 2)
        Absent in the product form.
    selection_path_ : dict of arrays
        What was tried, as in `LGCPClassifier`. Absent with `selection=None`.
    X_fit_, y_fit_ : the training points, and their class numbers
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    Examples
    --------
    >>> from coxfield import PermanentalClassifier
    >>> from coxfield.datasets import load_synth
    >>> synth = load_synth()
    >>> clf = PermanentalClassifier().fit(synth.X_train, synth.y_train)
    >>> bool(clf.score(synth.X_test, synth.y_test) > 0.9)
    True
    """

    def __init__(
        self,
        kernel=None,
        *,
        alpha=1.0,
        method="auto",
        density="product",
        window=None,
        cycles=4,
        selection="loo_error",
        length_scales=None,
        n_samples=2000,
        random_state=None,
    ):
        self.kernel = kernel
        self.alpha = alpha
        self.method = method
        self.density = density
        self.window = window
        self.cycles = cycles
        self.selection = selection
        self.length_scales = length_scales
        self.n_samples = n_samples
        self.random_state = random_state

    def fit(self, X, y):
        """Choose the length scale, and compute what predictions need of each class.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        self._check_options()
        for earlier in ("selection_path_", "window_"):
            self.__dict__.pop(earlier, None)
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, self.y_fit_ = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "PermanentalClassifier needs at least two classes, and y holds only one class: "
                f"{self.classes_.tolist()[0]!r}"
            )
        self.X_fit_ = X
        self.alpha_ = by_class(self.alpha, self.classes_, "alpha", default=1.0)
        if not (self.alpha_ > 0).all():
            raise ValueError(f"alpha must be positive, got {self.alpha!r}")
        if self.density == "janossy":
            self.window_ = check_window(self.window, X)
        kernels = class_kernels(self._default_kernel() if self.kernel is None else self.kernel, self.classes_)
        with threadpool_limits(1 if len(X) <= FEW else None):
            if self.selection is not None:
                kernels = self._select(kernels)
            self._fit_classes(kernels)
        shared = not isinstance(self.kernel, Mapping)
        self.kernel_ = kernels[0] if shared else dict(zip(self.classes_.tolist(), kernels, strict=True))
        return self

    def _check_options(self) -> None:
        for name, allowed in (("method", METHODS), ("density", DENSITIES), ("selection", SELECTIONS)):
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}")
        if self.density == "product" and self.window is not None:
            raise ValueError('window is only for density="janossy"; product densities have none')
        check_cycles(self.cycles)

    def _default_kernel(self):
        if self.density == "product":
            return RBF(1.0)
        # The processes expect alpha_i C-hat(0) = 2 alpha_i C(0) points for each unit of volume.
        volume = np.prod(self.window_[:, 1] - self.window_[:, 0])
        return covariance.rescale_variance(RBF(1.0), len(self.y_fit_) / (2 * volume * self.alpha_.sum()))

    def _covariances(self, kernels) -> list | None:
        """C-hat or C-tilde for each class, or None when the window has too few nodes for one of them."""
        X = self.X_fit_.astype(float)
        found: dict = {}
        for kernel in kernels:
            if id(kernel) not in found:
                whole = ProductKernel(covariance.recognise(kernel, X.shape[1]))
                found[id(kernel)] = whole if self.density == "product" else local_kernel(whole, self.window_, X)
        return None if None in found.values() else [found[id(kernel)] for kernel in kernels]

    def _select(self, kernels) -> list:
        """The kernels with the length scale that leave-one-out prefers."""
        distinct = list({id(kernel): kernel for kernel in kernels}.values())
        bounded = self.kernel is not None
        described = {id(kernel): covariance.recognise(kernel, self.X_fit_.shape[1]) for kernel in distinct}
        training = arrange(self.X_fit_.astype(float), self.y_fit_, [described[id(kernel)] for kernel in kernels])

        def rescaled(factor: float) -> list:
            scaled = {id(kernel): covariance.rescale_length(kernel, factor) for kernel in distinct}
            return [scaled[id(kernel)] for kernel in kernels]

        def tried(factors: NDArray):
            X, y, alpha = training.X, training.y, self.alpha_
            return loo_path(X, y, alpha, self.cycles, factors, lambda factor: self._covariances(rescaled(factor)))

        path = tried(candidate_factors(training, distinct, self.length_scales, bounded=bounded))
        if not path.factor.size:
            raise ValueError(self._unresolved())
        if self.length_scales is None:
            path = path.joined(tried(finer_factors(path.factor[path.best(self.selection)], distinct, bounded=bounded)))
        best = path.best(self.selection)
        self.selection_path_ = path.columns(training, best)
        return rescaled(path.factor[best])

    def _unresolved(self) -> str:
        return (
            f"the covariance is too short for Janossy densities on the window {self.window_.tolist()}: lengthen its "
            'length scale, narrow the window, or give density="product"'
        )

    def _fit_classes(self, kernels) -> None:
        covariances = self._covariances(kernels)
        if covariances is None:
            raise ValueError(self._unresolved())
        rng = check_random_state(self.random_state)
        X = self.X_fit_.astype(float)
        self._processes = [
            fit_class(
                covariances[c],
                X[self.y_fit_ == c],
                float(self.alpha_[c]),
                self._method(c),
                cycles=self.cycles,
                n_samples=self.n_samples,
                rng=rng,
            )
            for c in range(len(self.classes_))
        ]
        self.methods_ = [process.method for process in self._processes]
        self.effective_samples_ = [process.effective_samples for process in self._processes]

    def _method(self, c: int) -> str:
        size = int(np.sum(self.y_fit_ == c))
        if self.method == "exact" and size > LARGEST:
            raise ValueError(
                f"class {self.classes_.tolist()[c]!r} has {size} points, too many for method='exact', which takes up "
                f"to {LARGEST}: give method='auto' or 'cyclic'"
            )
        if self.method == "auto":
            return "exact" if size <= SMALL else "cyclic"
        return self.method

    def _ratios(self, X) -> tuple[NDArray, ClassSums]:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=self.X_fit_.dtype, reset=False)
        return log_ratios(self._processes, X.astype(float))

    def class_scores(self, X):
        """Log ratio of alpha-permanents for each class: the log probabilities up to a constant a row.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        prior, sums = self._ratios(X)
        return (prior + sums.values).astype(self.X_fit_.dtype, copy=False)

    def predict_log_proba(self, X):
        """Log probabilities of the classes; see `predict_proba`."""
        return log_probabilities(*self._ratios(X)).astype(self.X_fit_.dtype, copy=False)

    def predict_proba(self, X):
        """Probabilities of the classes; far from all data, in proportion to alpha_i C_i(0).

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X):
        """Log odds of class 1 for two classes; `class_scores` up to a constant a row for more.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        scores = relative_scores(*self._ratios(X)).astype(self.X_fit_.dtype, copy=False)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """Most probable class of each row; where every covariance underflows, the nearest neighbour's.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = decide(*self._ratios(X))
        return self.classes_[codes]

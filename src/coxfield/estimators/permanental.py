"""`PermanentalClassifier`: classification with permanental Cox processes, the appendix of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.validation import check_is_fitted

from coxfield import threads
from coxfield.engine.store import Labelled
from coxfield.estimators.scored import ScoredClassifier
from coxfield.estimators.validation import (
    check_labelled_points,
    check_option,
    check_points,
    class_numbers,
    shown_kernel,
)
from coxfield.kernels.protocol import class_kernels, class_values, rows_named
from coxfield.kernels.radial import recognise
from coxfield.kernels.sklearn_tree import rescale_length, rescale_variance
from coxfield.permanents.cyclic import SMALLEST, check_cycles
from coxfield.permanents.permanent import LARGEST
from coxfield.permanents.ratios import ProductKernel, check_window, fit_class, local_kernel, log_ratios, loo_path
from coxfield.progress import stages
from coxfield.selection.grid import candidate_factors, class_distance, finer_factors, length_scale_of
from coxfield.selection.loo import CRITERIA
from coxfield.utils.numbers import generator

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from coxfield.engine.class_sums import Scores
    from coxfield.kernels.protocol import PerClass
    from coxfield.utils.numbers import RandomState

METHODS = ("auto", "exact", "cyclic", "importance")
DENSITIES = ("product", "janossy")
SELECTIONS = ("loo_error", "loo_log_loss", None)
SMALL = 15  # "auto" is exact for classes of up to so many points: a tenth of a second
FEW = 1000  # up to so many points in total, matrices are small: threads help little, and cost much on a busy machine


class PermanentalClassifier(ScoredClassifier, BaseEstimator):
    r"""Classify by permanental Cox processes, one per class: ratios of alpha-permanents.

    The probability of class i at x* is proportional to

    .. math:: \frac{\operatorname{Per}_\alpha(\hat C[x^{(i)} \cup x^*])}{\operatorname{Per}_\alpha(\hat C[x^{(i)}])},
              \qquad \operatorname{Per}_\alpha(A) = \sum_\sigma \alpha^{\#\text{cycles}} \prod_j A_{j\sigma(j)},

    where C-hat = 2 C, or the covariance C-tilde of Janossy densities on a window. The ratio is
    alpha C-hat(x*, x*) + a' Q a, where a are the covariances of x* with the n points of the class. Fitting computes Q,
    and a prediction costs O(n^2).

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, or mapping class -> kernel, default=None
        Covariance function C, never negative, shared or one per class. None means `RBF(1.0)`. A common signal variance
        cancels in the product form. In the Janossy form it matters: with None it is set so that the expected number of
        points in the window is the number of training points.
    alpha : float or mapping class -> float, default=1.0
        Positive; k/2 for an intensity that is the sum of k squared Gaussian processes. With small alpha near points
        decide; with large alpha probabilities become uniform. The cyclic approximation, and so the selection, needs
        1e-12 or more.
    method : {"auto", "exact", "cyclic", "importance"}, default="auto"
        How Q is computed for a class of n points. "exact" sweeps over subsets in O(2^n n^2), up to 20 points. "cyclic"
        approximates by cycles of up to four points in O(n^3). "importance" draws permutations in O(n_samples n^2), as
        a check for tens of points. "auto" is exact up to 15 points and cyclic for more.
    density : {"product", "janossy"}, default="product"
        Whether the points are a few of many (the paper's limit of strong thinning) or all points in the window.
    window : array-like of shape (n_features, 2), default=None
        The box of the Janossy form as rows (low, high). None for the box of the training points, widened by a gap. At
        most three features. Length scales that are too short for the quadrature are refused.
    cycles : {2, 3, 4}, default=4
        Longest cycle of the cyclic approximation.
    selection : {"loo_error", "loo_log_loss", None}, default="loo_error"
        "loo_error" multiplies the length scales by the factor with the least leave-one-out 0-1 loss, and breaks ties by
        log loss. "loo_log_loss" uses the factor with the least log loss. Both use the cyclic approximation, in O(n^3)
        per factor. None uses the kernel unchanged. Parameters with bounds "fixed" stay.
    length_scales : array-like, default=None
        Factors tried, as in `LGCPClassifier`.
    n_samples : int, default=2000
        Permutations that "importance" draws for each class.
    random_state : int, RandomState instance, Generator or None, default=None
        For "importance".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernel_ : kernel, or dict class -> kernel
    alpha_ : ndarray of shape (n_classes,)
    methods_ : list of str
        Method used for each class.
    effective_samples_ : list of float or None
        For each class, the number of exact draws that would be as good as the sampled permutations; None for the other
        methods. If it is small, the estimate cannot be trusted.
    window_ : ndarray of shape (n_features, 2)
        Absent in the product form.
    selection_path_ : dict of arrays
        What was tried, as in `LGCPClassifier`. Absent with `selection=None`.
    X_fit_, y_fit_ : the training points, and their class numbers
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

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
        kernel: Any = None,
        *,
        alpha: Any = 1.0,
        method: str = "auto",
        density: str = "product",
        window: Any = None,
        cycles: int = 4,
        selection: Any = "loo_error",
        length_scales: ArrayLike | None = None,
        n_samples: int = 2000,
        random_state: RandomState = None,
    ) -> None:
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

    def fit(self, X, y) -> Self:
        """Choose the length scale, and compute Q of each class.

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
        X, y = check_labelled_points(self, X, y, dtype=[np.float64, np.float32])
        self.classes_, self.y_fit_ = class_numbers(y, self)
        self.X_fit_ = X
        self.alpha_ = class_values(self.alpha, self.classes_, "alpha", default=1.0)
        self._check_alpha()
        if self.density == "janossy":
            self.window_ = check_window(self.window, X)
        kernels = class_kernels(self._default_kernel() if self.kernel is None else self.kernel, self.classes_)
        for kernel in kernels.distinct:
            recognise(kernel, X.shape[1])  # refuses wrong kernels before any work is done
        n_threads = 1 if len(X) <= FEW else threads.count()
        with stages("fit", None, None), threads.limit(n_threads), rows_named({"training points": X}):
            if self.selection is not None:
                kernels = self._select(kernels)
            self._fit_classes(kernels)
        self.kernel_ = shown_kernel(kernels, self.kernel, self.classes_)
        return self

    def _check_options(self) -> None:
        for name, allowed in (("method", METHODS), ("density", DENSITIES), ("selection", SELECTIONS)):
            check_option(name, getattr(self, name), allowed)
        if self.density == "product" and self.window is not None:
            raise ValueError('window is only for density="janossy"; product densities have none')
        check_cycles(self.cycles)

    def _check_alpha(self) -> None:
        if not (self.alpha_ > 0).all():
            raise ValueError(f"alpha must be positive, got {self.alpha!r}")
        least, cyclic = self.alpha_.min(), "cyclic" in map(self._method, range(len(self.classes_)))
        if least < SMALLEST and self.cycles > 2 and (cyclic or self.selection is not None):
            raise ValueError(
                f"alpha={least:g} is too small for the approximation by {self.cycles} cycles: give at least "
                f"{SMALLEST:g}, or cycles=2, or for few points method='exact' with selection=None"
            )

    def _default_kernel(self):
        if self.density == "product":
            return RBF(1.0)
        # The processes have alpha_i C-hat(0) = 2 alpha_i C(0) expected points per unit of volume.
        volume, largest = np.prod(self.window_[:, 1] - self.window_[:, 0]), self.alpha_.max()
        expected = len(self.y_fit_) / (2 * volume * (self.alpha_ / largest).sum())
        return rescale_variance(RBF(1.0), expected / largest)

    def _covariances(self, kernels: PerClass) -> PerClass | None:
        """C-hat or C-tilde for each class, or None if the quadrature of the window is too coarse for one of them."""
        X = self.X_fit_.astype(float)
        whole = kernels.map(lambda kernel: ProductKernel(recognise(kernel, X.shape[1])))
        if self.density == "product":
            return whole
        local = whole.map(lambda product: local_kernel(product, self.window_, X))
        return None if None in local.distinct else local

    def _select(self, kernels: PerClass) -> PerClass:
        """The kernels with the length scale that leave-one-out prefers."""
        labelled = Labelled(self.X_fit_.astype(float), self.y_fit_, len(self.classes_))
        distinct, bounded = kernels.distinct, self.kernel is not None

        def rescaled(factor: float) -> PerClass:
            return kernels.map(lambda kernel: rescale_length(kernel, factor))

        def tried(factors: NDArray):
            X, y, alpha, criteria = labelled.X, labelled.y, self.alpha_, CRITERIA[self.selection]
            at = lambda factor: self._covariances(rescaled(factor))  # noqa: E731
            return loo_path(X, y, alpha, self.cycles, factors, at, criteria)

        distance = class_distance(labelled, kernels)
        path = tried(candidate_factors(distinct, distance, self.length_scales, bounded=bounded))
        if not len(path):
            raise ValueError(self._unresolved())
        if self.length_scales is None:
            finer = tried(finer_factors(path.chosen("factor"), distinct, bounded=bounded))
            path = path.joined(finer) if len(finer) else path
        self.selection_path_ = path.table(length_scale_of(distinct))
        return rescaled(path.chosen("factor"))

    def _unresolved(self) -> str:
        return (
            f"the covariance is too short for Janossy densities on the window {self.window_.tolist()}: give a longer "
            'length scale, a smaller window, or density="product"'
        )

    def _fit_classes(self, kernels: PerClass) -> None:
        covariances = self._covariances(kernels)
        if covariances is None:
            raise ValueError(self._unresolved())
        rng = generator(self.random_state)
        X = self.X_fit_.astype(float)
        options: dict[str, Any] = {"cycles": self.cycles, "n_samples": self.n_samples, "rng": rng}
        self._processes = [
            fit_class(covariance, X[self.y_fit_ == c], float(self.alpha_[c]), self._method(c), **options)
            for c, covariance in enumerate(covariances)
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

    @property
    def _precision(self):
        return self.X_fit_.dtype

    def _scores(self, X) -> Scores:
        """Log ratios of alpha-permanents for each class: the log probabilities up to a constant per row."""
        check_is_fitted(self)
        X = check_points(self, X, dtype=self.X_fit_.dtype, reset=False)
        with rows_named({"queries": X, "training points": self.X_fit_}):
            return log_ratios(self._processes, X.astype(float))

"""`LGCPClassifier`: the supervised log Gaussian Cox process classifier, section 'Supervised learning'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from coxfield.engine.class_sums import ClassSums, arrange, class_sums
from coxfield.engine.decision import decide, log_probabilities, relative_scores
from coxfield.kernels import covariance
from coxfield.selection.learning.pseudo_likelihood import learn
from coxfield.selection.learning.start import Start, starting_points
from coxfield.selection.length_scale_path import candidate_factors
from coxfield.selection.search import Search
from coxfield.validation import by_class, check_weights, class_kernels, like

if TYPE_CHECKING:
    from numpy.typing import NDArray

SELECTIONS = ("loo_error", "loo_log_loss", "pseudo_likelihood", None)
UNBOUNDED = (1e-300, 1e300)  # the prior bounds the default kernel, in units of the data


class LGCPClassifier(ClassifierMixin, BaseEstimator):
    r"""Classify by log Gaussian Cox processes, one a class: a probabilistic classifier without training.

    The probability of class i at x* is softmax(F)_i with

    .. math:: F_i = \mu_i + C_i(x^*, x^*)/2 + \sum_{x \in \text{class } i} C_i(x^*, x)

    (eqs predictiveDistribution and activationFunction). Fitting stores the points and chooses the length scale by
    closed-form leave-one-out; a prediction costs O(n) kernel values.

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, or mapping class -> kernel, default=None
        Covariance function, shared or one a class. None stands for `RBF(1.0)`, whose length scale and signal variance
        are both set by the selection. Products of constants with one `RBF`, `Matern` or `RationalQuadratic` take the
        fast path, isotropic or with a length scale a feature; other kernels are called block by block. When parameters
        are learned, classes that are given the same object share them, and others have their own.
    mean : float or mapping class -> float, default=0.0
        Means mu_i of the Gaussian processes: a prior bias between classes. Classes that a mapping leaves out have mean
        0.
    selection : {"loo_error", "loo_log_loss", "pseudo_likelihood", None}, default="loo_error"
        "loo_error" multiplies the length scales by the factor with the least leave-one-out 0-1 loss, ties broken by log
        loss (the paper's rule); with the default kernel it also sets the signal variance by leave-one-out log
        loss. "loo_log_loss" chooses length scale and signal variance together by log loss. "pseudo_likelihood" learns
        all that is free in the kernel, a length scale a feature included, the signal variance and the class means, by
        maximising the sum of leave-one-out log probabilities under a weak prior, within the bounds of the kernel:
        choose it when the probabilities matter (`docs/probabilities.md`). None takes the kernel as it is. Parameters
        with bounds "fixed" stay.
    length_scales : array-like, default=None
        Factors tried for the length scales; with the default kernel, the length scales themselves. None for 24 of them,
        from twice the root mean square distance downwards, each shorter by sqrt(2), and six more around the best. With
        "pseudo_likelihood" this is where learning looks for its start.
    learn_mean : bool, default=True
        Whether "pseudo_likelihood" learns the means too, starting from `mean`. Say False when they stand for something
        that the training points do not show, such as class shares that will be different.
    n_jobs : int, default=None
        Threads; None for as many as a matrix product takes, -1 for all processors.
    verbose : int, default=0
        Above 0, show the progress of the selection.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernel_ : kernel, or dict class -> kernel
        The covariance in use.
    mean_ : ndarray of shape (n_classes,)
    selection_path_ : dict of arrays
        What was tried, ready for a data frame: "length_scale" (the factor, for kernels with more than one), "variance"
        (the factor), "loo_error", "loo_log_loss" and "chosen". Absent with `selection=None`. With "pseudo_likelihood"
        what was chosen is where learning started; absent if the kernel was not recognised, for then it starts as it is.
        `coxfield.plotting.plot_selection_path` draws it.
    learning_path_ : dict of arrays
        With `selection="pseudo_likelihood"`, the steps of the learning: "step", "log_pseudo_likelihood" and
        "log_posterior", which is what grows.
    loo_error_ : float
        Leave-one-out 0-1 loss of the fitted model.
    X_fit_, y_fit_ : the training points, and their class numbers
        Without the rows of weight zero.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    Examples
    --------
    >>> from coxfield import LGCPClassifier
    >>> from coxfield.datasets import load_synth
    >>> synth = load_synth()
    >>> clf = LGCPClassifier().fit(synth.X_train, synth.y_train)
    >>> bool(clf.score(synth.X_test, synth.y_test) > 0.9)
    True
    """

    def __init__(
        self,
        kernel=None,
        *,
        mean=0.0,
        selection="loo_error",
        length_scales=None,
        learn_mean=True,
        n_jobs=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.mean = mean
        self.selection = selection
        self.length_scales = length_scales
        self.learn_mean = learn_mean
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X, y, sample_weight=None):
        """Store the labelled points and choose the parameters of the covariance.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            float32 is computed in float32, anything else in float64.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            A point of weight w counts as w points; rows of weight zero are as good as absent.

        Returns
        -------
        self
        """
        if self.selection not in SELECTIONS:
            raise ValueError(f"selection must be one of {', '.join(map(repr, SELECTIONS))}; got {self.selection!r}")
        for earlier in ("selection_path_", "learning_path_"):
            self.__dict__.pop(earlier, None)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_classification_targets(y)
        weights = check_weights(sample_weight, X)
        if weights is not None:
            kept = weights > 0
            X, y, weights = X[kept], y[kept], weights[kept]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"LGCPClassifier needs at least two classes, and y holds only one class: {self.classes_.tolist()[0]!r}"
            )
        self.mean_ = by_class(self.mean, self.classes_, "mean", default=0.0)
        kernels = self._given_kernels()
        self.X_fit_, self.y_fit_ = X, codes
        self._loo_error: float | None = None
        self._arrange(X, codes, weights, kernels)
        if self.selection is not None:
            kernels = self._learn(kernels) if self.selection == "pseudo_likelihood" else self._select(kernels)
            self._arrange(X, codes, weights, kernels)
        shared = not isinstance(self.kernel, Mapping)
        self.kernel_ = kernels[0] if shared else dict(zip(self.classes_.tolist(), kernels, strict=True))
        return self

    def __getstate__(self):
        # The arranged points repeat X_fit_ in another order: they are left out of files and made again.
        state = dict(super().__getstate__())
        if "_training" in state:
            state["_weights"] = state.pop("_training").weights
        return state

    def __setstate__(self, state):
        state = dict(state)
        fitted, weights = "_weights" in state, state.pop("_weights", None)
        super().__setstate__(state)
        if fitted:
            self._arrange(self.X_fit_, self.y_fit_, weights, class_kernels(self.kernel_, self.classes_))

    def _given_kernels(self) -> list:
        """One kernel a class; classes that share one have the same object."""
        learning = self.selection == "pseudo_likelihood"
        if self.kernel is None:
            return class_kernels(RBF(1.0, UNBOUNDED) if learning else RBF(1.0), self.classes_)
        kernels = class_kernels(self.kernel, self.classes_)
        if learning and isinstance(self.kernel, Mapping):
            # Kernels that are equal now may be learned to differ, unless they are one.
            return [self.kernel[label] for label in self.classes_.tolist()]
        return kernels

    def _arrange(self, X, codes, weights, kernels) -> None:
        described = {id(kernel): covariance.recognise(kernel, X.shape[1]) for kernel in kernels}
        self._training = arrange(X, codes, [described[id(kernel)] for kernel in kernels], weights)

    def _search(self, criterion: str) -> Search:
        set_variance = self.kernel is None or criterion == "loo_log_loss"
        bounded = self.kernel is not None
        return Search(self.mean_, criterion, self.length_scales, bounded, set_variance, self.n_jobs, self.verbose)

    def _select(self, kernels) -> list:
        """The kernels with the length scale, and where it is free the signal variance, that leave-one-out prefers."""
        distinct = list({id(kernel): kernel for kernel in kernels}.values())
        search = self._search(self.selection)
        factors = candidate_factors(self._training, distinct, self.length_scales, bounded=search.bounded)
        path = search.path(self._training, distinct, factors)
        best = path.best(self.selection)
        chosen = {id(kernel): covariance.rescale(kernel, path.factor[best], path.variance[best]) for kernel in distinct}
        self.selection_path_ = path.columns(self._training, best)
        self._loo_error = float(path.loo_error[best])
        return [chosen[id(kernel)] for kernel in kernels]

    def _learn(self, kernels) -> list:
        """The kernels with all that is free in them learned by pseudo-likelihood; the means are learned too."""
        starts = [Start(kernels, {})]
        if all(group.covariance.recognised for group in self._training.groups):
            starts = starting_points(self._training, kernels, self._search("loo_log_loss"))
        options = {"learn_mean": self.learn_mean, "n_jobs": self.n_jobs, "verbose": self.verbose}
        learned = [learn(self._training, start.kernels, self.mean_, **options) for start in starts]
        best = int(np.argmax([end.path["log_posterior"][-1] for end in learned]))
        if starts[best].columns:
            self.selection_path_ = starts[best].columns
        self.mean_, self.learning_path_ = learned[best].mean, learned[best].path
        return learned[best].kernels

    def _sums(self, X) -> tuple[NDArray, ClassSums]:
        """Prior terms and class sums of new points."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=self.X_fit_.dtype, reset=False)
        X = like(X, self.X_fit_)
        return self._training.prior(X, self.mean_), class_sums(self._training, X, n_jobs=self.n_jobs)

    def _loo_sums(self) -> tuple[NDArray, ClassSums]:
        check_is_fitted(self)
        left_out = np.arange(len(self.y_fit_))
        sums = class_sums(self._training, self.X_fit_, leave_out=left_out, n_jobs=self.n_jobs)
        return self._training.prior(self.X_fit_, self.mean_), sums

    def class_scores(self, X):
        """F of eq. activationFunction: mean, half the variance and the class sum, for each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        prior, sums = self._sums(X)
        return (prior + sums.values).astype(self.X_fit_.dtype, copy=False)

    def predict_log_proba(self, X):
        """Log probabilities of the classes; see `predict_proba`."""
        return log_probabilities(*self._sums(X)).astype(self.X_fit_.dtype, copy=False)

    def predict_proba(self, X):
        """Probabilities of the classes, eq. predictiveDistribution; far from all data, softmax(mu + C(0)/2).

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X):
        """F of class 1 minus F of class 0 for two classes; F up to a constant a row for more.

        Unlike `class_scores`, without the terms that all classes share, so that small differences keep their digits.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        scores = relative_scores(*self._sums(X)).astype(self.X_fit_.dtype, copy=False)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """Most probable class of each row; where every kernel value underflows, the nearest neighbour's.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = decide(*self._sums(X))
        return self.classes_[codes]

    def loo_class_scores(self):
        """`class_scores` of each training point from all the others, in closed form.

        A point is left out with all its weight: otherwise a point of weight 2 would be predicted by its own copy, and
        the selection would settle on the shortest length scale.
        """
        prior, sums = self._loo_sums()
        return (prior + sums.values).astype(self.X_fit_.dtype, copy=False)

    def loo_predict_proba(self):
        """`predict_proba` of each training point from all the others, in closed form."""
        return np.exp(log_probabilities(*self._loo_sums())).astype(self.X_fit_.dtype, copy=False)

    def loo_predict(self):
        """`predict` for each training point from all the others, in closed form."""
        codes = decide(*self._loo_sums())
        return self.classes_[codes]

    @property
    def loo_error_(self) -> float:
        """Leave-one-out 0-1 loss; computed when first asked for if no selection has."""
        check_is_fitted(self)
        if self._loo_error is None:
            wrong = decide(*self._loo_sums()) != self.y_fit_
            self._loo_error = float(np.average(wrong, weights=self._training.weights))
        return self._loo_error

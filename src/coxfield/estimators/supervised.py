"""`LGCPClassifier`: the supervised log Gaussian Cox process classifier, section 'Supervised learning'."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.validation import check_is_fitted, validate_data

from coxfield import threads
from coxfield.engine.class_sums import class_sums
from coxfield.engine.decision import Scores, prior_terms
from coxfield.engine.store import Labelled, store_distributions, store_labels
from coxfield.estimators.scored import ScoredClassifier
from coxfield.estimators.validation import check_option, check_weights, class_numbers, like, shown_kernel
from coxfield.kernels.per_class import PerClass, class_kernels, class_values
from coxfield.kernels.recognise import recognise
from coxfield.kernels.sklearn_tree import rescale
from coxfield.selection.grid import candidate_factors, class_spread, length_scale_of
from coxfield.selection.learning.pseudo_likelihood import learn
from coxfield.selection.learning.start import starting_points
from coxfield.selection.loo import Search

if TYPE_CHECKING:
    from numpy.typing import NDArray

SELECTIONS = ("loo_error", "loo_log_loss", "pseudo_likelihood", None)
UNBOUNDED = (1e-300, 1e300)  # the prior limits the default kernel instead, in units of the data
FITTED = ("selection_path_", "learning_path_", "loo_error_")  # attributes that only some fits set


class LGCPClassifier(ScoredClassifier, BaseEstimator):
    r"""Classify by log Gaussian Cox processes, one per class: a probabilistic classifier without training.

    The probability of class i at x* is softmax(F)_i with

    .. math:: F_i = \mu_i + C_i(x^*, x^*)/2 + \sum_{x \in \text{class } i} C_i(x^*, x)

    (eqs predictiveDistribution and activationFunction). Fitting stores the points and chooses the length scale by
    closed-form leave-one-out. A prediction costs O(n) kernel values.

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, or mapping class -> kernel, default=None
        Covariance function, shared or one per class. None means `RBF(1.0)`, and the selection sets both its length
        scale and its signal variance. Products of constants with one `RBF`, `Matern` or `RationalQuadratic` use the
        fast path, isotropic or with one length scale per feature. Other kernels are called block by block. If
        parameters are learned, classes that are given the same kernel object share them.
    mean : float or mapping class -> float, default=0.0
        Means mu_i of the Gaussian processes: a prior bias between classes. Classes that a mapping does not name have
        mean 0.
    selection : {"loo_error", "loo_log_loss", "pseudo_likelihood", None}, default="loo_error"
        "loo_error" multiplies the length scales by the factor with the least leave-one-out 0-1 loss, and breaks ties by
        log loss (the paper's rule). With the default kernel it also sets the signal variance by leave-one-out log loss.
        "loo_log_loss" chooses length scale and signal variance together by log loss.
        "pseudo_likelihood" learns the signal variance, the class means and all free parameters of the kernel, such as
        length scales per feature. It maximises the sum of leave-one-out log probabilities under a weak prior, within
        the bounds of the kernel. Choose it if the probabilities matter (`docs/probabilities.md`).
        None uses the kernel unchanged. Parameters with bounds "fixed" stay.
    length_scales : array-like, default=None
        Factors tried for the length scales; with the default kernel, the length scales themselves. None for 24 of them,
        from twice the root mean square distance downwards, each shorter by sqrt(2), and six more around the best. With
        "pseudo_likelihood" the start of learning is chosen among them.
    learn_mean : bool, default=True
        Whether "pseudo_likelihood" learns the means too, starting from `mean`. Give False if the means say something
        that the training points do not show, such as different class shares in new data.
    n_jobs : int, default=None
        Threads. None follows `joblib.parallel_config`; outside of it, None means as many threads as the BLAS uses for
        a matrix product. -1 means all processors.
    verbose : int, default=0
        Above 0, show the progress of the selection.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernel_ : kernel, or dict class -> kernel
        The covariance in use.
    mean_ : ndarray of shape (n_classes,)
    selection_path_ : dict of arrays
        What was tried, ready for a data frame: "length_scale" (the factor, if there are several length scales),
        "variance" (the factor), "loo_error", "loo_log_loss" and "chosen". Absent with `selection=None`. With
        "pseudo_likelihood" the chosen entry is the start of learning. Then it is absent if the kernel is not a product
        of constants with one stationary kernel, because learning starts from such a kernel unchanged.
        `coxfield.plotting.plot_selection_path` draws it.
    learning_path_ : dict of arrays
        With `selection="pseudo_likelihood"`, the steps of learning: "step", "log_pseudo_likelihood" and
        "log_posterior", which is maximised.
    loo_error_ : float
        Leave-one-out 0-1 loss of the fitted model, set by the selection. Absent with `selection=None`, because it needs
        a pass over all pairs; `np.mean(clf.loo_predict() != y)` computes it.
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
            float32 is computed in float32, all other types in float64.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            A point of weight w counts as w points. Rows of weight zero are dropped.

        Returns
        -------
        self
        """
        check_option("selection", self.selection, SELECTIONS)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        weights = check_weights(sample_weight, X)
        if weights is not None:
            kept = weights > 0
            X, y, weights = X[kept], y[kept], weights[kept]
        self.classes_, codes = class_numbers(y, self)
        labelled = Labelled(X, codes, len(self.classes_), weights)
        self.mean_ = class_values(self.mean, self.classes_, "mean", default=0.0)
        for earlier in FITTED:
            self.__dict__.pop(earlier, None)
        with threads.use(self.n_jobs):
            kernels = self._chosen(labelled, self._given_kernels())
            self._keep(X, codes, weights, kernels)
            if self.selection == "pseudo_likelihood":
                self.loo_error_ = float(np.average(self._loo_scores().decisions != codes, weights=weights))
        return self

    def _fit_distributions(self, X, distributions: NDArray, classes: NDArray):
        """Store points with a weight for every class (soft labels) under the unchanged kernel."""
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        self.classes_ = classes
        self.mean_ = class_values(self.mean, classes, "mean", default=0.0)
        self._keep(X, distributions.argmax(axis=1), distributions, self._given_kernels())
        return self

    def _keep(self, X, codes, weights, kernels: PerClass) -> None:
        """Hold the points under the chosen kernels."""
        self.X_fit_, self.y_fit_ = X, codes
        self.kernel_ = shown_kernel(kernels, self.kernel, self.classes_)
        self._arrange(weights, kernels)

    def _arrange(self, weights, kernels: PerClass) -> None:
        self._covariances = kernels.map(lambda kernel: recognise(kernel, self.X_fit_.shape[1]))
        self._weights = weights
        if weights is not None and weights.ndim == 2:
            self._store = store_distributions(self.X_fit_, weights, self._covariances)
        else:
            self._store = store_labels(self.X_fit_, self.y_fit_, self._covariances, weights)

    def __getstate__(self):
        # The arranged points repeat X_fit_ in another order. Files omit them; they are arranged again on loading.
        left_out = ("_store", "_covariances")
        return {name: value for name, value in super().__getstate__().items() if name not in left_out}

    def __setstate__(self, state):
        super().__setstate__(state)
        if "_weights" in state:
            self._arrange(self._weights, class_kernels(self.kernel_, self.classes_))

    def _given_kernels(self) -> PerClass:
        learning = self.selection == "pseudo_likelihood"
        kernel = self.kernel
        if kernel is None:
            kernel = RBF(1.0, UNBOUNDED) if learning else RBF(1.0)
        return class_kernels(kernel, self.classes_, by_object=learning)

    def _chosen(self, labelled: Labelled, kernels: PerClass) -> PerClass:
        """The kernels that the selection prefers."""
        for kernel in kernels.distinct:
            recognise(kernel, labelled.X.shape[1])  # refuses wrong kernels before any work is done
        if self.selection is None:
            return kernels
        return (
            self._learn(labelled, kernels) if self.selection == "pseudo_likelihood" else self._select(labelled, kernels)
        )

    def _search(self, criterion: str) -> Search:
        return Search(
            mean=self.mean_,
            criterion=criterion,
            bounded=self.kernel is not None,
            refine=self.length_scales is None,
            set_variance=self.kernel is None or criterion == "loo_log_loss",
            verbose=self.verbose,
        )

    def _select(self, labelled: Labelled, kernels: PerClass) -> PerClass:
        """The kernels with the length scale, and the signal variance if it is free, that leave-one-out prefers."""
        search, distinct = self._search(self.selection), kernels.distinct
        of_spread = class_spread(labelled, kernels)
        factors = candidate_factors(distinct, of_spread, self.length_scales, bounded=search.bounded)
        path = search.path(labelled, kernels, factors)
        self.selection_path_ = path.table(length_scale_of(distinct))
        self.loo_error_ = path.chosen("loo_error")
        return kernels.map(lambda kernel: rescale(kernel, path.chosen("factor"), path.chosen("variance")))

    def _learn(self, labelled: Labelled, kernels: PerClass) -> PerClass:
        """The kernels with their free parameters learned by pseudo-likelihood; the means are learned too."""
        starts = starting_points(labelled, kernels, self._search("loo_log_loss"), self.length_scales)
        options = {"learn_mean": self.learn_mean, "verbose": self.verbose}
        learned = [learn(labelled, start.kernels, self.mean_, **options) for start in starts]
        best = int(np.argmax([end.path["log_posterior"][-1] for end in learned]))
        if starts[best].table:
            self.selection_path_ = starts[best].table
        self.mean_, self.learning_path_ = learned[best].mean, learned[best].path
        return learned[best].kernels

    @property
    def _precision(self):
        return self.X_fit_.dtype

    def _scores(self, X) -> Scores:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=self.X_fit_.dtype, reset=False)
        return self._scores_of(like(X, self.X_fit_))

    def _scores_of(self, X, leave_out: NDArray | None = None) -> Scores:
        with threads.use(self.n_jobs):
            return Scores(prior_terms(self._covariances, X, self.mean_), class_sums(self._store, X, leave_out))

    def _loo_scores(self) -> Scores:
        check_is_fitted(self)
        return self._scores_of(self.X_fit_, np.arange(len(self.y_fit_)))

    def loo_class_scores(self):
        """`class_scores` of each training point from all the others, in closed form.

        A point is left out with all its weight. Otherwise a point of weight 2 would be predicted by its own copy, and
        the selection would choose the shortest length scale.
        """
        return self._returned(self._loo_scores().values)

    def loo_predict_proba(self):
        """`predict_proba` of each training point from all the others, in closed form."""
        return np.exp(self._returned(self._loo_scores().log_probabilities))

    def loo_predict(self):
        """`predict` for each training point from all the others, in closed form."""
        codes = self._loo_scores().decisions
        return self.classes_[codes]

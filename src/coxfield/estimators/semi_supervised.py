"""`SLGCPClassifier`: many points and few labels, by covariances of all points together or by the label field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from coxfield import threads
from coxfield.estimators.label_fields import FieldInference, check_draws
from coxfield.estimators.mixture_inference import MixtureInference, check_prior, check_shares
from coxfield.estimators.reasons import FewLabelsQuality
from coxfield.estimators.scored import ScoredClassifier
from coxfield.estimators.trivial import warn_if_trivial
from coxfield.estimators.validation import (
    check_option,
    check_points,
    check_weights,
    known_class_numbers,
    separate_labels,
)
from coxfield.kernels.protocol import class_values, rows_named
from coxfield.progress import stages
from coxfield.utils.numbers import check_folds, number_from_zero

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from coxfield.utils.numbers import RandomState

SELECTIONS = ("cv_error", None)
INFERENCES = ("auto", "mixture", "map", "marginals", "perturb_and_map")
FITTED = (  # attributes that only some fits set
    *("selection_path_", "kernel_", "classifier_"),
    *("result_", "energy_", "lower_bound_", "gap_", "certified_"),
    *("marginal_errors_", "r_hat_", "members_", "voices_", "_few_labels", "_prepared"),
    *("label_distributions_", "transduction_"),
)


class SLGCPClassifier(FieldInference, MixtureInference, FewLabelsQuality, ScoredClassifier, BaseEstimator):
    r"""Label the unlabelled points, from few labels and the shape that all points have together.

    By default all points shape the covariances: nearest neighbours make graphs, and heat that flows along a graph says
    how close two points are (`docs/few_labels.md`). Leave-one-out of the labels, in closed form, weighs these
    covariances. No graph is cut. One label per class is enough to start.

    With a kernel, or with another `inference`, it is the method of the paper. Given the positions of all points, the
    labels follow a Potts model whose weights are the covariance function (eq. explicitMRF). "map" finds the most
    probable labels of all unlabelled points together: exactly for two classes, by minimum cuts, and by alpha-expansion
    with a bound on the distance to the minimum for more. "marginals" gives each point a distribution over the classes.

    Parameters
    ----------
    kernel : None, "precomputed", "precomputed_distances", kernel, or mapping class -> kernel, default=None
        None learns covariances from all points. "precomputed" means that X is a graph: a symmetric matrix of
        affinities, not negative, 0 between points that are not tied, best sparse. With "precomputed_distances"
        the entries of X are distances between neighbours, and only stored entries count. A kernel of
        sklearn.gaussian_process.kernels without negative values, shared or one per class, is for the label
        field. The selection sets its length scale. For the label field None means `RBF(1.0)`, and the leave-
        one-out log loss sets its signal variance.
    mean : float or mapping class -> float, default=0.0
        Means mu_i of the Gaussian processes: a prior bias between classes.
    inference : {"auto", "mixture", "map", "marginals", "perturb_and_map"}, default="auto"
        "mixture" averages learned covariances of all points. "map" is the most probable labelling of the label field.
        "marginals" are the probabilities of the classes at each point, averaged over chains of Swendsen-Wang.
        "perturb_and_map" approximates them by the shares of independent draws. Each draw is the most probable labelling
        with perturbed unary terms. "auto" means "map" for a given kernel, and otherwise "mixture".
    selection : {"cv_error", None}, default="cv_error"
        For the label field. "cv_error" chooses a factor for the length scales by cross validation of the labelled
        points that uses all other points too (the paper's rule). The longest with the least error wins. Factors that
        give all unlabelled points to one class are excluded.
        "marginals" and "perturb_and_map" depend on the signal variance too. For them it chooses factors for both by the
        log loss of the marginals in cross validation. Factors at which one class takes nearly all points are excluded.
        Fixed variances stay. None uses the kernel unchanged. If every point is labelled, leave-one-out decides as in
        `LGCPClassifier`.
    length_scales : array-like, default=None
        For the label field: factors tried for the length scales; with the default kernel, the length scales themselves.
        None for 24 of them, from twice the root mean square distance downwards, each shorter by sqrt(2). For marginals,
        None keeps those at which the median point has between 1.5 and 64 neighbours. The number of neighbours of a
        point is the sum of its couplings divided by its strongest one.
    n_folds : int, default=10
        Folds of the cross validation; at most one per labelled point.
    categorical_features : "from_dtype", None, or names, places or a mask of columns, default="from_dtype"
        Columns that are categories, as for `LGCPClassifier`.
    classes : array-like, default=None
        Classes that there are, whether they have a label yet or not, for "mixture". Labels in y may name more. None
        means the classes of y, at least two of them. With classes given, `fit` needs no label at all: `suggest` says
        which to ask for, and `relabel` takes them. An empty list means that no class is known yet.
    class_prior : None, "balanced" or mapping class -> share, default=None
        Known shares of the classes among all points, for "mixture". They move the scores of each class by a constant,
        so that `label_distributions_` has about these means. Right shares help. Wrong ones do harm, so state only what
        you know; there is a warning if points and labels contradict them.
    missing_label : int, float, str or None, default=-1
        The mark of an unknown label in y, one value. None, NaN and NaT mean the same.
    tolerance : float, default=1e-9
        A gap between energy and lower bound of at most this share of the cost (see `MapResult`) counts as zero.
    n_draws : int, default=None
        Number of draws to average over. None for 800 from four chains together, or 100 for perturb-and-MAP.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the draws, and of `suggest`. Fits by "mixture" and "map" draw nothing.
    n_jobs : int, default=None
        Threads. None follows `joblib.parallel_config`; outside of it, None means as many threads as the BLAS uses for
        a matrix product. -1 means all processors.
    verbose : int, default=0
        Above 0, show the progress, and how long each step took.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    inference_ : str
        The inference that was used; "supervised" if all points are labelled and the covariances are learned.
    transduction_ : ndarray of shape (n_samples,)
        Label of every training point: the given label, or the label in the most probable labelling ("map"), or the
        class of the largest probability in `label_distributions_`.
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the classes at every training point, 1 for a given label. With "map" all entries are 0 or 1:
        they show the labelling, but not how certain it is.
    members_ : dict of arrays
        The covariances that speak, the loudest first: "covariance", "effective_rank", "without_mode_0" and "share".
        Only with "mixture", as is the next one.
    map_ : ndarray of shape (n_samples, 2)
        Two coordinates to draw each training point at, see `plotting.plot_few_labels`. Only with "mixture".
    voices_ : dict
        How loud each voice is: "average" over members, "mixture" of them, "labelled points alone", "minimum cut".
    marginal_errors_ : ndarray of shape (n_samples, n_classes)
        Standard errors of `label_distributions_` from the finite number of draws. Not with "map" or "mixture".
    r_hat_ : ndarray of shape (n_samples,)
        Split R-hat of the distribution of each point, the largest over the classes. It is near 1 if chains agree. If
        they do not, a `ChainsDisagreeWarning` is given. Only with "marginals".
    certified_ : ndarray of bool, shape (n_samples,)
        Whether the label is given, or proven to belong to a labelling of least energy. This attribute and the next four
        describe the labelling of "map" and exist only with it.
    energy_ : float
        Energy of the labelling, -log of its unnormalised probability.
    lower_bound_ : float
        No labelling has less energy than this.
    gap_ : float
        `energy_ - lower_bound_`.
    result_ : MapResult
        The full report of the solver.
    kernel_ : kernel, or dict class -> kernel
        The covariance of the label field.
    mean_ : ndarray of shape (n_classes,)
    selection_path_ : dict of arrays
        What was tried: "length_scale", "cv_error", "trivial" and "chosen". At a trivial length scale one class takes
        all unlabelled points; its error is NaN. For the other inferences: "length_scale", "variance" (the factor),
        "cv_log_loss", "cv_error", "trivial" and "chosen". Absent with `selection=None`.
    classifier_ : LGCPClassifier
        The classifier of new points, for the label field. A training point counts for each class with its
        weight in `label_distributions_`, which gives the expected score F. The exact prediction would be the
        mean of softmax(F) over the draws. The softmax of the mean F is cheaper. It is too certain if many
        points share one class but it is uncertain which. Its `contributions` say which points speak for a
        class. Its `predict_set` needs labels at all points, because labels that were found are no sample.

    Examples
    --------
    Two rings, ten labels:

    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield import SLGCPClassifier
    >>> from coxfield.datasets import make_circles
    >>> X, truth = make_circles(2, random_state=3)
    >>> y = np.where(np.arange(len(truth)) < 10, truth, -1)
    >>> clf = SLGCPClassifier().fit(X, y)
    >>> print(f"{np.sum(clf.transduction_ != truth)} of {len(X)} wrong by {clf.inference_}")
    0 of 300 wrong by mixture

    One label in twenty, and the most probable labelling of the label field:

    >>> y = np.where(np.arange(len(truth)) % 20 == 0, truth, -1)
    >>> clf = SLGCPClassifier(0.25 * RBF(1.0), selection=None).fit(X, y)
    >>> print(f"{np.sum(clf.transduction_ != truth)} of {len(X)} wrong, all certified: {clf.certified_.all()}")
    0 of 300 wrong, all certified: True

    One label on each ring, and marginals of the other points:

    >>> y = np.where(np.isin(np.arange(len(truth)), [0, 299]), truth, -1)
    >>> clf = SLGCPClassifier(0.5 * RBF(0.7), selection=None, inference="marginals", random_state=0).fit(X, y)
    >>> print(f"{np.sum(clf.transduction_ != truth)} of {len(X)} wrong")
    0 of 300 wrong
    """

    columns_: Any = None
    """How the columns of a table become points; None if all are numbers."""

    def __init__(
        self,
        kernel: Any = None,
        *,
        mean: Any = 0.0,
        inference: str = "auto",
        selection: str | None = "cv_error",
        length_scales: ArrayLike | None = None,
        n_folds: int = 10,
        categorical_features: Any = "from_dtype",
        classes: ArrayLike | None = None,
        class_prior: Any = None,
        missing_label: Any = -1,
        tolerance: float = 1e-9,
        n_draws: int | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.inference = inference
        self.selection = selection
        self.length_scales = length_scales
        self.n_folds = n_folds
        self.categorical_features = categorical_features
        self.classes = classes
        self.class_prior = class_prior
        self.missing_label = missing_label
        self.tolerance = tolerance
        self.n_draws = n_draws
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_graph
        tags.input_tags.allow_nan = tags.input_tags.categorical = not self._is_graph
        return tags

    def fit(self, X, y, sample_weight=None, *, prior=None) -> Self:
        """Label the unlabelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            A graph of shape (n_samples, n_samples) if it is precomputed.
        y : array-like of shape (n_samples,)
            Labels, with `missing_label` where they are unknown.
        sample_weight : array-like of shape (n_samples,), default=None
            How often a label counts, for "mixture". Weights of rows without a label do not matter. A label of weight
            0 counts as unknown.
        prior : array-like of shape (n_samples, n_classes), or table or mapping with a column per class, default=None
            A guess per row, for "mixture": probabilities of the classes, from an old model or a rule. It multiplies the
            probabilities, with a power between 0 and 2 that is learned from the labels; 1 if they cannot tell. A blank
            row has no guess. Columns of an array are in the order of `classes_`. New points have no guess.

        Returns
        -------
        self
        """
        self._check_options()
        for earlier in FITTED:
            self.__dict__.pop(earlier, None)
        X = check_points(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        codes, weights, prior = self._set_labels(y, X, sample_weight, prior)
        with stages("fit", None, self.verbose), threads.small_steps(self.n_jobs), rows_named({"points": X}):
            if self.inference_ == "mixture":
                self._prepared = self._preparation(X)
            self._fit_by_inference(X, codes, weights, prior)
        return self

    def relabel(self, y, sample_weight=None, *, prior=None) -> Self:
        """Take other labels for the same rows: what `fit(X, y)` does, in a small part of its time.

        `fit` keeps all that does not depend on labels, such as the graphs. Only with "mixture". If there are more
        classes than before and more than eleven, the graphs need more modes, which takes as long as `fit`.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels of the rows of `fit`, with `missing_label` where they are unknown. There may be new classes.
        sample_weight, prior
            As in `fit`. Those of `fit` are not kept.

        Returns
        -------
        self

        Examples
        --------
        Start without any label, and ask for three:

        >>> import numpy as np
        >>> from sklearn.datasets import make_blobs
        >>> from coxfield import SLGCPClassifier
        >>> X, truth = make_blobs(150, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
        >>> y = np.full(150, -1)
        >>> clf = SLGCPClassifier(classes=[], random_state=0).fit(X, y)
        >>> rows = clf.suggest(3)
        >>> y[rows] = truth[rows]
        >>> print(f"{np.mean(clf.relabel(y).transduction_ != truth):.0%} wrong")
        0% wrong
        """
        check_is_fitted(self)
        if not hasattr(self, "_prepared"):
            raise ValueError(
                f"relabel needs what inference='mixture' keeps, but this was fitted by {self.inference_!r}: fit again"
            )
        self._check_options()
        prepared = self._prepared
        codes, weights, prior = self._set_labels(y, prepared.X, sample_weight, prior)
        for earlier in FITTED:
            self.__dict__.pop(earlier, None)
        self._prepared = prepared
        with (
            stages("relabel", None, self.verbose),
            threads.small_steps(self.n_jobs),
            rows_named({"points": prepared.X}),
        ):
            self._fit_by_inference(prepared.X, codes, weights, prior)
        return self

    def score(self, X, y, sample_weight=None) -> float:
        """Accuracy at the rows of X whose label is known: rows of `missing_label` do not count.

        So `cross_val_score` with unknown labels in y scores the known ones. Rows without a label help each fit.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels, with `missing_label` where they are unknown.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        y, known = separate_labels(y, self.missing_label, X)
        if not known.any():
            raise ValueError(f"no label is known, so there is nothing to score: all are {self.missing_label!r}")
        rows = np.flatnonzero(known)
        weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return super().score(X if len(rows) == len(y) else _safe_indexing(X, rows), y[rows], weights)

    def _set_labels(self, y, X, sample_weight, prior) -> tuple[NDArray, NDArray | None, NDArray | None]:
        """Set the classes, their means and the inference.

        Return the class numbers of the rows, -1 for unknown, and checked weights and guesses.
        """
        classes, codes = known_class_numbers(y, self.missing_label, X, self, self.classes)
        if classes.dtype.kind in "US" and not all(classes.tolist()):
            row = int(np.flatnonzero(codes == 0)[0])
            raise ValueError(
                f"y holds '' in row {row}, which names no class: give missing_label='' if it means unknown"
            )
        weights = check_weights(sample_weight, X, float)
        if weights is not None:
            codes = np.where(weights > 0, codes, -1)
            if self.classes is None:
                classes, codes = self._weighted_classes(classes, codes)
        uneven = weights is not None and np.ptp(weights[weights > 0]) > 0
        if self._resolved != "mixture" and (uneven or prior is not None):
            name = "sample_weight with different weights" if prior is None else "prior"
            raise ValueError(f"{name} needs inference='mixture', but the inference is {self._resolved!r}: leave it out")
        prior = check_prior(prior, classes, len(codes))
        check_shares(self.class_prior, classes)
        self.mean_ = class_values(self.mean, classes, "mean", default=0.0)
        self.classes_, self.inference_ = classes, self._resolved
        return codes, weights, prior

    def _weighted_classes(self, classes: NDArray, codes: NDArray) -> tuple[NDArray, NDArray]:
        """The classes of the rows that have a label and a weight, and the class numbers of all rows."""
        left = np.unique(codes[codes >= 0])
        if len(left) < 2:
            raise ValueError(
                f"{type(self).__name__} needs labels of at least two classes with a weight above 0, got "
                f"{len(left)} class{'es' if len(left) != 1 else ''}: give sample_weight above 0 to labels of others"
            )
        return classes[left], np.where(codes >= 0, np.searchsorted(left, codes), -1)

    def _check_options(self) -> None:
        check_option("selection", self.selection, SELECTIONS)
        check_option("inference", self.inference, INFERENCES)
        number_from_zero("tolerance", self.tolerance)
        check_folds(self.n_folds)
        check_draws(self.n_draws, self.inference)
        self._check_mixture()

    def _fit_by_inference(self, X, codes, weights, prior) -> None:
        everything = (codes >= 0).all()
        if self.inference_ == "mixture":
            if everything:
                self._fit_mixture_supervised(X, codes, weights)
            else:
                self._learn(codes, weights, prior)
        elif everything:
            self._fit_field_supervised(X, codes)
        else:
            self._fit_field(X, codes)
            warn_if_trivial(self.transduction_[codes < 0], self.inference_)

    @property
    def _precision(self):
        return self.classifier_._precision if hasattr(self, "classifier_") else np.dtype(float)

    def _scores(self, X) -> Any:
        """Scores of new points, with `label_distributions_` as data."""
        check_is_fitted(self)
        X = check_points(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if hasattr(self, "classifier_"):
            return self.classifier_._scores(X)
        with threads.use(self.n_jobs):
            return self._mixture_scores(X)

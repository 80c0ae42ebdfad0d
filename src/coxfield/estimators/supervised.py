"""`LGCPClassifier`: the supervised log Gaussian Cox process classifier, section 'Supervised learning'."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.validation import check_is_fitted

from coxfield import threads
from coxfield.engine.class_sums import class_sums
from coxfield.engine.near_sums import CELL
from coxfield.engine.store import Labelled
from coxfield.engine.training import ERASING, Training, TrainingRows
from coxfield.estimators import validation
from coxfield.estimators.guaranteed_sets import GuaranteedSets
from coxfield.estimators.live_data import LiveData
from coxfield.estimators.reasons import Importance, LabelQuality, Reasons
from coxfield.estimators.scored import ScoredClassifier, scores_in_parts
from coxfield.kernels.mixture import Mixture
from coxfield.kernels.namespace import NUMPY, Library, at_home, detached, is_dispatched, rows_of
from coxfield.kernels.protocol import PerClass, class_kernels, class_values, rows_named
from coxfield.kernels.radial import check_library, recognise
from coxfield.kernels.sklearn_tree import rescale
from coxfield.kernels.transforms import ALPHAS
from coxfield.progress import stages
from coxfield.selection.grid import candidate_factors, class_distance, length_scale_of
from coxfield.selection.loo import Search
from coxfield.selection.mixture.bank import bank_of, checked_alphas
from coxfield.selection.mixture.cross_fitting import CrossFitted
from coxfield.selection.mixture.learn import learn_mixture, log_shares
from coxfield.selection.pseudo_likelihood import learn, starting_points
from coxfield.utils.numbers import generator, positive_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.class_sums import Scores
    from coxfield.estimators.tables import TableColumns
    from coxfield.selection.mixture.learn import LearnedMixture


# How `LGCPClassifier` chooses its covariance.


BANKS = ("simple", "wide")
SELECTIONS = ("mixture", "loo_error", "loo_log_loss", "pseudo_likelihood", None)
UNBOUNDED = (1e-307, 1e308)  # the prior limits the default kernel instead, in units of the data


class ChoosesCovariance:
    """The selections of `LGCPClassifier`. They set `mean_` and what describes the choice, and return the kernels."""

    kernel: Any
    mean: Any
    selection: str | None
    bank: str
    length_scales: Any
    learn_mean: bool
    selection_part: float
    exact: bool
    random_state: Any
    verbose: int
    classes_: NDArray
    mean_: NDArray
    columns_: TableColumns | None
    class_weight: Any
    _n_pilot: int
    _n_left_out: int
    _n_candidates: int
    _near_cells: int = 0
    _class_names: Any

    def _drawn(self, labelled: Labelled) -> NDArray | None:
        """The rows that the covariance is chosen from, as a mask; None for all rows."""
        if self.selection_part == 1 or self.selection is None:
            return None
        n = len(labelled)
        count = min(max(1, round(self.selection_part * n)), n - 1)  # at least one row is left to calibrate
        rows = generator(self.random_state).choice(n, count, replace=False)
        absent = np.setdiff1d(np.arange(labelled.n_classes), labelled.y[rows])
        if len(absent):
            raise ValueError(
                f"selection_part={self.selection_part:g} has drawn {len(rows)} of {n} rows and none of the class "
                f"{self.classes_.tolist()[absent[0]]!r}: give a larger share"
            )
        return np.isin(np.arange(n), rows)

    def _given_kernels(self) -> PerClass:
        learning = self.selection == "pseudo_likelihood"
        default = RBF(1.0, UNBOUNDED) if learning else RBF(1.0)
        kernels = class_kernels(default if self.kernel is None else self.kernel, self.classes_, by_object=learning)
        for kernel in kernels.distinct:
            if isinstance(kernel, Mixture):
                kernel.check_nonnegative()
        return kernels

    def _chosen(self, labelled: Labelled) -> PerClass:
        """The kernels that the selection prefers."""
        kernels = self._given_kernels()
        for kernel in kernels.distinct:
            check_library(recognise(kernel, labelled.X.shape[1]), labelled.X)  # before any work is done
        if self.selection is None:
            return kernels
        return (self._learn if self.selection == "pseudo_likelihood" else self._select)(labelled, kernels)

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
        return self._along(self._search(str(self.selection)), class_distance(labelled, kernels), labelled, kernels)

    def _along(self, search: Search, distance: float, labelled: Labelled, kernels: PerClass) -> PerClass:
        """The kernels that a search prefers, if the points have a typical distance."""
        distinct = kernels.distinct
        factors = candidate_factors(distinct, distance, self.length_scales, bounded=search.bounded)
        path = search.path(labelled, kernels, factors)
        self.selection_path_ = path.table(length_scale_of(distinct))
        self.loo_error_ = path.chosen("loo_error")
        return kernels.map(lambda kernel: rescale(kernel, path.chosen("factor"), path.chosen("variance")))

    def _mixed(self, labelled: Labelled, share: float = 1.0) -> PerClass:
        """The mixture of covariances that leave-one-out prefers; the means are learned with it.

        If the labelled points are a `share` of the training points, each training point counts so much afterwards.
        """
        if isinstance(self.kernel, Mapping):
            self._given_kernels()  # refuses wrong keys first
            others = str(SELECTIONS[1:])[1:-1]
            raise ValueError(f"classes share a mixture: for a kernel per class, give selection as one of {others}")
        n_categories = 0 if self.columns_ is None else self.columns_.n_categories
        wide = self.bank == "wide" and self.kernel is None
        home = replace(labelled, X=at_home(labelled.X))
        bank = bank_of(self.kernel, home, self.length_scales, n_categories, wide=wide)
        for ladder in bank:
            check_library(ladder.covariance, labelled.X)
        dense = isinstance(labelled.X, np.ndarray) and not self.exact
        learned = learn_mixture(
            labelled,
            bank,
            self.mean_,
            learn_mean=self.learn_mean,
            verbose=self.verbose,
            free=wide,
            random=generator(0 if self.random_state is None else self.random_state) if dense else None,
        )
        self.mean_, self.mixture_ = learned.mean, learned.table
        self.loo_error_, self.loo_log_loss_ = learned.loo_error, learned.loo_log_loss
        self._keep_report(learned)
        if wide:
            found = (ladder.relevance for ladder in bank if isinstance(ladder, CrossFitted))
            relevance = next((each for each in found if each is not None), np.ones(labelled.X.shape[1]))
            self.relevance_ = self._by_given_column(relevance)
        if share < 1:
            alpha, tied = learned.table["alpha"], learned.table["support"] == 0
            weight = learned.table["weight"] * np.where(tied, share ** (1 - 2 * alpha), 1)
            self.mixture_ = {**learned.table, "floor": learned.table["floor"] / share, "weight": weight}
            return PerClass.shared_by(learned.mixture.counting(share), len(self._class_names))
        return PerClass.shared_by(learned.mixture, len(self._class_names))

    def _keep_report(self, learned: LearnedMixture) -> None:
        """Remember what was sampled, how loud the members were, and the rate of the prior of weights of points."""
        self._largest_evidence, drawn = learned.shown, learned.sampled
        if learned.rate is not None:
            self._rate = learned.rate
        if drawn is not None:
            self._n_pilot, self._n_left_out, self._n_candidates = drawn.n_pilot, len(drawn.rows), drawn.n_candidates

    def _by_given_column(self, relevance: NDArray) -> NDArray:
        """The relevance of the columns of the user's table: of a category, the largest of its levels."""
        if self.columns_ is None:
            return relevance
        found = np.zeros(len(self.columns_.columns))
        np.maximum.at(found, self.columns_.owners, relevance)
        return found

    def _reweighed(self, labelled: Labelled, mixture: Mixture) -> Mixture:
        """The members of a mixture with weights, and means, that fit the rows that are there now."""
        learned = self._weighed_again(labelled, mixture)
        shift = self._log_weights(labelled.y, labelled.weights)
        self.mean_, self.mixture_ = learned.mean + shift, learned.table
        if not shift.any():
            self.loo_error_, self.loo_log_loss_ = learned.loo_error, learned.loo_log_loss
        return learned.mixture

    def _weighed_again(self, labelled: Labelled, mixture: Mixture) -> LearnedMixture:
        """The members of a mixture whose reference points are the labelled points, learned again."""
        mean = class_values(self.mean, self._class_names, "mean", default=0.0)
        if self.kernel is None:
            # Where rows have come that lie alone, members with a floor of the density must be there to choose.
            mixture = mixture.at_powers(*checked_alphas(ALPHAS))
        return learn_mixture(
            labelled,
            mixture.tied,
            mean,
            learn_mean=self.learn_mean,
            verbose=self.verbose,
            known=mixture,
            shown=getattr(self, "_largest_evidence", np.inf),  # older model files do not have it
            rate=getattr(self, "_rate", 1.0),
        )

    def _log_weights(self, y: NDArray, weights: NDArray | None) -> NDArray:
        """Logarithms of the weights of the classes; 0 if all count the same."""
        given, names = self.class_weight, self._class_names.tolist()
        if given is None:
            return np.zeros(len(names))
        if isinstance(given, str) and given == "balanced":
            return -log_shares(y, np.ones(len(y)) if weights is None else weights, len(names)) - np.log(len(names))
        if not isinstance(given, Mapping):
            raise ValueError(f"class_weight must be None, 'balanced' or a mapping class -> weight, got {given!r}")
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(f"class_weight names {unknown[0]!r}, which is not a class: the classes are {names}")
        return np.log([positive_number(f"class_weight of {name!r}", given.get(name, 1.0)) for name in names])

    def _learn(self, labelled: Labelled, kernels: PerClass) -> PerClass:
        """The kernels with their free parameters learned by pseudo-likelihood; the means are learned too."""
        starts = starting_points(labelled, kernels, self._search("loo_log_loss"), self.length_scales)
        learn_mean, verbose = self.learn_mean, self.verbose
        learned = [
            learn(labelled, start.kernels, self.mean_, learn_mean=learn_mean, verbose=verbose) for start in starts
        ]
        best = int(np.argmax([end.path["log_posterior"][-1] for end in learned]))
        if starts[best].table:
            self.selection_path_ = starts[best].table
        self.mean_, self.learning_path_ = learned[best].mean, learned[best].path
        return learned[best].kernels


FLOATS = [np.float64, np.float32]
ARRANGED = ("_training", "_covariances", "_loo_log_probabilities")  # what files omit
FITTED = (  # attributes that only some fits set
    "selection_path_",
    "learning_path_",
    "loo_error_",
    "loo_log_loss_",
    "mixture_",
    "relevance_",
    "_announced",
    "_arrived",
    "_changed",
    "_largest_evidence",
    "_rate",
    "_n_chosen",
    "_loo_log_probabilities",
    "_n_pilot",
    "_n_left_out",
    "_n_candidates",
    "_near_cells",
)


def checked_shares(priors, names: list) -> NDArray:
    """Shares of the classes that add up to 1."""
    if isinstance(priors, Mapping):
        if set(priors) != set(names):
            raise ValueError(f"priors must name all classes, {names}, got {list(priors)}")
        priors = [priors[name] for name in names]
    if np.size(priors) != len(names):
        raise ValueError(f"priors must have a share for each of {len(names)} classes, got {priors!r}")
    shares = np.array([positive_number(f"the prior of {name!r}", p) for name, p in zip(names, priors, strict=True)])
    return shares / shares.sum()


NEAR_FROM = 100_000  # training rows; with fewer, predictions visit all of them
NEAR_SHARES = np.array([1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4])  # of the cells
JUDGED = 500  # rows by which the share is chosen
VISIBLE = 0.005  # share of the log loss


class LGCPClassifier(
    LiveData,
    Reasons,
    Importance,
    GuaranteedSets,
    LabelQuality,
    ChoosesCovariance,
    ScoredClassifier,
    BaseEstimator,
):
    r"""Classify by log Gaussian Cox processes, one per class: a probabilistic classifier in closed form.

    The probability of class i at x* is softmax(F)_i with

    .. math:: F_i = \mu_i + C_i(x^*, x^*)/2 + \sum_{x \in \text{class } i} C_i(x^*, x)

    (eqs predictiveDistribution and activationFunction). Fitting stores the points and chooses the covariance by
    closed-form leave-one-out. A prediction costs O(n) kernel values per member of the covariance.

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, list, or mapping class -> kernel, default=None
        Covariance function. With `selection="mixture"` it is the bank from which the mixture chooses: a list of kernels
        and of `coxfield.kernels.Member`, which are kernels on a representation of the points; one kernel, which
        is taken along a path of length scales; or None for squared exponentials at all useful length scales, of the
        features as they are, standardised, and whitened. With other selections it is one kernel, shared or one per
        class, and None means `RBF(1.0)`. Products of constants with one `RBF`, `Matern` or `RationalQuadratic` use the
        fast path. Other kernels are called block by block.
    mean : float or mapping class -> float, default=0.0
        Means mu_i of the Gaussian processes: a prior bias between classes. Classes that a mapping does not name have
        mean 0.
    selection : {"mixture", "loo_error", "loo_log_loss", "pseudo_likelihood", None}, default="mixture"
        "mixture" learns the weights of a mixture of covariances, and the class means, by leave-one-out log
        probability. The problem is concave, so there is one optimum. Units of the features need no care.
        "loo_error" is the paper's rule. It multiplies the length scales by the factor with the least leave-one-out
        0-1 loss, and breaks ties by log loss. With the default kernel it also sets the signal variance by log loss.
        "loo_log_loss" chooses length scale and signal variance together by log loss.
        "pseudo_likelihood" learns the signal variance, the class means and all free parameters of one kernel, such as
        length scales per feature, under a weak prior and within the bounds of the kernel. Classes that are given the
        same kernel object share its parameters.
        None uses the kernel unchanged. Parameters with bounds "fixed" stay.
    bank : {"wide", "simple"}, default="wide"
        The members of the default mixture, where `kernel` is None. "simple" has covariances whose weight all points
        share. "wide" adds a representation in which columns count as much as they are relevant, and *free* members,
        in which points have weights of their own; both only where the folds are sure of them, and neither with more
        than 32 classes. Give "simple" if `kernel_` should be the whole model. See `docs/mixtures.md`.
    length_scales : array-like, default=None
        Factors tried for the length scales; with the default kernel, the length scales themselves, in the units of each
        representation. None for those that fit the data: from twice the root mean square distance downwards, each
        shorter by sqrt(2).
    learn_mean : bool, default=True
        Whether "mixture" and "pseudo_likelihood" learn the means too, around `mean` (for "mixture", around `mean` plus
        the logarithms of the class shares). Give False if the means say something that the training points do not
        show, such as different class shares in new data.
    selection_part : float, default=1.0
        Share of the rows, drawn at random, from which the covariance is chosen. All rows count in predictions. Below
        1, the guarantee of `predict_set` is exact, because the other rows calibrate.
    categorical_features : "from_dtype", None, or names, places or a mask of columns, default="from_dtype"
        Columns that are categories. With "from_dtype" and None these are columns of text and of the types for
        categories. Others can be named, such as codes that are numbers. See `docs/tables.md`.
    class_weight : None, "balanced", or mapping class -> weight, default=None
        Weights of the classes, as a shift of their prior probabilities: the odds of two classes are multiplied by the
        ratio of their weights, and the covariance is chosen as without them. "balanced" makes all classes equally
        probable beforehand: weights are inverse to the shares of the classes. Classes that a mapping does not name
        have weight 1. See `with_priors`.
    exact : bool, default=False
        Whether all pairs of rows count. By default, a mixture of more than 10,000 rows of dense points is learned from
        samples, in a time that grows in proportion to their number, and its sums are in single precision. With more
        than 100,000 rows predictions visit near rows and a sample of the others, if leave-one-out hardly shows it.
        `fit_report_` says what was sampled. Predictions follow this parameter when they are made:
        `set_params(exact=True)` makes those of a fitted model sum over all rows in double precision. Contributions and
        guaranteed sets always do. See `docs/scaling.md`.
    random_state : int, RandomState, Generator or None, default=None
        How the part is drawn, and rows where there are many. With None, that part is another one each time, and the
        other samples are always the same.
    n_jobs : int, default=None
        Threads. None follows `joblib.parallel_config`; outside of it, None means as many threads as the BLAS uses for
        a matrix product. -1 means all processors.
    verbose : int, default=0
        Above 0, show the progress of the selection.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernel_ : kernel, Mixture, or dict class -> kernel
        The covariance in use.
    mean_ : ndarray of shape (n_classes,)
    mixture_ : dict of arrays
        With `selection="mixture"`, its members, ready for a data frame: "representation", "kernel", "length_scale",
        "alpha" (the power of the density that divides the kernel), "weight" and "share" (of the evidence).
        For free members, "alpha" is 0, "weight" is the sum of the weights of the points, and "support" their number.
        `coxfield.plotting.plot_mixture` draws it.
    n_support_ : int
        Number of training points that have a weight of their own in free members.
    relevance_ : ndarray of shape (n_features,)
        With `bank="wide"`, what each column is worth; the largest is about 1. All are 1 if no metric is better than
        none.
    selection_path_ : dict of arrays
        With "loo_error", "loo_log_loss" and "pseudo_likelihood", what was tried, ready for a data frame: "length_scale"
        (the factor, if there are several), "variance" (the factor), "loo_error", "loo_log_loss" and "chosen". With
        "pseudo_likelihood" the chosen entry is the start of learning, and the path is absent if the kernel is not a
        product of constants with one stationary kernel. `coxfield.plotting.plot_selection_path` draws it.
    learning_path_ : dict of arrays
        With "pseudo_likelihood", the steps of learning: "step", "log_pseudo_likelihood" and "log_posterior".
    loo_error_ : float
        Leave-one-out 0-1 loss of the fitted model, set by the selection; with a mixture and more than 10,000 points, of
        10,000 drawn at random. Absent with `selection=None`: `np.mean(clf.loo_predict() != y)` computes it.
    fit_report_ : dict of int
        What was sampled: "n_rows", all training rows; "n_pilot", rows by which members and rows were preselected;
        "n_left_out", rows whose leave-one-out probabilities chose the weights; "n_candidates", members among which
        they chose; "near_cells", cells of at most 512 points whose points a prediction visits. All but the first are 0
        if all pairs of rows were used.
    X_fit_, y_fit_ : the training points, and their class numbers
        Without the rows of weight zero.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

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
        selection="mixture",
        bank="wide",
        length_scales=None,
        learn_mean=True,
        selection_part=1.0,
        categorical_features="from_dtype",
        class_weight=None,
        exact=False,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.selection = selection
        self.bank = bank
        self.length_scales = length_scales
        self.learn_mean = learn_mean
        self.selection_part = selection_part
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.exact = exact
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        tags.array_api_support = True
        return tags

    def fit(self, X, y, sample_weight=None) -> Self:
        """Store the labelled points and choose the parameters of the covariance.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            float32 is computed in float32, all other types in float64. With scikit-learn's `array_api_dispatch`, also
            arrays of torch and CuPy, which are computed by these libraries on their device; see `docs/arrays.md`.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            A point of weight w counts as w points; if the largest is beyond 2^64 or below 2^-64, only their proportions
            count. Rows of weight zero are dropped.

        Returns
        -------
        self
        """
        return self._take_over(self._draft()._fit(X, y, sample_weight))

    def _draft(self) -> Self:
        """A second object in the same state. Work on it can fail or be interrupted, and nothing has changed here."""
        draft = object.__new__(type(self))
        draft.__dict__.update(self.__dict__)
        return draft

    def _take_over(self, draft: Self) -> Self:
        """Become another object, whose work is complete, at once."""
        self.__dict__ = draft.__dict__
        return self

    def _fit(self, X, y, sample_weight) -> Self:
        validation.check_option("selection", self.selection, SELECTIONS)
        validation.check_option("bank", self.bank, BANKS)
        validation.check_share("selection_part", self.selection_part)
        library = Library.of(X) if is_dispatched(X) else NUMPY
        options = {"dtype": library.floats} if library.foreign else {"accept_sparse": "csr", "dtype": FLOATS}
        X = detached(X) if library.foreign else X
        X, y = validation.check_labelled_points(
            self, X, y, order="C", copy=True, **options
        )  # nobody else holds the rows
        weights, all_points = validation.check_weights(sample_weight, X), X
        if weights is not None:
            kept = weights > 0
            X, y, weights = rows_of(X, kept), y[kept], weights[kept]
        self.classes_, codes = validation.class_numbers(y, self)
        self._choose(Labelled(X, codes, len(self.classes_), weights), all_points)
        return self

    def _choose(self, labelled: Labelled, all_points) -> None:
        """Choose the covariance and hold the points; `all_points` are those that the user gave, for messages."""
        self.mean_ = class_values(self.mean, self.classes_, "mean", default=0.0)
        shift = self._log_weights(labelled.y, labelled.weights)
        self._forget_fit(FITTED)
        chosen_from = self._drawn(labelled)
        some = labelled if chosen_from is None else labelled[chosen_from]
        self._n_chosen = len(some)
        with (
            stages("fit", None, self.verbose),
            threads.small_steps(self.n_jobs),
            rows_named({"training points": all_points}),
        ):
            share = some.counts.sum() / labelled.counts.sum()
            kernels = self._mixed(some, share) if self.selection == "mixture" else self._chosen(some)
            rows = TrainingRows.of(labelled.X, labelled.y, labelled.weights, chosen_from)
            self._hold(rows, kernels)
            self._choose_near_cells()
            self._shift(shift)
            self._show()
            if hasattr(self, "relevance_"):
                self.relevance_ = self._shown(self.relevance_)

    def _choose_near_cells(self) -> None:
        """How many near cells predictions visit: so few that leave-one-out hardly shows it; 0 for all points."""
        rows, n = self._training.rows, self._n_rows
        if n < NEAR_FROM or not self._sampled:
            return
        drawn = generator(0).choice(n, JUDGED, replace=False)
        X, numbers, exact = rows_of(self.X_fit_, drawn), rows.numbers[drawn], None
        for n_near in (0, *np.ceil(n / CELL * NEAR_SHARES).astype(int).tolist()):
            self._near_cells = n_near
            logs = self._scores_of(X, numbers).log_probabilities
            if exact is None:
                exact = logs
                continue
            # The mean of this is what the log loss grows by, if labels are drawn with the exact probabilities.
            gap = (np.exp(exact) * (exact - logs)).sum(axis=1)
            if (
                gap.mean() + 2 * gap.std() / np.sqrt(JUDGED)
                <= VISIBLE * -exact[np.arange(JUDGED), rows.y[drawn]].mean()
            ):
                return
        self._near_cells = 0

    @property
    def fit_report_(self) -> dict[str, int]:
        """What was sampled because rows are many; numbers of rows and of members."""
        check_is_fitted(self)
        names = ("_n_pilot", "_n_left_out", "_n_candidates", "_near_cells")
        found = {name.lstrip("_"): int(getattr(self, name, 0)) for name in names}
        return {"n_rows": self._n_rows, **found}

    @property
    def _n_rows(self) -> int:
        return len(self._training.rows)

    def _shift(self, shift: NDArray) -> None:
        """Shift the means, and measure the leave-one-out loss where the selection has not, or for other means."""
        self.mean_ = self._means + shift
        if self.selection is None or (self.selection != "pseudo_likelihood" and not shift.any()):
            return
        scores, y, weights = self._loo_scores(), self._training.rows.y, self._weights
        self.loo_error_ = float(np.average(scores.decisions != y, weights=weights))
        if self.selection == "mixture":
            of_class = scores.log_probabilities[np.arange(len(y)), y]
            self.loo_log_loss_ = -float(np.average(of_class, weights=weights))

    def with_priors(self, priors) -> Self:
        r"""The same classifier where classes have other shares: p(c | x) is multiplied by new share / old share.

        This is exact if rows of a class look the same as in training and only their number differs, as where a
        disease is rarer than among the patients of a study:

        .. math:: p'(c \mid x) \propto p(c \mid x) \, \pi'_c / \pi_c

        Old shares are those of the training rows, by their weights, whatever `class_weight` is. Nothing is fitted
        again. Leave-one-out, contributions and label quality are under the new shares too.

        Parameters
        ----------
        priors : mapping class -> share, or array-like of shape (n_classes,)
            Shares of all classes, in the order of `classes_` if it is not a mapping. Only their proportions count.

        Returns
        -------
        LGCPClassifier
            A new object, whose `class_weight` are the ratios of the shares. This one does not change.

        Examples
        --------
        >>> from coxfield import LGCPClassifier
        >>> from coxfield.datasets import load_synth
        >>> X, y, *_ = load_synth(return_X_y=True)
        >>> clf = LGCPClassifier().fit(X, y)  # both classes have 125 points
        >>> rare = clf.with_priors({0: 0.95, 1: 0.05})
        >>> print(f"{clf.predict_proba(X)[:, 1].mean():.2f} {rare.predict_proba(X)[:, 1].mean():.2f}")
        0.50 0.30
        """
        check_is_fitted(self)
        self._refuse_soft_labels("with_priors")
        rows, names = self._training.rows, self._class_names.tolist()
        shares = checked_shares(priors, names)
        old = np.exp(log_shares(rows.y, rows.counts, len(names)))
        found = copy(self)  # so that neither forgets rows of the other
        found.class_weight = dict(zip(names, (shares / old).tolist(), strict=True))
        for stale in ("loo_error_", "loo_log_loss_", "_loo_log_probabilities"):
            found.__dict__.pop(stale, None)
        before = self._log_weights(rows.y, rows.weights)
        found._shift(found._log_weights(rows.y, rows.weights) - before)
        found._show()
        return found

    def _forget_fit(self, names=(*FITTED, *ARRANGED)) -> None:
        """Forget an earlier fit, of which another one may leave something."""
        for name in names:
            self.__dict__.pop(name, None)

    def _fit_distributions(self, X, distributions: NDArray, classes: NDArray):
        """Store points with a weight for every class under the unchanged kernel."""
        X = validation.check_points(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", copy=True)
        self.classes_ = classes
        self.mean_ = class_values(self.mean, classes, "mean", default=0.0)
        rows = TrainingRows.of(X, distributions.argmax(axis=1), distributions, None)
        self._hold(rows, self._given_kernels())
        return self

    def _hold(self, rows: TrainingRows, kernels: PerClass) -> None:
        """Hold the points under the chosen kernels."""
        covariances = kernels.map(lambda kernel: recognise(kernel, rows.n_features))
        learned = hasattr(self, "mixture_")
        self._training = Training.of(rows, covariances, learned=learned)
        self._covariances = self._training.covariances if learned else covariances
        kernels = self._covariances.map(lambda covariance: covariance.kernel) if learned else kernels
        self.kernel_ = validation.shown_kernel(kernels, self.kernel, self.classes_)

    @property
    def X_fit_(self) -> Any:  # noqa: N802
        """The training points."""
        return self._training.rows.X

    @property
    def y_fit_(self) -> Any:
        """The class number of each training point."""
        return self._shown(self._training.rows.y)

    @property
    def n_support_(self) -> int:
        """Number of training points that have a weight of their own."""
        if not hasattr(self, "mixture_"):
            raise AttributeError("n_support_ is there after a fit with selection='mixture'")
        return int(self.kernel_.support.sum())

    @property
    def _weights(self) -> NDArray | None:
        return self._training.rows.weights

    @property
    def _store(self):
        return self._training.store

    @property
    def _store_of_sums(self):
        """Where predictions sum: in single precision, if the mixture was learned from samples of many rows."""
        return self._training.single if self._sampled else self._store

    @property
    def _sampled(self) -> bool:
        """Whether predictions may be approximate."""
        return hasattr(self, "_n_pilot") and not self.exact

    def __getstate__(self):
        # The arranged points repeat X_fit_ in another order. Files omit them; they are arranged again on loading.
        with ERASING:
            whole = super().__getstate__()
            state = {name: value for name, value in whole.items() if name not in ARRANGED}
            if "_training" not in whole:
                return state
            rows, mixture = whole["_training"].rows, whole["_training"].mixture
            # `forget` may overwrite rows where they are, unless they are those of a mixture.
            X = rows.X.copy() if mixture is None and rows.dense else rows.X
        held = {"X_fit_": X, "y_fit_": rows.y, "_weights": rows.weights}
        return {**state, **held, **({} if rows.chosen_from.all() else {"_chosen_from": rows.chosen_from})}

    def __setstate__(self, state):
        held = {name: state[name] for name in ("X_fit_", "y_fit_", "_weights", "_chosen_from") if name in state}
        super().__setstate__({name: value for name, value in state.items() if name not in held})
        if "X_fit_" in held:
            chosen_from = held.get("_chosen_from")
            rows = TrainingRows.of(held["X_fit_"], held["y_fit_"], held["_weights"], chosen_from)
            self._hold(rows, class_kernels(self.kernel_, self._class_names))

    @property
    def _library(self) -> Library:
        return Library.of(self._training.rows.like)

    @property
    def _precision(self):
        return self._training.rows.dtype

    def _queries(self, X):
        """New points after checking them, in the form of the training points."""
        check_is_fitted(self)
        held = self._training.rows.like
        form = {} if self._foreign else {"accept_sparse": "csr"}
        X = validation.check_points(self, detached(X), dtype=held.dtype, reset=False, **form)
        return validation.like(X, held)

    def _scores(self, X) -> Scores:
        return self._scores_of(self._queries(X))

    def _scores_of(self, X, leave_out: NDArray | None = None) -> Scores:
        with threads.use(self.n_jobs), rows_named({"queries": X, "training points": lambda: self.X_fit_}):
            near = self._near_cells if self._sampled else 0
            sums = self._training.near(near) if near else class_sums
            return scores_in_parts(self._store_of_sums, self._covariances, self._means, X, leave_out, sums)

    def _loo_scores(self) -> Any:
        check_is_fitted(self)
        return self._scores_of(self.X_fit_, self._training.rows.numbers)

    def loo_class_scores(self) -> NDArray:
        """`class_scores` of each training point from all the others, in closed form.

        A point is left out with all its weight. Otherwise a point of weight 2 would be predicted by its own copy, and
        the selection would choose the shortest length scale.
        """
        return self._returned(self._loo_scores().values)

    def loo_predict_proba(self) -> NDArray:
        """`predict_proba` of each training point from all the others, in closed form."""
        return self._exponentials(self._returned(self._loo_scores().log_probabilities))

    def loo_predict(self) -> NDArray:
        """`predict` for each training point from all the others, in closed form."""
        return self._named(self._loo_scores().decisions)

"""`DaskLGCPClassifier`: the supervised classifier on Dask collections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, validate_data

import dask
from coxfield.dask.checks import Form
from coxfield.dask.chunks import Given, Results, column, keys_of, points
from coxfield.dask.leave_one_out import ShardedSearch
from coxfield.dask.mixture import SAMPLE, ShardedPoints, sharded_mixture
from coxfield.dask.pair_sums import Model, planned_scores, queries
from coxfield.dask.sets import HELD, DaskReasons, DaskSets
from coxfield.dask.shards import Shards, class_distance
from coxfield.estimators import validation
from coxfield.kernels.per_class import PerClass, class_kernels, class_values
from coxfield.kernels.recognise import recognise
from coxfield.kernels.sklearn_tree import rescale
from coxfield.selection.grid import candidate_factors, length_scale_of
from coxfield.selection.mixture.bank import bank_of
from coxfield.selection.mixture.learn import learn_mixture
from coxfield.utils.numbers import generator, whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

SELECTIONS = ("mixture", "loo_error", "loo_log_loss", None)
FITTED = ("selection_path_", "loo_error_", "loo_log_loss_", "mixture_", HELD)  # attributes that only some fits set


class DaskLGCPClassifier(DaskSets, DaskReasons, ClassifierMixin, BaseEstimator):
    """`LGCPClassifier` on Dask arrays and data frames: training points stay where they are, and predictions are lazy.

    The class sums of the two classifiers are the same up to rounding. Training points are shards, which are the chunks
    of X. Queries meet shards chunk by chunk, and partial sums are joined in a tree. With a `distributed.Client` all of
    that happens on its cluster, and without one in threads of this process.

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, list, or mapping class -> kernel, default=None
        Covariance function, as in `LGCPClassifier`. With "mixture" it is the bank from which the mixture chooses.
    mean : float or mapping class -> float, default=0.0
        Means mu_i of the Gaussian processes.
    selection : {"mixture", "loo_error", "loo_log_loss", None}, default="mixture"
        As in `LGCPClassifier`: "mixture" learns the weights of a mixture of covariances, "loo_error" is the paper's
        rule, "loo_log_loss" chooses length scale and signal variance together by log loss, and None uses the kernel
        unchanged. The densities of a mixture are sums over all pairs of points.
    length_scales : array-like, default=None
        Factors tried for the length scales. None for those that fit the data.
    learn_mean : bool, default=True
        Whether "mixture" learns the means too.
    selection_rows : int or None, default=10_000
        How many training rows, drawn at random, are predicted by leave-one-out in a selection. All training points are
        in their class sums. None for all rows: then the time grows with the square of their number.
    random_state : int, RandomState, Generator or None, default=None
        How these rows are drawn.
    n_jobs : int, default=1
        Threads of each task. Dask runs as many tasks at a time as its workers have threads.
    verbose : int, default=0
        Above 0, show the progress of `fit`, and of what `set_p_values` computes once.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernel_ : kernel, Mixture, or dict class -> kernel
        A mixture has its members, and not the points, which are in the shards.
    mixture_ : dict of arrays
        With "mixture", its members, as in `LGCPClassifier`.
    mean_ : ndarray of shape (n_classes,)
    selection_path_ : dict of arrays
        As in `LGCPClassifier`. Absent with `selection=None`.
    loo_error_ : float
        Likewise; of the rows that were predicted in the selection.
    X_fit_, y_fit_ : Dask arrays
        The training points and their labels, as they were given: they are not copied, and not computed.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Notes
    -----
    A shard that was persisted, or that came from memory, is held by the cluster. Any other shard, such as a part of a
    file, is read again for each block of queries, so that all shards together need not fit into memory. Persist the
    training points if they fit and take long to make.

    Examples
    --------
    >>> import dask.array as da
    >>> from coxfield.dask import DaskLGCPClassifier
    >>> from coxfield.datasets import load_synth
    >>> synth = load_synth()
    >>> X, y = da.from_array(synth.X_train, chunks=(100, 2)), da.from_array(synth.y_train, chunks=100)
    >>> clf = DaskLGCPClassifier().fit(X, y)
    >>> labels = clf.predict(da.from_array(synth.X_test, chunks=(500, 2)))
    >>> labels.chunks, bool((labels.compute() == synth.y_test).mean() > 0.85)
    (((500, 500),), True)
    """

    def __init__(
        self,
        kernel=None,
        *,
        mean=0.0,
        selection="mixture",
        length_scales=None,
        learn_mean=True,
        selection_rows=10_000,
        random_state=None,
        n_jobs=1,
        verbose=0,
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.selection = selection
        self.length_scales = length_scales
        self.learn_mean = learn_mean
        self.selection_rows = selection_rows
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X, y, sample_weight=None) -> Self:
        """Look at all chunks once, and choose the parameters of the covariance. Points stay where they are.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            With NumPy, SciPy sparse or CuPy chunks; float32 is computed in float32. Chunks of unknown length are
            counted. A NumPy array is cut into chunks.
        y : Dask array or series of shape (n_samples,)
        sample_weight : Dask array or series of shape (n_samples,), default=None
            A point of weight w counts as w points. Rows of weight zero are dropped.

        Returns
        -------
        self
        """
        if self.selection == "pseudo_likelihood":
            raise ValueError(
                "selection='pseudo_likelihood' needs all rows in one place: give 'mixture', 'loo_error' or "
                "'loo_log_loss', which are sums over shards, or fit LGCPClassifier on a part of the rows"
            )
        validation.check_option("selection", self.selection, SELECTIONS)
        shards = self._shards_of(X, y, sample_weight).surveyed(self, self.verbose)
        classes = shards.classes
        assert classes is not None
        mean = class_values(self.mean, classes, "mean", default=0.0)
        if self.selection == "mixture":
            found, shards = self._mixed(shards, mean)
        else:
            found = self._chosen(shards, mean)
        for earlier in FITTED:
            self.__dict__.pop(earlier, None)
        self.__dict__.update(found)
        self.classes_, self._shards = classes, shards
        return self

    def _chosen(self, shards: Shards, mean: NDArray) -> dict[str, Any]:
        """One kernel, or one per class, with the length scale that leave-one-out prefers."""
        classes = shards.classes
        assert classes is not None
        kernels = class_kernels(RBF(1.0) if self.kernel is None else self.kernel, classes)
        covariances = kernels.map(lambda kernel: recognise(kernel, shards.form.n_features))
        found: dict[str, Any] = {}
        if self.selection is not None:
            kernels, found = self._selected(shards, kernels, mean)
            covariances = kernels.map(lambda kernel: recognise(kernel, shards.form.n_features))
        found |= {"mean_": mean, "kernel_": validation.shown_kernel(kernels, self.kernel, classes)}
        return found | {"_model": Model.of(shards, covariances, mean, self.n_jobs)}

    def _mixed(self, shards: Shards, mean: NDArray) -> tuple[dict[str, Any], Shards]:
        """The mixture that leave-one-out prefers, and the shards with the densities of its members."""
        if isinstance(self.kernel, Mapping):
            class_kernels(self.kernel, np.asarray(shards.classes))  # refuses wrong keys first
            others = str(SELECTIONS[1:])[1:-1]
            raise ValueError(f"classes share a mixture: for a kernel per class, give selection as one of {others}")
        n, n_classes = int(sum(shards.known.kept)), len(mean)
        model = Model.of(shards, PerClass.shared_by(None, n_classes), mean, self.n_jobs)
        rows = np.arange(n)
        if n > SAMPLE:
            rows = np.sort(generator(self.random_state).choice(n, SAMPLE, replace=False))
        labelled = ShardedPoints.of(shards, model, rows, self.verbose)
        assert labelled.sample is not None
        # A transformer that uses labels is not cross-fitted here: the folds would be those of the sample.
        bank = [ladder.plain for ladder in bank_of(self.kernel, labelled.sample, self.length_scales)]
        if n > SAMPLE:
            origin = np.full(n, -1)
            origin[rows] = np.arange(SAMPLE)
            bank = [ladder.reindexed(origin) for ladder in bank]
        learned = learn_mixture(labelled, bank, mean, learn_mean=self.learn_mean, verbose=self.verbose)
        mixture, densities = sharded_mixture(shards, learned.mixture)
        covariances = PerClass.shared_by(mixture, n_classes)
        found = {
            "mean_": learned.mean,
            "mixture_": learned.table,
            "loo_error_": learned.loo_error,
            "loo_log_loss_": learned.loo_log_loss,
            "kernel_": mixture,
            "_model": Model.of(shards, covariances, learned.mean, self.n_jobs),
        }
        return found, replace(shards, densities=densities)

    def _shards_of(self, X, y, sample_weight) -> Shards:
        """What was given, in chunks of the same rows. Nothing is computed."""
        if y is None:
            raise ValueError("DaskLGCPClassifier requires y to be passed, but the target y is None: give y")
        given = points(X)
        validate_data(self, _example(given), skip_check_array=True)
        form = Form(given.precision, given.n_features, given.names)
        weights = None if sample_weight is None else column(sample_weight, given.X, "sample_weight")
        return Shards(given.X, column(y, given.X, "y"), weights, form)

    def _selected(self, shards: Shards, kernels: PerClass, mean: NDArray) -> tuple[PerClass, dict]:
        """The kernels that leave-one-out prefers, and what describes the choice."""
        search = ShardedSearch(
            mean=mean,
            criterion=str(self.selection),
            bounded=self.kernel is not None,
            refine=self.length_scales is None,
            set_variance=self.kernel is None or self.selection == "loo_log_loss",
            verbose=self.verbose,
            rows=self._drawn(shards),
            n_jobs=self.n_jobs,
        )
        distance = class_distance(shards, kernels)
        factors = candidate_factors(kernels.distinct, distance, self.length_scales, bounded=search.bounded)
        path = search.path(shards, kernels, factors)  # type: ignore[arg-type]
        factor, variance = path.chosen("factor"), path.chosen("variance")
        table = path.table(length_scale_of(kernels.distinct))
        chosen = kernels.map(lambda kernel: rescale(kernel, factor, variance))
        return chosen, {"selection_path_": table, "loo_error_": path.chosen("loo_error")}

    def _drawn(self, shards: Shards) -> dict[int, NDArray] | None:
        """Rows of each shard whose losses count, without those of weight zero; None for all of them."""
        if self.selection_rows is None:
            return None
        ends = np.cumsum(shards.known.kept)
        n, most = int(ends[-1]), whole_number("selection_rows", self.selection_rows)
        rows = np.arange(n) if n <= most else np.sort(generator(self.random_state).choice(n, most, replace=False))
        of = np.searchsorted(ends, rows, side="right")
        return {int(k): rows[of == k] - (ends[k] - shards.known.kept[k]) for k in np.unique(of)}

    @property
    def X_fit_(self) -> Any:  # noqa: N802
        """The training points, as a Dask array."""
        return self._shards.X

    @property
    def y_fit_(self) -> Any:
        """The labels of the training points, as a Dask array."""
        return self._shards.y

    def _planned(self, X) -> Results:
        """Scores of new points, not computed yet."""
        given = self._queries(X)
        plan = self._shards.plan(given.X)
        model, form = plan.value("model", self._model), plan.value("form", self._model.form)
        references = self._shards.references
        blocks = [plan.add("queries", queries, form, number, key) for number, key in enumerate(keys_of(given.X))]
        keys = [planned_scores(plan, model, block, references) for block in blocks]
        return Results(plan, keys, given.lengths, self.classes_, self._model.form.precision, here=given.here)

    def _queries(self, X) -> Given:
        """New points with the right columns."""
        check_is_fitted(self)
        given = points(X)
        validate_data(self, _example(given), reset=False, skip_check_array=True)
        return given

    def class_scores(self, X) -> Any:
        """The score of each class; see `LGCPClassifier.class_scores`.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)

        Returns
        -------
        Dask array of shape (n_samples, n_classes)
            Not computed yet, in the same chunks of rows; of a NumPy array, a NumPy array. This is so for all
            predictions.
        """
        return self._planned(X).class_scores()

    def decision_function(self, X) -> Any:
        """Score of class 1 minus score of class 0 for two classes; scores up to a constant per row for more."""
        return self._planned(X).decision_function()

    def predict_log_proba(self, X) -> Any:
        """Log probabilities of the classes."""
        return self._planned(X).log_probabilities()

    def predict_proba(self, X) -> Any:
        """Probabilities of the classes."""
        return self._planned(X).probabilities()

    def predict(self, X) -> Any:
        """Most probable class of each row; if every covariance underflows, the class of the nearest neighbour."""
        return self._planned(X).labels()

    def predict_with_proba(self, X) -> tuple[Any, Any]:
        """Labels and probabilities together. Compute both by one `dask.compute`, and the sums are computed once."""
        planned = self._planned(X)
        return planned.labels(), planned.probabilities()

    def score(self, X, y, sample_weight=None) -> float:
        """Share of right labels. This is computed at once."""
        found, truth, weights = dask.compute(self.predict(X), y, sample_weight)
        return float(accuracy_score(np.asarray(truth), found, sample_weight=weights))


def _example(given: Given):
    """Something with the columns of the points, for checks of their number and names."""
    if given.names is None:
        return np.empty((1, given.n_features))
    import pandas as pd

    return pd.DataFrame(np.empty((1, given.n_features)), columns=list(given.names))

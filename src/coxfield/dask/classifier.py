"""`DaskLGCPClassifier`: the supervised classifier on Dask collections."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, validate_data

import dask
from coxfield.dask.chunks import Form, Given, NumbersError, column, keys_of, points
from coxfield.dask.leave_one_out import ShardedSearch
from coxfield.dask.live_data import DaskLiveData
from coxfield.dask.mixture import SAMPLE, ShardedPoints, sharded_mixture
from coxfield.dask.pair_sums import Model, planned_scores, queries
from coxfield.dask.plan import Results, each_chunk
from coxfield.dask.reasons import HELD, DaskReasons, DaskSets
from coxfield.dask.shards import Piece, Shards, class_distance
from coxfield.dask.tables import held, learned_columns, table_points
from coxfield.engine.cells import has_cells
from coxfield.estimators import validation
from coxfield.estimators.supervised import FITTED, LGCPClassifier, checked_shares
from coxfield.estimators.tables import check_choice, no_choice
from coxfield.kernels.protocol import PerClass, class_values
from coxfield.kernels.radial import recognise
from coxfield.selection.mixture.bank import bank_of
from coxfield.selection.mixture.learn import learn_mixture
from coxfield.utils.numbers import generator, logs_of, whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.estimators.tables import TableColumns
    from coxfield.selection.mixture.learn import LearnedMixture

SELECTIONS = ("mixture", "loo_error", "loo_log_loss", None)


class DaskLGCPClassifier(DaskLiveData, DaskSets, DaskReasons, LGCPClassifier):
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
        unchanged. The densities of a mixture are sums over all pairs of points. Members are those of
        `LGCPClassifier(bank="simple")`: folds and weights of single points need all rows that count in one place.
    length_scales : array-like, default=None
        Factors tried for the length scales. None for those that fit the data.
    learn_mean : bool, default=True
        Whether "mixture" learns the means too.
    selection_rows : int or None, default=10_000
        How many training rows, drawn at random, are predicted by leave-one-out in a selection. All training points are
        in their class sums. None for all rows: then the time grows with the square of their number.
    categorical_features : "from_dtype", None, or names, places or a mask of columns, default="from_dtype"
        Columns that are categories, as in `LGCPClassifier`. Their levels are those of all chunks together.
    exact : bool, default=False
        Whether all pairs of rows count in the densities of a mixture. By default, if there are more than 10,000 rows of
        dense points, a mixture is learned from samples, as in `LGCPClassifier`. Densities are sums over 100,000 rows.
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
    fit_report_ : dict of int
        What was sampled, as in `LGCPClassifier`.
    loo_error_ : float
        Likewise; of the rows that were predicted in the selection.
    X_fit_, y_fit_ : Dask arrays
        The training points and their labels, as they were given: they are not copied, and not computed. Of a table, the
        points that its rows have become.
    columns_ : TableColumns or None
        How the columns of a table become points, as in `LGCPClassifier`; None if all are numbers without blanks.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Notes
    -----
    A data frame or an array may hold words, categories, booleans, ordered levels, dates and blanks, as in
    `LGCPClassifier`. What its columns are is learned from all chunks in three passes, and each chunk becomes points
    where it is: see `docs/tables.md`.

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
        categorical_features="from_dtype",
        exact=False,
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
        self.categorical_features = categorical_features
        self.exact = exact
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    _filling: TableColumns | None = None
    """How tables become points. Where `columns_` is None, all were numbers without blanks, which may come later."""
    bank = "simple"  # weights of points would need kernel values of all candidates, and folds of all rows, in one place
    selection_part = 1.0
    class_weight = None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.array_api_support = False
        return tags

    def fit(self, X, y, sample_weight=None) -> Self:
        """Look at all chunks once, and choose the parameters of the covariance. Points stay where they are.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            With NumPy, SciPy sparse or CuPy chunks, or tables of pandas; float32 is computed in float32. Chunks of
            unknown length are counted. A NumPy array is cut into chunks.
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
        draft = self._draft()
        try:
            draft._fit_shards(draft._shards_of(X, y, sample_weight))
        except NumbersError:  # an array that turns out to be a table
            draft = self._draft()
            draft._fit_shards(draft._shards_of(X, y, sample_weight, as_table=True))
        return self._take_over(draft)

    def _fit_shards(self, shards: Shards) -> Self:
        """Look at all shards, and choose the covariance."""
        shards = shards.surveyed(self, self.verbose)
        self._forget_fit((*FITTED, HELD))
        self.classes_ = np.asarray(shards.classes)
        self.mean_ = class_values(self.mean, self.classes_, "mean", default=0.0)
        if self.selection == "mixture":
            self._learn_from(shards)
        else:
            kernels = self._given_kernels()
            shards.check_library([recognise(kernel, shards.form.n_features) for kernel in kernels.distinct])
            kernels = kernels if self.selection is None else self._select(shards, kernels)
            self._keep(shards, kernels.map(lambda kernel: recognise(kernel, shards.form.n_features)))
        return self

    def _keep(self, shards: Shards, covariances: PerClass) -> None:
        """Hold the shards under the chosen covariances."""
        kernels = covariances.map(lambda covariance: covariance.kernel)
        self.kernel_ = validation.shown_kernel(kernels, self.kernel, self.classes_)
        self._shards, self._model = shards, Model.of(shards, covariances, self.mean_, self.n_jobs)

    def _select(self, shards: Any, kernels: PerClass) -> PerClass:
        search = replace(self._search(str(self.selection)), rows=self._drawn(shards))
        return self._along(search, class_distance(shards, kernels), shards, kernels)

    def _search(self, criterion: str) -> ShardedSearch:
        return ShardedSearch(**vars(super()._search(criterion)), n_jobs=self.n_jobs)

    def _learn_from(self, shards: Shards) -> None:
        """Learn the mixture that leave-one-out prefers; the means are learned with it."""
        if isinstance(self.kernel, Mapping):
            self._given_kernels()  # refuses wrong keys first
            others = str(SELECTIONS[1:])[1:-1]
            raise ValueError(f"classes share a mixture: for a kernel per class, give selection as one of {others}")
        labelled, rows = self._labelled(shards)
        assert labelled.sample is not None
        # A transformer that uses labels is not cross-fitted here: the folds would be those of the sample.
        n_categories = 0 if self.columns_ is None else self.columns_.n_categories
        ladders = bank_of(self.kernel, labelled.sample, self.length_scales, n_categories)
        bank = [ladder.plain for ladder in ladders]
        shards.check_library([ladder.covariance for ladder in bank])
        if len(rows) < len(labelled):
            origin = np.full(len(labelled), -1)
            origin[rows] = np.arange(len(rows))
            bank = [ladder.reindexed(origin) for ladder in bank]
        in_cells = all(has_cells(ladder.bind(labelled.sample.X)) for ladder in bank) and not self.exact
        random = generator(0 if self.random_state is None else self.random_state) if in_cells else None
        learn_mean, verbose = self.learn_mean, self.verbose
        learned = learn_mixture(labelled, bank, self.mean_, learn_mean=learn_mean, verbose=verbose, random=random)
        self._keep_learned(shards, learned)
        self._keep_report(learned)

    def _labelled(self, shards: Shards) -> tuple[ShardedPoints, NDArray]:
        """The shards for learning a mixture, and the rows of the sample from which representations are learned."""
        n, n_classes = int(sum(shards.known.kept)), len(self.classes_)
        model = Model.of(shards, PerClass.shared_by(None, n_classes), self.mean_, self.n_jobs)
        rows = np.arange(n)
        if n > SAMPLE:
            rows = np.sort(generator(self.random_state).choice(n, SAMPLE, replace=False))
        return ShardedPoints.of(shards, model, rows, self.verbose), rows

    def _keep_learned(self, shards: Shards, learned: LearnedMixture) -> None:
        mixture, densities = sharded_mixture(shards, learned.mixture)
        self.mean_, self.mixture_ = learned.mean, learned.table
        self.loo_error_, self.loo_log_loss_ = learned.loo_error, learned.loo_log_loss
        self._keep(replace(shards, densities=densities), PerClass.shared_by(mixture, len(self.classes_)))

    def _shards_of(self, X, y, sample_weight, form: Form | None = None, *, as_table: bool = False) -> Shards:
        """What was given, in chunks of the same rows. Of a table, all chunks are looked at first."""
        if y is None:
            raise ValueError("DaskLGCPClassifier requires y to be passed, but the target y is None: give y")
        given = points(X)
        validate_data(self, _example(given), skip_check_array=True, reset=form is None)
        if form is None:
            self._learn_columns(given, as_table or given.table is not None)
        columns = self.columns_ if form is None else self._filling
        given = _converted(given, columns)
        given = given if columns is None else replace(given, X=held(given.X))
        form = form or Form(given.precision, given.n_features, given.names if columns is None else None)
        weights = None if sample_weight is None else column(sample_weight, given.X, "sample_weight")
        return Shards((Piece(given.X, column(y, given.X, "y"), weights),), form)

    def _learn_columns(self, given: Given, as_table: bool) -> None:
        """What the columns of a table are."""
        self.columns_ = self._filling = None
        check_choice(self.categorical_features)
        if as_table or not no_choice(self.categorical_features):
            self._filling, plain = learned_columns(given, self.categorical_features, self.verbose)
            self.columns_ = None if plain else self._filling

    def _drawn(self, shards: Any) -> Any:
        """Rows of each shard whose losses count, without those of weight zero; None for all of them."""
        if self.selection_rows is None:
            return None
        ends = np.cumsum(shards.known.kept)
        n, most = int(ends[-1]), whole_number("selection_rows", self.selection_rows)
        rows = np.arange(n) if n <= most else np.sort(generator(self.random_state).choice(n, most, replace=False))
        of = np.searchsorted(ends, rows, side="right")
        return {int(k): rows[of == k] - (ends[k] - shards.known.kept[k]) for k in np.unique(of)}

    def with_priors(self, priors) -> Self:
        """The same classifier where classes have other shares; see `LGCPClassifier.with_priors`.

        Parameters
        ----------
        priors : mapping class -> share, or array-like of shape (n_classes,)

        Returns
        -------
        DaskLGCPClassifier
            A new object on the same shards. This one does not change. Rows that arrive, and `reselect`, choose means
            for the shares of the training rows again.
        """
        check_is_fitted(self)
        weight = self._shards.of_class[1]
        shares = checked_shares(priors, self.classes_.tolist())
        found = copy(self)
        for stale in ("loo_error_", "loo_log_loss_", HELD):
            found.__dict__.pop(stale, None)
        found.mean_ = self.mean_ + logs_of(shares * weight.sum()) - logs_of(np.where(weight > 0, weight, 1.0))
        found._model = replace(self._model, mean=found.mean_)
        return found

    @property
    def _n_rows(self) -> int:
        return int(sum(self._shards.known.kept))

    @property
    def X_fit_(self) -> Any:  # noqa: N802
        """The training points, as a Dask array."""
        return self._shards.X

    @property
    def y_fit_(self) -> Any:
        """The labels of the training points, as a Dask array."""
        return self._shards.y

    def _scores(self, X) -> Any:
        """Scores of new points, not computed yet."""
        given = self._queries(X)
        plan = self._shards.plan(given.X)
        model, form = plan.value("model", self._model), plan.value("form", self._model.form)
        references = self._shards.references
        blocks = [plan.add("queries", queries, form, number, key) for number, key in enumerate(keys_of(given.X))]
        keys = [planned_scores(plan, model, block, references) for block in blocks]
        return Results(plan, keys, given.lengths, len(self.classes_), self._model.form.precision, here=given.here)

    def _queries(self, X) -> Given:
        """New points with the right columns."""
        check_is_fitted(self)
        given = points(X)
        validate_data(self, _example(given), reset=False, skip_check_array=True)
        return _converted(given, self._filling)

    def _check_library(self, X, method: str) -> None:
        """Nothing: queries travel to the library and the device of each shard."""
        check_is_fitted(self)

    def _returned(self, values):
        return values  # results are finite, and in their precision

    def _exponentials(self, logs):
        return each_chunk("predict-proba", np.exp, logs, logs.dtype)

    def _named(self, codes):
        return each_chunk("predict", partial(_taken, self.classes_), codes, self.classes_.dtype)

    def score(self, X, y, sample_weight=None) -> float:
        """Share of right labels. This is computed at once."""
        found, truth, weights = dask.compute(self.predict(X), y, sample_weight)
        return float(accuracy_score(np.asarray(truth), found, sample_weight=weights))


def _taken(classes: NDArray, codes: NDArray) -> NDArray:
    return classes[codes]


def _converted(given: Given, columns: TableColumns | None) -> Given:
    """Points of a table, or numbers as they were given."""
    if columns is None:
        validation.refuse_columns(given.like)
        return given
    return replace(given, X=table_points(given, columns))


def _example(given: Given):
    """Something with the columns of the points, for checks of their number and names."""
    if given.names is None:
        return np.empty((1, given.n_features))
    import pandas as pd

    return pd.DataFrame(np.empty((1, given.n_features)), columns=list(given.names))

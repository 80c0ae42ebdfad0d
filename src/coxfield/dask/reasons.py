"""Reasons, doubtful labels, the worth of columns and guaranteed sets on shards, as sums over shards."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from distributed import Future
from sklearn.utils.validation import check_is_fitted

from coxfield import threads
from coxfield.dask.chunks import keys_of
from coxfield.dask.leave_one_out import LabelledBlock, block_at, block_of, gathered, training_block
from coxfield.dask.pair_sums import (
    Block,
    Counts,
    Model,
    densities_of,
    fits,
    joined_counts,
    pair_counts,
    planned_scores,
    planned_sums,
    queries,
)
from coxfield.dask.plan import Results, computed, persisted
from coxfield.engine.class_sums import ClassSums, Scores, prior_terms
from coxfield.engine.witnesses import Witnesses, witnesses_at
from coxfield.estimators.guaranteed_sets import excluded_share, in_sets
from coxfield.estimators.live_data import listed_places
from coxfield.estimators.reasons import FEWEST, PASSES, Contributions, class_margins
from coxfield.utils.numbers import generator, weighted_mean, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from dask.delayed import Delayed
    from numpy.typing import NDArray

    from coxfield.dask.plan import Plan
    from coxfield.dask.shards import Shards


class DaskReasons:
    """`contributions`, `label_quality`, `feature_importance` and leave-one-out scores of `DaskLGCPClassifier`."""

    if TYPE_CHECKING:
        classes_: NDArray
        _shards: Shards
        _model: Model
        _queries: Any
        _column_names: Any
        columns_: Any
        verbose: int

    def label_quality(self) -> dict[str, Any]:
        """Which training labels are doubtful; see `LGCPClassifier.label_quality`.

        Returns
        -------
        dict of Dask arrays
            One entry per training row of positive weight: "row" (the row of X), "label", "probability", "suggested",
            "suggested_probability" and "margin". The least margin is the most doubtful label. There is no "rank",
            because that is an order of all rows: sort by "margin". Compute all of them by one `dask.compute`.
        """
        found, blocks = self._left_out()
        starts = self._shards.starts
        precision = self._model.form.precision
        columns: dict[str, tuple[Callable, Any]] = {
            "row": (_rows, int),
            "label": (partial(_label, self.classes_), self.classes_.dtype),
            "probability": (_probability, precision),
            "suggested": (partial(_suggested, self.classes_), self.classes_.dtype),
            "suggested_probability": (_suggested_probability, precision),
            "margin": (_margin, float),
        }
        keys = [
            found.plan.add("quality", _together, int(start), block, scores)
            for start, block, scores in zip(starts, blocks, found.keys, strict=True)
        ]
        return {
            name: found.plan.array(name, function, keys, found.lengths, dtype=dtype)
            for name, (function, dtype) in columns.items()
        }

    def _loo_scores(self) -> Any:
        """Of all training rows of positive weight, over all pairs of chunks."""
        return self._left_out()[0]

    def _left_out(self) -> tuple[Results, list]:
        """Leave-one-out scores of all training rows, and the keys of the rows of each chunk; nothing is computed."""
        check_is_fitted(self)
        shards, plan = self._shards, self._shards.plan()
        model = plan.value("model", self._model)
        asked = [plan.add("rows", training_block, model, None, *parts) for parts in shards.references]
        blocks = [plan.add("rows-block", block_of, each) for each in asked]
        keys = [planned_scores(plan, model, block, shards.references) for block in blocks]
        return Results(plan, keys, shards.known.kept, len(self.classes_), self._model.form.precision), asked

    def contributions(self, X, top: int = 10) -> Contributions:
        """The training rows that speak loudest for each class; see `LGCPClassifier.contributions`.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
        top : int, default=10
            How many rows to name per query and class.

        Returns
        -------
        Contributions
            Of Dask arrays; `(found,) = dask.compute(clf.contributions(X))` computes them. Row numbers are those of the
            training points as they were given.
        """
        top, given = whole_number("top", top), self._queries(X)
        plan = self._shards.plan(given.X)
        form = plan.value("form", self._model.form)
        blocks = [plan.add("queries", queries, form, number, key) for number, key in enumerate(keys_of(given.X))]
        return self._contributions_of(plan, blocks, given.lengths, top)

    def loo_contributions(self, rows, top: int = 10) -> Contributions:
        """`contributions` to the scores of some training rows from all the others; see `LGCPClassifier`.

        Parameters
        ----------
        rows : array-like of int, or of bool
            Rows of `X_fit_` that do not have weight zero, counted from 0; or one bool per row.
        top : int, default=10
            How many rows to name per training row and class.

        Returns
        -------
        Contributions
            Of Dask arrays, as from `contributions`.
        """
        check_is_fitted(self)
        top, shards = whole_number("top", top), self._shards
        found = listed_places(rows, sum(shards.known.lengths))
        if not len(found):
            raise ValueError("rows names no training row: give at least one")
        order, plan = np.argsort(found, kind="stable"), shards.plan()
        model = plan.value("model", self._model)
        of = np.searchsorted(np.cumsum(shards.known.lengths), found[order], side="right")
        parts = [
            plan.add("rows", named_block, model, found[order][of == k] - shards.starts[k], *shards.references[k])
            for k in np.unique(of)
        ]
        block = plan.add("rows-gather", gathered_in_order, np.argsort(order), parts)
        return self._contributions_of(plan, [block], [len(found)], top)

    def _contributions_of(self, plan: Plan, blocks: Sequence, lengths: Sequence, top: int) -> Contributions:
        """`Contributions` to the scores of blocks, given by their keys."""
        shards, model, keys = self._shards, plan.value("model", self._model), []
        for block in blocks:
            known = None
            if shards.densities is not None:  # what queries are divided by is a sum over all shards
                known = plan.add("densities", densities_of, model, planned_sums(plan, model, block, shards.references))
            heard = [
                plan.add("loudest", pair_witnesses, model, block, known, top, int(start), *parts)
                for start, parts in zip(shards.starts, shards.references, strict=True)
            ]
            keys.append(plan.add("reasons", reasons, model, block, plan.tree("loudest-join", joined_witnesses, heard)))
        one, many = (len(self.classes_),), (len(self.classes_), top)
        forms = {"rows": (many, int), "shares": (many, float), "rest": (one, float), "prior": (one, float)}
        arrays = {
            name: plan.array(f"reasons-{name}", partial(_entry, name), keys, lengths, tail=tail, dtype=dtype)
            for name, (tail, dtype) in forms.items()
        }
        return Contributions(self.classes_, **arrays)

    def feature_importance(self, n_rows: int | None = None, random_state=0) -> dict[str, NDArray]:
        """What each column is worth; see `LGCPClassifier.feature_importance`. This is computed at once.

        The rows that are drawn come to this process, and visit all shards once per column.

        Parameters
        ----------
        n_rows : int, default=None
            How many rows, drawn at random, to predict. None for so many that all columns together cost about three
            passes of leave-one-out, but at least 100.
        random_state : int, RandomState, Generator or None, default=0
            How rows are drawn and shuffled.

        Returns
        -------
        dict of arrays
            "column", "importance" and "standard_error".
        """
        check_is_fitted(self)
        if self._model.form.sparse:
            raise ValueError("feature_importance needs dense points: fit on a dense array")
        shards, d = self._shards, self._model.form.n_features
        owners = np.arange(d) if self.columns_ is None else self.columns_.owners
        names, used = self._column_names(owners), np.unique(owners)
        n, rng = sum(shards.known.kept), generator(random_state)
        n_rows = min(n, max(FEWEST, PASSES * n // len(names)) if n_rows is None else whole_number("n_rows", n_rows))
        rows = np.sort(rng.permutation(n)[:n_rows])
        donors = [rng.permutation(n)[:n_rows] for _ in used]
        plan = shards.plan()
        model = plan.value("model", self._model)
        asked = block_at(plan, model, shards, rows)
        keys = [self._losses(plan, model, asked, plan.add("rows-block", block_of, asked))]
        for k, places in zip(used, donors, strict=True):
            order = np.argsort(places, kind="stable")
            cells = block_at(plan, model, shards, places[order])
            block = plan.add("shuffled", shuffled, asked, cells, np.argsort(order), np.flatnonzero(owners == k))
            keys.append(self._losses(plan, model, asked, block))
        weights, before, *after = computed(plan.delayed([plan.add("weights", _weights_of, asked), *keys]), self.verbose)
        found = np.zeros((2, len(names)))
        found[:, used] = np.transpose([weighted_mean(losses - before, weights) for losses in after])
        return {"column": names, "importance": found[0], "standard_error": found[1]}

    def _losses(self, plan: Plan, model, asked, block) -> tuple:
        """The key of the leave-one-out losses of a block."""
        return plan.add("losses", losses, asked, planned_scores(plan, model, block, self._shards.references))


def named_block(model: Model, rows: NDArray, number: int, X, y, weights, densities=None) -> LabelledBlock:
    """Rows of a chunk as queries, given by their numbers there."""
    found = training_block(model, None, number, X, y, weights)
    here = found.block.rows
    assert here is not None
    absent = np.setdiff1d(rows, here)
    if len(absent):
        raise ValueError(f"row {absent[0]} of chunk {number} has weight 0, so it is not a training row: leave it out")
    return found[np.searchsorted(here, rows)]


def gathered_in_order(order: NDArray, parts: Sequence[LabelledBlock]) -> Block:
    """Rows of several shards as one block, in another order."""
    return gathered(parts)[order].block


def shuffled(asked: LabelledBlock, cells: LabelledBlock, order: NDArray, columns: NDArray) -> Block:
    """Rows with the cells of some columns from other rows."""
    X = asked.block.X.copy()
    X[:, columns] = cells.block.X[np.ix_(order, columns)]
    return replace(asked.block, X=X, own=asked.block.X)


def losses(asked: LabelledBlock, scores: Scores) -> NDArray:
    """-log of the probability of the label of each row."""
    return -scores.log_probabilities[np.arange(len(asked.y)), asked.y]


def _weights_of(asked: LabelledBlock) -> NDArray:
    return asked.weights


def pair_witnesses(
    model: Model, block: Block, known, top: int, start: int, number: int, X, y, weights, densities=None
) -> Witnesses:
    """Class sums of a block over one shard with their largest terms; rows are numbered over all shards."""
    shard = model.shard(number, X, y, weights)
    left, block = block.leave_out(number, shard), block.beside(shard.labelled.X)
    with threads.use(model.n_jobs):
        store = model.store(shard.labelled, densities)
        asked = model.queries(store, block)
        if known is not None:
            asked = [None if points is None else points.knowing(known) for points in asked]
        found = witnesses_at(store, asked, len(block), top, left)
    rows = np.full(found.rows.shape, -1)
    there = found.rows >= 0
    rows[there] = start + shard.rows[found.rows[there]]
    return Witnesses(found.sums, rows, found.terms)


def _added(one: ClassSums, other: ClassSums) -> ClassSums:
    """Sums over two sets of points; the logarithm of the sum is exact even where the values underflow."""
    values, logs = one.values + other.values, np.logaddexp(one.logs, other.logs)
    negative = (one.values < 0) | (other.values < 0)
    if negative.any():  # some kernels may be negative, and then logarithms of parts say nothing of the whole
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(negative, np.where(values > 0, np.log(values), -np.inf), logs)
    return ClassSums(values, logs)


def joined_witnesses(parts: Sequence[Witnesses]) -> Witnesses:
    """The sums over several sets of shards, and the largest of all terms."""
    sums, top = parts[0].sums, parts[0].rows.shape[2]
    for part in parts[1:]:
        sums = _added(sums, part.sums)
    rows, terms = (np.concatenate([getattr(part, name) for part in parts], axis=2) for name in ("rows", "terms"))
    order = np.argsort(np.where(rows < 0, np.inf, -terms), axis=2, kind="stable")[:, :, :top]
    return Witnesses(sums, *(np.take_along_axis(values, order, axis=2) for values in (rows, terms)))


def reasons(model: Model, block: Block, heard: Witnesses) -> dict[str, NDArray]:
    """The parts of the class scores of a block."""
    prior = prior_terms(model.covariances, block.X, model.mean)
    rest = Scores(prior, heard.sums).values - heard.terms.sum(axis=2)
    return {"rows": heard.rows, "shares": heard.terms, "rest": rest, "prior": np.broadcast_to(prior, rest.shape)}


def _entry(name: str, found: dict[str, NDArray]) -> NDArray:
    return found[name]


def _together(start: int, asked: LabelledBlock, scores: Scores) -> tuple[NDArray, NDArray, Scores]:
    """Rows, class numbers and scores of a block of training points."""
    assert asked.block.rows is not None
    return start + asked.block.rows, asked.y, scores


def _rows(found) -> NDArray:
    return found[0]


def _label(classes: NDArray, found) -> NDArray:
    return classes[found[1]]


def _probability(found) -> NDArray:
    _, codes, scores = found
    return np.exp(scores.log_probabilities)[np.arange(len(codes)), codes]


def _suggested(classes: NDArray, found) -> NDArray:
    return classes[found[2].decisions]


def _suggested_probability(found) -> NDArray:
    scores = found[2]
    return np.exp(scores.log_probabilities)[np.arange(len(found[1])), scores.decisions]


def _margin(found) -> NDArray:
    _, codes, scores = found
    return class_margins(scores.relative)[np.arange(len(codes)), codes]


# Sets of classes with a guarantee on shards: full conformal prediction, whose counts are sums over shards.


HELD = "_left_out_fits"  # the attribute that keeps what the training points say about each other


class DaskSets:
    """`predict_set` and `set_p_values` of `DaskLGCPClassifier`."""

    if TYPE_CHECKING:
        classes_: NDArray
        verbose: int
        _shards: Shards
        _model: Model
        _queries: Any

    def predict_set(self, X, coverage: float = 0.9, *, per_class: bool = False) -> Any:
        """Sets of classes that hold the true class with a probability of at least `coverage`.

        They are those of `LGCPClassifier.predict_set`, which says what is guaranteed. The first call computes the
        leave-one-out probabilities of all training points over all pairs of chunks; see `set_p_values`.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
        coverage : float between 0 and 1, default=0.9
            How often a set must hold the true class.
        per_class : bool, default=False
            Whether each class is covered with this probability. Otherwise only all classes together are, and rare
            classes may be covered less often than frequent ones.

        Returns
        -------
        boolean Dask array of shape (n_samples, n_classes)
            Whether each class is in the set; the columns are in the order of `classes_`.

        Notes
        -----
        All training rows of positive weight calibrate. The guarantee holds with `selection=None` and a kernel that was
        chosen without them. If these rows have chosen the kernel, nothing is proved, whatever `selection_rows` is: the
        labels of all rows are in the sums by which it was chosen. Let other rows choose it:
        `kernel = DaskLGCPClassifier().fit(X_some, y_some).kernel_`, and then
        `DaskLGCPClassifier(kernel, selection=None).fit(X_others, y_others)`.

        With sample weights other than 0 and 1 the guarantee is not exact.

        Examples
        --------
        >>> import dask.array as da
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from coxfield.dask import DaskLGCPClassifier
        >>> from coxfield.datasets import load_synth
        >>> X, y, X_test, y_test = load_synth(return_X_y=True)
        >>> clf = DaskLGCPClassifier(0.3 * RBF(0.2), selection=None)
        >>> clf = clf.fit(da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100))
        >>> sets = clf.predict_set(da.from_array([[-0.7, 0.3], [0.0, 0.45]]), coverage=0.95)
        >>> sets.compute()
        array([[ True, False],
               [ True,  True]])
        """
        excluded = excluded_share(coverage)
        return self._counted(X, per_class).array("predict-set", partial(_sets, excluded), (len(self.classes_),), bool)

    def set_p_values(self, X, *, per_class: bool = False) -> Any:
        """The p-value of each class: the share of points that fit their label as badly as the new point fits this one.

        See `LGCPClassifier.set_p_values`. A class is in the sets of `predict_set` for all coverages above 1 minus its
        p-value, so one pass gives the sets of all coverages.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
        per_class : bool, default=False
            Whether a class is compared with its own training points only.

        Returns
        -------
        Dask array of shape (n_samples, n_classes)

        Notes
        -----
        The result is lazy, but the first call of this method or of `predict_set` starts to compute the leave-one-out
        probabilities of all training points. That takes as long as predicting all of them. They stay where they were
        computed, in 8 (n_classes + 1) bytes per training row, and serve all later calls. On a cluster this call does
        not wait for them; without one it does.

        Points that are equal up to rounding count as ties, so p-values are never too small by rounding.

        Examples
        --------
        >>> import dask.array as da
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from coxfield.dask import DaskLGCPClassifier
        >>> from coxfield.datasets import load_synth
        >>> X, y, X_test, y_test = load_synth(return_X_y=True)
        >>> clf = DaskLGCPClassifier(0.3 * RBF(0.2), selection=None)
        >>> clf = clf.fit(da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100))
        >>> clf.set_p_values(da.from_array([[-0.7, 0.3], [0.0, 0.45]])).compute().round(2)
        array([[0.92, 0.  ],
               [0.18, 0.1 ]])
        """
        return self._counted(X, per_class).array("set-p-values", _p_values, (len(self.classes_),), float)

    def __getstate__(self):
        """What files and copies keep: not what is held on workers and can be computed again."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name != HELD}

    def _counted(self, X, per_class: bool) -> Results:
        """Counts of new points, not computed yet."""
        given = self._queries(X)
        left_out, shards = self._left_out_held(), self._shards
        plan = shards.plan(given.X, *left_out)
        model, form = plan.value("model", self._model), plan.value("form", self._model.form)
        pairs = list(zip(left_out, shards.references, strict=True))
        keys = []
        for number, key in enumerate(keys_of(given.X)):
            block = plan.add("queries", queries, form, number, key)
            asked = _planned_fits(plan, model, block, shards)
            counts = [
                plan.add("set-counts", pair_counts, model, block, asked, bool(per_class), held.key, *parts)
                for held, parts in pairs
            ]
            keys.append(plan.tree("set-join", joined_counts, counts))
        return Results(plan, keys, given.lengths, len(self.classes_), self._model.form.precision, here=given.here)

    def _left_out_held(self) -> list[Delayed]:
        """Leave-one-out fits of the rows of each shard, where they were computed; the first call starts that."""
        held = getattr(self, HELD, None)
        if held is None or _lost(held):
            shards, plan = self._shards, self._shards.plan()
            model = plan.value("model", self._model)
            asked = [plan.add("rows", training_block, model, None, *parts) for parts in shards.references]
            blocks = [plan.add("rows-block", block_of, each) for each in asked]
            keys = [_planned_fits(plan, model, block, shards) for block in blocks]
            held = persisted(plan.delayed(keys), self.verbose)
            setattr(self, HELD, held)
        return held


def _planned_fits(plan: Plan, model: Any, block: Any, shards: Shards) -> tuple:
    """Add the tasks that say how well one block fits each class, from all shards, and return the key of the `Fits`."""
    sums = planned_sums(plan, model, block, shards.references, bounded=True)
    return plan.add("fits", fits, model, planned_scores(plan, model, block, shards.references, sums), sums)


def _lost(held: Sequence[Delayed]) -> bool:
    """Whether results on a cluster are gone, because it was closed, or because a task failed."""
    values = (getattr(node, "value", node) for each in held for node in dict(each.dask).values())
    return any(isinstance(value, Future) and value.status in ("cancelled", "error") for value in values)


def _sets(excluded: Fraction, counts: Counts) -> NDArray:
    return in_sets(counts.ranks, counts.calibrating, excluded)


def _p_values(counts: Counts) -> NDArray:
    return counts.p_values

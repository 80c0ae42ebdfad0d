"""Sets of classes with a guarantee on shards: full conformal prediction, whose counts are sums over shards."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from distributed import Future

from coxfield.dask.chunks import keys_of
from coxfield.dask.leave_one_out import block_of, training_block
from coxfield.dask.pair_sums import (
    Counts,
    Model,
    fits,
    joined_counts,
    pair_counts,
    planned_scores,
    planned_sums,
    queries,
)
from coxfield.dask.plan import Results, persisted
from coxfield.estimators.guaranteed_sets import excluded_share, in_sets

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from dask.delayed import Delayed
    from numpy.typing import NDArray

    from coxfield.dask.plan import Plan
    from coxfield.dask.shards import Shards


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

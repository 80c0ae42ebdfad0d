"""Leave-one-out predictions, doubtful labels and reasons, as far as they are sums over shards."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coxfield import threads
from coxfield.dask.leave_one_out import block_of, rows_of
from coxfield.dask.pair_sums import Block, Model, added, planned_scores, queries
from coxfield.dask.recipes import keys_of
from coxfield.dask.results import Results
from coxfield.engine.decision import Scores, prior_terms
from coxfield.engine.witnesses import Witnesses, witnesses
from coxfield.estimators.label_quality import class_margins
from coxfield.estimators.reasons import Contributions
from coxfield.utils.numbers import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.dask.leave_one_out import LabelledBlock
    from coxfield.dask.shards import Shards


class DaskReasons:
    """`contributions`, `label_quality` and `loo_*` of `DaskLGCPClassifier`."""

    if TYPE_CHECKING:
        classes_: NDArray
        _shards: Shards
        _model: Model
        _queries: Any

    def loo_predict_proba(self) -> Any:
        """`predict_proba` of each training point from all the others, as a Dask array over all pairs of chunks.

        Its rows are the training rows without those of weight zero.
        """
        return self._left_out()[0].probabilities()

    def loo_predict(self) -> Any:
        """`predict` for each training point from all the others, as a Dask array over all pairs of chunks."""
        return self._left_out()[0].labels()

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

    def _left_out(self) -> tuple[Results, list]:
        """Leave-one-out scores of all training rows, and the keys of the rows of each chunk; nothing is computed."""
        check_is_fitted(self)
        shards, plan = self._shards, self._shards.plan()
        model = plan.value("model", self._model)
        asked = [plan.add("rows", rows_of, model, None, *parts) for parts in shards.references]
        blocks = [plan.add("rows-block", block_of, each) for each in asked]
        keys = [planned_scores(plan, model, block, shards.references) for block in blocks]
        return Results(plan, keys, shards.known.kept, self.classes_, self._model.form.precision), asked

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
        shards, plan = self._shards, self._shards.plan(given.X)
        model, form = plan.value("model", self._model), plan.value("form", self._model.form)
        keys = []
        for number, key in enumerate(keys_of(given.X)):
            block = plan.add("queries", queries, form, number, key)
            heard = [
                plan.add("loudest", pair_witnesses, model, block, top, int(start), *parts)
                for start, parts in zip(shards.starts, shards.references, strict=True)
            ]
            keys.append(plan.add("reasons", reasons, model, block, plan.tree("loudest-join", joined_witnesses, heard)))
        one, many = (len(self.classes_),), (len(self.classes_), top)
        forms = {"rows": (many, int), "shares": (many, float), "rest": (one, float), "prior": (one, float)}
        arrays = {
            name: plan.array(f"reasons-{name}", partial(_entry, name), keys, given.lengths, tail=tail, dtype=dtype)
            for name, (tail, dtype) in forms.items()
        }
        return Contributions(self.classes_, **arrays)


def pair_witnesses(model: Model, block: Block, top: int, start: int, number: int, X, y, weights) -> Witnesses:
    """Class sums of a block over one shard with their largest terms; rows are numbered over all shards."""
    shard = model.shard(number, X, y, weights)
    with threads.use(model.n_jobs):
        found = witnesses(shard.labelled.under(model.covariances), block.X, top)
    rows = np.full(found.rows.shape, -1)
    known = found.rows >= 0
    rows[known] = start + shard.rows[found.rows[known]]
    return Witnesses(found.sums, rows, found.terms)


def joined_witnesses(parts: Sequence[Witnesses]) -> Witnesses:
    """The sums over several sets of shards, and the largest of all terms."""
    sums, top = parts[0].sums, parts[0].rows.shape[2]
    for part in parts[1:]:
        sums = added(sums, part.sums)
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

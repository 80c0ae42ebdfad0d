"""The reasons of a prediction: which training rows speak for which class, and how loudly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from coxfield import threads
from coxfield.engine.class_sums import Scores, StatedScores, prior_terms, sums_at
from coxfield.engine.witnesses import witnesses
from coxfield.estimators.live_data import listed_places
from coxfield.kernels.mixture import MixturePoints
from coxfield.kernels.namespace import at_home, like, rows_of
from coxfield.kernels.protocol import rows_named
from coxfield.progress import progress
from coxfield.utils.numbers import generator, logs_of, weighted_mean, whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.training import Training
    from coxfield.kernels.protocol import PerClass


ROWS = 1024  # queries at a time


@dataclass(frozen=True)
class Contributions:
    """What training rows add to the score of each class, as `LGCPClassifier.contributions` returns it.

    `shares.sum(axis=2) + rest` are the class scores.
    """

    classes: NDArray
    """The classes, as in `classes_`."""
    rows: NDArray
    """Training rows of each query and class, as in `X_fit_`, loudest first: shape (n_queries, n_classes, top). -1 where
    a class has fewer rows."""
    shares: NDArray
    """What each of these rows adds to the score, the same shape."""
    rest: NDArray
    """What everything else adds: all other rows, and the prior. Shape (n_queries, n_classes)."""
    prior: NDArray
    """The part of `rest` that comes from no row: the class mean plus half the variance. The same shape."""

    def __len__(self) -> int:
        return len(self.rest)

    def table(self) -> dict[str, NDArray]:
        """One entry per query, class and row, ready for a data frame: "query", "class", "rank", "row", "share"."""
        query, number, rank = np.nonzero(self.rows >= 0)
        place = query, number, rank
        return {
            "query": query,
            "class": self.classes[number],
            "rank": rank,
            "row": self.rows[place],
            "share": self.shares[place],
        }


class Reasons:
    """`contributions` and `loo_contributions` of `LGCPClassifier`."""

    classes_: NDArray
    mean_: NDArray
    n_jobs: int | None
    _training: Training
    _covariances: PerClass
    _queries: Any
    _means: Any
    _class_names: Any
    _check_library: Any

    def contributions(self, X, top: int = 10) -> Contributions:
        """The training rows that speak loudest for each class, and the exact share of each in the score.

        A class score is a plain sum over training rows, so nothing here is an approximation.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        top : int, default=10
            How many rows to name per query and class.

        Returns
        -------
        Contributions
            With `rows`, `shares`, `rest` and `prior`; `table()` lists all entries. `shares.sum(axis=2) + rest` equals
            `class_scores(X)`.

        Examples
        --------
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from coxfield import LGCPClassifier
        >>> clf = LGCPClassifier(RBF(1.0), selection=None).fit([[0.0], [1.0], [3.0]], ["a", "a", "b"])
        >>> reasons = clf.contributions([[0.9]], top=1)
        >>> reasons.rows[0].tolist(), reasons.shares[0].round(2).tolist(), reasons.rest[0].round(2).tolist()
        ([[1], [2]], [[1.0], [0.11]], [1.17, 0.5])
        """
        self._check_library(X, "contributions")
        top = whole_number("top", top)
        return self._contributions(self._queries(X), top)

    def loo_contributions(self, rows, top: int = 10) -> Contributions:
        """`contributions` to the scores of some training rows from all the others: who disagrees with a label.

        A row is left out with all its weight. `shares.sum(axis=2) + rest` equals `loo_class_scores()[rows]`.

        Parameters
        ----------
        rows : array-like of int, or of bool
            Places among the training rows, counted from 0, as in `X_fit_`; or one bool per training row.
        top : int, default=10
            How many rows to name per training row and class.

        Returns
        -------
        Contributions

        Examples
        --------
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from coxfield import LGCPClassifier
        >>> clf = LGCPClassifier(RBF(1.0), selection=None).fit([[0.0], [1.0], [3.0]], ["a", "a", "b"])
        >>> clf.loo_contributions([1, 2], top=1).rows.tolist()
        [[[0], [2]], [[1], [-1]]]
        """
        check_is_fitted(self)
        top, held = whole_number("top", top), self._training.rows
        places = listed_places(rows, len(held))
        if not len(places):
            raise ValueError("rows names no training row: give at least one")
        return self._contributions(rows_of(held.X, places), top, held.numbers[places])

    def _contributions(self, X, top: int, leave_out: NDArray | None = None) -> Contributions:
        """`contributions` of checked points; for each of them a row number of the store may be left out."""
        numbers, found = self._training.rows.numbers, []
        with (
            threads.use(self.n_jobs),
            rows_named({"queries": X, "training points": lambda: self._training.rows.X}),
            progress(f"contributions to {X.shape[0]} points", X.shape[0], None) as done,
        ):
            for part in gen_batches(X.shape[0], ROWS):
                left = None if leave_out is None else leave_out[part]
                some = rows_of(X, part)
                heard = witnesses(self._training.store, some, top, left)
                prior = prior_terms(self._covariances, some, self._means)
                scores = Scores(prior, heard.sums).values
                rows = np.where(heard.rows < 0, -1, np.searchsorted(numbers, heard.rows))
                rest = scores - heard.terms.sum(axis=2)
                found.append((rows, heard.terms, rest, np.broadcast_to(prior, rest.shape)))
                done(part.stop - part.start)
        return Contributions(self._class_names, *(np.concatenate(arrays) for arrays in zip(*found, strict=True)))


# What the columns of a table are worth, by closed-form leave-one-out.


PASSES = 3  # through all rows, of leave-one-out, that the importance of all columns may cost together
FEWEST = 100  # rows for each column, if there are so many
TOGETHER = 8192  # rows of several columns at a time: a call takes a while, however few they are


class Importance:
    """`feature_importance` of `LGCPClassifier`."""

    if TYPE_CHECKING:
        mean_: NDArray
        n_jobs: int | None
        columns_: Any
        _training: Training
        _covariances: PerClass
        _class_names: Any
        _means: Any
        _refuse_soft_labels: Any

    def feature_importance(self, n_rows: int | None = None, random_state=0) -> dict[str, NDArray]:
        """What each column of the table is worth: how much the leave-one-out log loss grows if its cells are shuffled.

        A row is predicted from all others, in closed form, with the cell of one column replaced by that of another
        row. All that a column became, such as the levels of a category, is replaced together. Nothing is fitted again.
        Of two columns that say the same, each is worth little as long as the other is there.

        Parameters
        ----------
        n_rows : int, default=None
            How many rows, drawn at random, to predict, the same ones for each column. None for so many that all columns
            together cost about three passes of leave-one-out, but at least 100.
        random_state : int, RandomState, Generator or None, default=0
            How rows are drawn and shuffled.

        Returns
        -------
        dict of arrays
            One entry per column, in the order of the table, ready for a data frame: "column", its name or place;
            "importance", the mean growth of the log loss per row; "standard_error" of this mean.

        Examples
        --------
        >>> import numpy as np
        >>> from coxfield import LGCPClassifier
        >>> X = np.random.default_rng(0).normal(size=(150, 3))
        >>> found = LGCPClassifier().fit(X, X[:, 1] > 0).feature_importance()
        >>> print(found["column"][found["importance"].argmax()])
        1
        """
        check_is_fitted(self)
        self._refuse_soft_labels("feature_importance")
        held = self._training.rows
        if sparse.issparse(held.like):
            raise ValueError("feature_importance needs dense points: fit on a dense array")
        owners = np.arange(held.n_features) if self.columns_ is None else self.columns_.owners
        names = self._column_names(owners)
        n, rng = len(held), generator(random_state)
        n_rows = min(n, max(FEWEST, PASSES * n // len(names)) if n_rows is None else whole_number("n_rows", n_rows))
        X, asked, found = at_home(held.X), [-1, *np.unique(owners)], np.zeros((2, len(names)))
        rows = np.sort(rng.permutation(n)[:n_rows])
        moved, losses = np.ones((len(asked), n_rows), bool), np.zeros((len(asked), n_rows))
        with threads.use(self.n_jobs), progress("importance", len(asked), None) as done:
            for some in gen_batches(len(asked), max(1, TOGETHER // n_rows)):
                shuffled = np.repeat(X[rows][None], len(asked[some]), axis=0)
                for k, each, new in zip(asked[some], shuffled, moved[some], strict=True):
                    if k >= 0:
                        each[:, owners == k] = X[rng.permutation(n)[:n_rows]][:, owners == k]
                        new[:] = (each != X[rows]).any(axis=1)  # an equal cell has the same loss
                which, at = np.nonzero(moved[some])
                losses[some][which, at] = self._loo_losses(rows[at], shuffled[which, at])
                done(len(shuffled))
        growth = np.where(moved, losses - losses[0], 0)
        for k, each in zip(asked[1:], growth[1:], strict=True):
            found[:, k] = weighted_mean(each, held.counts[rows])
        return {"column": names, "importance": found[0], "standard_error": found[1]}

    def _column_names(self, owners: NDArray) -> NDArray:
        if self.columns_ is not None:
            return np.array([column.name for column in self.columns_.columns], dtype=object)
        return getattr(self, "feature_names_in_", np.arange(len(owners)))

    def _loo_losses(self, rows: NDArray, X: NDArray) -> NDArray:
        """-log of the probability of the class of each row from all others, if the features of the row were X."""
        held, store = self._training.rows, self._training.store
        numbers, (different, place) = held.numbers[rows], np.unique(rows, return_inverse=True)
        own, queries = store.queries(rows_of(held.X, different)), store.queries(like(X, held.X))
        pairs: Any = zip(queries, own, strict=True)
        left = [
            mine.left_out(numbers, theirs[place]) if isinstance(mine, MixturePoints) else mine for mine, theirs in pairs
        ]
        sums = sums_at(store, left, len(rows), numbers)
        scores = Scores(prior_terms(self._covariances, X, self._means), sums)
        return -scores.log_probabilities[np.arange(len(rows)), held.y[rows]]


# How far the labels of training points can be trusted, by closed-form leave-one-out.


class LabelQuality:
    """`label_quality` of `LGCPClassifier`."""

    if TYPE_CHECKING:
        classes_: NDArray
        _class_names: Any
        _training: Training

        @property
        def _weights(self) -> NDArray | None: ...

        @property
        def _precision(self): ...

        def _loo_scores(self) -> Scores: ...

    def label_quality(self) -> dict[str, NDArray]:
        r"""Which training labels are doubtful: what all other points say about the label of each point.

        Each point is predicted from all the others, in closed form, without another fit. A label is doubtful if
        another class is far more probable there. Points are ranked by the margin, which is a difference of log
        probabilities:

        .. math:: m_j = \log p(y_j \mid x_j, \text{others}) - \max_{c \ne y_j} \log p(c \mid x_j, \text{others})

        Margins are computed from scores. So they differ even if probabilities are rounded to 0 or 1.

        Returns
        -------
        dict of arrays
            One entry per training point, in the order of `X_fit_`, ready for a data frame. "row" is the row in
            `X_fit_`, which is that of X if no sample weight is zero. "label" is the given label, and "probability" is
            its leave-one-out probability. "suggested" is the label that the other points suggest, as by `loo_predict`,
            and "suggested_probability" is its probability. "rank" is 0 for the most doubtful label, 1 for the next,
            and so on. If margins are equal, labels that differ from the suggested ones come first, and then the
            order is that of the rows.

        Notes
        -----
        If a point has a distribution over the classes instead of one label, as in `classifier_` of an
        `SLGCPClassifier`, "label" is the class of the largest share, and "probability" and the margin are the
        means over the distribution.

        Examples
        --------
        One of 250 labels is changed, and it is among the five most doubtful ones:

        >>> from coxfield import LGCPClassifier
        >>> from coxfield.datasets import load_synth
        >>> X, y, *_ = load_synth(return_X_y=True)
        >>> y[7] = 1 - y[7]
        >>> quality = LGCPClassifier().fit(X, y).label_quality()
        >>> bool(quality["rank"][7] < 5), int(quality["label"][7]), int(quality["suggested"][7])
        (True, 1, 0)
        """
        scores = self._loo_scores()  # says it if nothing is fitted
        return quality_of(scores, self._class_names, self._training.rows.y, self._weights, precision=self._precision)


class FewLabelsQuality:
    """`label_quality` of `SLGCPClassifier`."""

    if TYPE_CHECKING:
        classes_: NDArray
        inference_: str
        classifier_: Any
        _few_labels: Any

    def label_quality(self) -> dict[str, NDArray]:
        """Which of the given labels are doubtful: what all other labels say about each, along the shape of all points.

        The same table as `LGCPClassifier.label_quality`, for the labelled points alone. It needs
        `inference="mixture"`, or labels at all points. A label field gives each label to its neighbours, and
        afterwards they would confirm it.

        Returns
        -------
        dict of arrays
            One entry per labelled point. "row" is its row in X. A label that no other point has cannot be compared.
            Its probabilities are NaN, and it comes last.

        Examples
        --------
        Two rings with ten labels on each, one of them wrong:

        >>> import numpy as np
        >>> from coxfield import SLGCPClassifier
        >>> from coxfield.datasets import make_circles
        >>> X, truth = make_circles(2, random_state=3)
        >>> y = np.where(np.arange(len(truth)) % 15 == 0, truth, -1)
        >>> y[30] = 1 - y[30]
        >>> quality = SLGCPClassifier().fit(X, y).label_quality()
        >>> print(len(quality["row"]), "labels, the most doubtful in row", quality["row"][quality["rank"] == 0])
        20 labels, the most doubtful in row [30]
        """
        check_is_fitted(self)
        if self.inference_ == "mixture":
            return self._quality_of_few()
        weights = self.classifier_._weights
        if weights is not None and weights.ndim == 2:
            raise ValueError(
                f"inference={self.inference_!r} has given each label to its neighbours, and these would confirm it: "
                "fit with kernel=None and inference='mixture', or fit an LGCPClassifier to the labelled points alone"
            )
        return self.classifier_.label_quality()

    def _quality_of_few(self) -> dict[str, NDArray]:
        few = self._few_labels
        codes = few.distributions[few.rows].argmax(axis=1)
        single = np.bincount(codes)[codes] == 1
        if single.all():
            raise ValueError(
                f"each of {len(codes)} classes has one label, so no label can be compared with another one of its "
                "class: give more labels"
            )
        logs = logs_of(few.left_out)
        logs[single] = logs_of(np.eye(logs.shape[1])[codes[single]])  # nothing speaks against these labels
        quality = quality_of(StatedScores(logs), self.classes_, codes) | {"row": few.rows}
        for name in ("probability", "suggested_probability"):
            quality[name][single] = np.nan
        return quality


def quality_of(
    scores: Scores | StatedScores,
    classes: NDArray,
    codes: NDArray,
    weights: NDArray | None = None,
    *,
    precision=float,
) -> dict[str, NDArray]:
    """The table of `LabelQuality.label_quality`, from any scores that do not use a point's own label.

    Parameters
    ----------
    scores : Scores or StatedScores
        Of n points; the scores of a point come from the other points.
    classes : array of shape (n_classes,)
    codes : array of shape (n,)
        Class number of the label of each point.
    weights : array of shape (n,) or (n, n_classes), optional
        With two dimensions, the shares of the classes in the label of each point. Other weights do not count here.
    precision : dtype
        Of the probabilities that are returned.
    """
    rows, suggested = np.arange(len(codes)), scores.decisions
    probabilities = np.exp(scores.log_probabilities)
    given = of_label(probabilities, codes, weights)
    margin = of_label(class_margins(scores.relative), codes, weights)
    return {
        "row": rows,
        "label": classes[codes],
        "probability": given.astype(precision),
        "suggested": classes[suggested],
        "suggested_probability": probabilities[rows, suggested].astype(precision),
        "rank": ranks(margin, suggested == codes),
    }


def class_margins(scores: NDArray) -> NDArray:
    """Each score minus the largest score of the other classes; the constant per row of the scores cancels."""
    first = scores.argmax(axis=1)[:, None]
    second, best = np.moveaxis(np.partition(scores, [-2, -1], axis=1)[:, -2:], 1, 0)
    others = np.where(np.arange(scores.shape[1]) == first, second[:, None], best[:, None])
    return scores - others


def of_label(values: NDArray, codes: NDArray, weights: NDArray | None) -> NDArray:
    """The value at the label of each row, or the mean over its distribution if it has one."""
    if weights is None or weights.ndim == 1:
        return values[np.arange(len(codes)), codes]
    shares = weights / weights.sum(axis=1, keepdims=True)
    return np.sum(shares * np.where(shares > 0, values, 0), axis=1)  # an infinite margin may have no share


def ranks(margin: NDArray, agrees: NDArray) -> NDArray:
    """Place of each row in the order of the margins; equal margins are ordered by `agrees`, and then by row."""
    order = np.lexsort((agrees, margin))  # stable
    places = np.empty(len(order), dtype=int)
    places[order] = np.arange(len(order))
    return places

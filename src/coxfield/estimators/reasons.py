"""The reasons of a prediction: which training rows speak for which class, and how loudly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from coxfield import threads
from coxfield.engine.decision import Scores, prior_terms
from coxfield.engine.witnesses import witnesses
from coxfield.estimators.live_state import listed_places
from coxfield.kernels.named_rows import rows_named
from coxfield.progress import progress
from coxfield.utils.numbers import whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.training import Training
    from coxfield.kernels.per_class import PerClass

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
    _need_numpy: Any

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
        self._need_numpy("contributions", X)
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
        self._need_numpy("loo_contributions")
        top, held = whole_number("top", top), self._training.rows
        places = listed_places(rows, len(held))
        if not len(places):
            raise ValueError("rows names no training row: give at least one")
        return self._contributions(held.X[places], top, held.numbers[places])

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
                heard = witnesses(self._training.store, X[part], top, left)
                prior = prior_terms(self._covariances, X[part], self.mean_)
                scores = Scores(prior, heard.sums).values
                rows = np.where(heard.rows < 0, -1, np.searchsorted(numbers, heard.rows))
                rest = scores - heard.terms.sum(axis=2)
                found.append((rows, heard.terms, rest, np.broadcast_to(prior, rest.shape)))
                done(part.stop - part.start)
        return Contributions(self.classes_, *(np.concatenate(arrays) for arrays in zip(*found, strict=True)))

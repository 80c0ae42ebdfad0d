"""How far the labels of training points can be trusted, by closed-form leave-one-out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coxfield.engine.decision import StatedScores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.decision import Scores


class LabelQuality:
    """`label_quality` of `LGCPClassifier`."""

    if TYPE_CHECKING:
        classes_: NDArray
        _need_numpy: Any

        @property
        def y_fit_(self) -> NDArray: ...  # noqa: D102

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
        self._need_numpy("label_quality")
        scores = self._loo_scores()  # says it if nothing is fitted
        return quality_of(scores, self.classes_, self.y_fit_, self._weights, precision=self._precision)


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
        with np.errstate(divide="ignore"):
            logs = np.log(few.left_out)
            logs[single] = np.log(np.eye(logs.shape[1])[codes[single]])  # nothing speaks against these labels
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

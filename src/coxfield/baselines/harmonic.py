"""`HarmonicFunctions`: labels spread over a graph by a random walk (Zhu, Ghahramani and Lafferty 2003).

The harmonic function f solves L f = 0 at the unlabelled points and equals the given labels at the labelled points. L is
the Laplacian of the complete graph with weights exp(-|x - x'|^2 / 2 l^2). f is also a probability: that a random walk,
whose steps follow the weights, reaches a labelled point of the class first.

At short length scales the weights span hundreds of orders of magnitude, and the usual linear solve loses every digit:
two outliers that are neighbours of each other make the Laplacian singular to working precision. Here the unlabelled
states are eliminated from the walk one after another, with sums and products of positive numbers only (Grassmann,
Taksar and Heyman 1985). So nearly all digits of f are right as long as the weights do not underflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import pdist, squareform
from scipy.special import softmax
from sklearn.metrics import pairwise_distances_chunked

from coxfield.baselines.base import Baseline, candidates, check_length_scale, in_unit, log_kernel, unit_of
from coxfield.estimators.validation import check_points, known_class_numbers
from coxfield.progress import progress
from coxfield.selection.grid import folds
from coxfield.selection.loo import SelectionPath
from coxfield.utils.numbers import check_folds

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


BLOCK = 48  # states eliminated between two matrix products: fastest for a thousand states; sizes nearby are as good
VANISHED = 1e-200  # a step so improbable relative to the likeliest is dropped: products of two such numbers underflow
# Connected graphs come first, then the least error, then the least log loss.
CRITERIA = ("apart", "cv_error", "cv_log_loss")
LEAST = 1e-12  # smallest likelihood that is counted: the loss of one label must not outweigh all others


@dataclass(frozen=True)
class Walk:
    """A random walk that is observed only at the states that were kept."""

    steps: NDArray
    """Weights of the steps between kept states, each row up to a factor; shape (kept, kept)."""
    arrival: NDArray
    """Probability that a walk from an eliminated state reaches each kept state first, (eliminated, kept)."""
    connected: bool
    """Whether every eliminated state reaches a kept one by weights that have not underflowed."""


def eliminate(weights: NDArray, count: int, block: int = BLOCK, done=None) -> Walk:
    """Eliminate the first `count` states from a random walk, without subtractions.

    Parameters
    ----------
    weights : array of shape (n, n)
        Not negative. A step goes from i to j with a probability proportional to `weights[i, j]`. The diagonal only
        delays the walk and is ignored.
    count : int
        States to eliminate; fewer than n.
    block : int
        States eliminated between two matrix products.
    done : callable, optional
        Called with shares of the work, which add up to 1.

    Examples
    --------
    From the middle of a line of three states the walk goes left with probability 1/4:

    >>> import numpy as np
    >>> eliminate(np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 0.0], [3.0, 0.0, 0.0]]), 1).arrival
    array([[0.25, 0.75]])
    """
    P = np.array(weights, dtype=float)
    connected = True
    for start in range(0, count, block):
        stop = min(start + block, count)
        connected &= _eliminate_rows(P[start:stop], start)
        rest, between = P[stop:], P[start:stop, start:stop]
        # X = P[rest, block] (1 - between)^-1: visits to the block, including those through its other states.
        visits = solve_triangular(-between.T, rest[:, start:stop].T, lower=True, unit_diagonal=True).T
        rest[:, stop:] += visits @ P[start:stop, stop:]
        if done is not None:
            done(((len(P) - start) ** 3 - (len(P) - stop) ** 3) / (len(P) ** 3 - (len(P) - count) ** 3))
    # Back substitution. All terms are non-negative, so it only adds.
    arrival = solve_triangular(-P[:count, :count], P[:count, count:], unit_diagonal=True)
    return Walk(P[count:, count:], arrival, bool(connected))


def _eliminate_rows(rows: NDArray, start: int) -> bool:
    """Turn each row into probabilities of the next later state; False if a row has no later state to reach."""
    connected = True
    for k in range(len(rows)):
        later = rows[k, start + k + 1 :]
        exits = later.sum()
        connected &= bool(exits > 0)
        later /= max(exits, np.finfo(float).tiny)
        rows[k + 1 :, start + k + 1 :] += np.outer(rows[k + 1 :, start + k], later)
    return connected


def step_weights(d2: NDArray, length_scale: float) -> NDArray:
    """Weights of the steps between all pairs, each row relative to its nearest neighbour: rows differ in scale."""
    logs = log_kernel(d2, length_scale)
    np.fill_diagonal(logs, -np.inf)
    nearest = logs.max(axis=1, keepdims=True)
    logs -= np.where(np.isneginf(nearest), 0, nearest)
    weights = np.exp(logs, out=logs)
    weights[weights < VANISHED] = 0
    return weights


@dataclass(frozen=True)
class Graph:
    """Squared distances of all points, unlabelled ones first, and the labels of the others as indicators."""

    d2: NDArray
    unit: float
    """The unit of the distances: length scales are divided by it."""
    indicators: NDArray
    """Shape (labelled, classes)."""
    class_mass_normalisation: bool

    @property
    def n_unlabelled(self) -> int:
        """Number of points without a label."""
        return len(self.d2) - len(self.indicators)

    def walk(self, length_scale: float, done=None) -> Walk:
        """The walk between labelled points through the unlabelled ones; `done` is called with shares of the work."""
        return eliminate(step_weights(self.d2, length_scale / self.unit), self.n_unlabelled, done=done)

    def distributions(self, walk: Walk) -> NDArray:
        """Harmonic functions at the unlabelled points, one column per class."""
        f = walk.arrival @ self.indicators
        return self.normalised(f, f.sum(axis=0), self.indicators)

    def normalised(self, f: NDArray, mass: NDArray, indicators: NDArray) -> NDArray:
        """The rows f, rescaled so that the mass of each class is its share of the labels, if that was asked for."""
        if self.class_mass_normalisation:
            f = f * (indicators.mean(axis=0) / np.maximum(mass, np.finfo(float).tiny))
        return f / np.maximum(f.sum(axis=1, keepdims=True), np.finfo(float).tiny)

    def held_out(self, walk: Walk, hidden: NDArray) -> NDArray:
        """Harmonic functions at some labelled points when their labels are hidden too.

        Only the walk between labelled points is needed. Eliminating a few more states replaces the solution of the
        whole system.
        """
        visible = np.setdiff1d(np.arange(len(self.indicators)), hidden)
        order, shown = np.concatenate([hidden, visible]), self.indicators[visible]
        f = eliminate(walk.steps[np.ix_(order, order)], len(hidden)).arrival @ shown
        arrivals = walk.arrival.sum(axis=0)  # expected number of unlabelled points that end at each label
        mass = arrivals[visible] @ shown + arrivals[hidden] @ f + f.sum(axis=0)
        return self.normalised(f, mass, shown)


def harmonic_path(graph: Graph, hidden: list[NDArray], length_scales: NDArray) -> SelectionPath:
    """Cross-validated error and log loss of each length scale, with one elimination of the unlabelled points for each.

    Parameters
    ----------
    graph : Graph
    hidden : list of arrays
        Numbers of labelled points to hide together.
    length_scales : array
    """
    rows, truth = np.concatenate(hidden), graph.indicators.argmax(axis=1)

    def tried(length_scale: float, done) -> dict[str, float]:
        walk = graph.walk(length_scale, done)
        f = np.concatenate([graph.held_out(walk, fold) for fold in hidden])
        likelihood = np.maximum(f[np.arange(len(rows)), truth[rows]], LEAST)
        wrong = (f.argmax(axis=1) != truth[rows]) | ~f.any(axis=1)  # if f is 0, the way to every label has underflowed
        losses = {"cv_error": float(wrong.mean()), "cv_log_loss": float(-np.log(likelihood).mean())}
        return {"factor": length_scale, **losses, "connected": walk.connected, "apart": not walk.connected}

    title, faster = f"harmonic functions, {len(length_scales)} length scales", "fewer length_scales take less time"
    with progress(title, len(length_scales), None, faster) as done:
        return SelectionPath.of([tried(length_scale, done) for length_scale in length_scales.tolist()], CRITERIA)


class HarmonicFunctions(Baseline):
    r"""Label the unlabelled points by harmonic functions on the complete graph of all points (Zhu et al. 2003).

    For each class the function f is 1 at its labelled points and 0 at those of other classes. Everywhere else it is
    the mean of f at all other points with the weights

    .. math:: w_{ij} = e^{-|x_i - x_j|^2 / 2 l^2}.

    The system is dense. Fitting holds matrices of n x n numbers and takes O(n^3) time for each length scale tried, so n
    can be a few thousand. All folds of the cross validation share one elimination of the unlabelled points.

    Parameters
    ----------
    length_scale : float, default=None
        Length scale l of the weights. None chooses it by the 0-1 loss of the labelled points in cross validation that
        uses all other points too. Errors of a few labels often tie. Then the log loss of the hidden labels decides.
    class_mass_normalisation : bool, default=False
        Rescale the functions so that the total mass of each class over the unlabelled points is proportional to its
        number of labels. Without it, a class with few labels may lose its points to another class, and at long length
        scales one class may take all points.
    length_scales : array-like, default=None
        Length scales tried. None for the 24 that `SLGCPClassifier` tries.
    n_folds : int, default=10
        Folds of the cross validation; at most one per labelled point.
    missing_label : int, float, str or None, default=-1
        The mark of an unknown label in y, one value. None, NaN and NaT mean the same.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_samples,)
        Label of every training point: the given one, or the class of largest f.
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        The functions f at every training point; rows sum to 1.
    length_scale_ : float
        The length scale in use.
    selection_path_ : dict of arrays
        What was tried: "length_scale", "cv_error", "cv_log_loss", "connected" and "chosen". Absent if `length_scale`
        was given.
    X_fit_ : ndarray of shape (n_samples, n_features)
        The training points.

    Examples
    --------
    Two rings, one label in twenty:

    >>> import numpy as np
    >>> from coxfield.baselines import HarmonicFunctions
    >>> from coxfield.datasets import make_circles
    >>> X, truth = make_circles(2, random_state=3)
    >>> y = np.where(np.arange(len(truth)) % 20 == 0, truth, -1)
    >>> clf = HarmonicFunctions().fit(X, y)
    >>> int(np.sum(clf.transduction_ != truth))
    0
    """

    def __init__(
        self,
        length_scale: float | None = None,
        *,
        class_mass_normalisation: bool = False,
        length_scales: ArrayLike | None = None,
        n_folds: int = 10,
        missing_label: Any = -1,
    ) -> None:
        self.length_scale = length_scale
        self.class_mass_normalisation = class_mass_normalisation
        self.length_scales = length_scales
        self.n_folds = n_folds
        self.missing_label = missing_label

    def fit(self, X, y) -> Self:
        """Label the unlabelled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels, with `missing_label` where they are unknown.

        Returns
        -------
        self
        """
        check_folds(self.n_folds)
        self.__dict__.pop("selection_path_", None)  # of an earlier fit
        X = self.X_fit_ = check_points(self, X, dtype=np.float64)
        self.classes_, codes = known_class_numbers(y, self.missing_label, X, self)
        order = np.argsort(codes >= 0, kind="stable")
        indicators = np.eye(len(self.classes_))[codes[codes >= 0]]
        self._unit = unit_of(X)
        d2 = squareform(pdist(in_unit(X[order], self._unit), "sqeuclidean"))
        graph = Graph(d2, self._unit, indicators, self.class_mass_normalisation)
        chosen = self.length_scale is None
        self.length_scale_ = self._select(graph, codes) if chosen else check_length_scale(self.length_scale)
        walk = graph.walk(self.length_scale_)
        if not walk.connected:
            raise ValueError(
                f"at length_scale={self.length_scale_:.3g} some points are linked to no label, because the weights "
                "between them underflow: give a longer one"
            )
        self.label_distributions_ = np.empty((len(X), len(self.classes_)))
        self.label_distributions_[order] = np.concatenate([graph.distributions(walk), indicators])
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        return self

    def _select(self, graph: Graph, codes) -> float:
        """The length scale that cross validation prefers."""
        labelled = np.flatnonzero(codes >= 0)
        hidden = [np.searchsorted(labelled, fold) for fold in folds(codes, self.n_folds)]
        path = harmonic_path(graph, hidden, candidates(self.X_fit_, self.length_scales))
        self.selection_path_ = path.table()
        del self.selection_path_["apart"]  # the opposite of "connected", because the least value wins
        return path.chosen("factor")

    def predict_proba(self, X) -> NDArray:
        """Harmonic extension to new points: the mean of f over all training points with the weights w.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        X = self._queries(X)

        def extend(d2: NDArray, start: int) -> NDArray:
            d2 -= d2.min(axis=1, keepdims=True)  # only differences count, and the least of them is a number
            return softmax(log_kernel(d2, self.length_scale_ / self._unit), axis=1) @ self.label_distributions_

        known, new = in_unit(self.X_fit_, self._unit), in_unit(X, self._unit)
        return np.concatenate([*pairwise_distances_chunked(new, known, reduce_func=extend, metric="sqeuclidean")])

    def _decisions(self, X) -> NDArray:
        return self.predict_proba(X)

"""Representations of points: ranks, compression, whitening, categories beside numbers, and transformers of users."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.special import ndtri
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from coxfield.kernels.namespace import Library, at_home, is_foreign, precision, to_numpy
from coxfield.kernels.protocol import PointsError
from coxfield.kernels.sklearn_tree import REAL, call_noted, counted, kind_of, name_of
from coxfield.utils.numbers import units_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


# Features with heavy tails, outliers or codes such as 9999: normal scores of their ranks, and compression.
#
# A few very large values make the standard deviation of a feature useless as its unit: almost all points are then at
# the same place. Ranks do not see how large the values are. Compression is like a logarithm, but for numbers of
# either sign: linear near the median and logarithmic far from it. Neither has a bound, so what is far from all points
# stays far.


QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
FAR = 8.0  # spreads from the median: values beyond that say nothing about the unit of a feature
KNOTS = 100  # per feature; the line between two of them is shorter than the step from rank to rank of a few rows
AT_A_TIME = 64  # features that are moved nearer to their medians
LINEAR = 0.1  # of the distance between the quartiles: nearer to the median, the compression is linear


class NormalScores(TransformerMixin, BaseEstimator):
    """Ranks as normal scores, feature by feature, and linear between a few knots and beyond them.

    The value whose rank is the share p of all values becomes the p-quantile of the standard normal distribution. Equal
    values share their mean rank. Beyond the data, a unit is the spread of the middle half of the values. Knots are half
    way between two values, so that no value of a row is kept.

    Attributes
    ----------
    values_, scores_ : arrays of shape (n_knots, n_features)
        At most `KNOTS` places between values of each feature, ascending, and their scores; the last may be repeated.
    slopes_ : array of shape (n_features,)
        Of the lines beyond the data.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [3.0], [1e6]])
    >>> NormalScores().fit(X).transform(X).round(1).ravel().tolist()
    [-1.2, -0.4, 0.0, 1.2]
    """

    def fit(self, X, y=None):
        """Learn the ranks of the values; weights of points play no part."""
        knots, slopes = [], []
        for column in np.asarray(X, dtype=float).T:
            values, counts = np.unique(column, return_counts=True)
            scores = ndtri((np.cumsum(counts) - counts / 2) / len(column))
            places, between = _half_way(values), _half_way(scores)
            kept = np.unique(np.searchsorted(between, np.linspace(between[0], between[-1], KNOTS)))
            kept = kept if len(places) > KNOTS else np.arange(len(places))
            knots.append((places[kept], between[kept]))
            low, high = np.quantile(column, [0.25, 0.75])
            spread = (high - low) / 1.349  # of a normal distribution, the standard deviation
            spread = spread if spread > 0 else np.ptp(values)
            slopes.append(1 / spread if spread > 0 else 1.0)
        most = max(len(values) for values, _ in knots)
        padded = [[np.pad(each, (0, most - len(each)), mode="edge") for each in pair] for pair in knots]
        self.values_, self.scores_ = np.transpose(padded, (1, 2, 0))
        self.slopes_ = np.minimum(slopes, np.finfo(X.dtype).max)
        return self

    def transform(self, X):
        """Scores of points."""
        check_is_fitted(self)
        found = np.empty(X.shape, X.dtype)
        largest = np.finfo(X.dtype).max / 4
        for k, (values, scores) in enumerate(zip(self.values_.T, self.scores_.T, strict=True)):
            column = X[:, k].astype(float)
            inside = np.interp(column, values, scores)
            steep = ~np.isfinite(inside)  # between knots that are so near that the slope overflows
            inside[steep] = scores[np.searchsorted(values, column[steep]).clip(max=len(scores) - 1)]
            with np.errstate(over="ignore"):
                beyond = (column - np.clip(column, values[0], values[-1])) * self.slopes_[k]
                found[:, k] = np.clip(inside + beyond, -largest, largest)
        return found


def _half_way(values: NDArray) -> NDArray:
    """The middles of neighbouring values, and one place as far beyond either end."""
    if len(values) == 1:
        return values + np.array([-1.0, 1.0])
    middles = values[:-1] / 2 + values[1:] / 2
    return np.array([2 * values[0] - middles[0], *middles, 2 * values[-1] - middles[-1]])


class Compression(TransformerMixin, BaseEstimator):
    """asinh((x - median) / (0.1 times the distance between the quartiles)), feature by feature.

    Attributes
    ----------
    centre_, scale_ : arrays of shape (n_features,)

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0], [1e6]])
    >>> Compression().fit(X).transform(X).round(1).ravel().tolist()
    [-3.0, -2.3, 0.0, 2.3, 16.1]
    """

    def fit(self, X, y=None):
        """Learn the median and the unit of each feature; weights of points play no part."""
        low, self.centre_, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0).astype(X.dtype)
        scale = LINEAR * (high - low)
        # If half of the values are the same, the standard deviation of the feature has to do.
        self.scale_ = np.where(scale > 0, scale, X.std(axis=0))
        self.scale_[~(self.scale_ > 0)] = 1
        return self

    def transform(self, X):
        """Compressed points."""
        check_is_fitted(self)
        largest = np.finfo(X.dtype).max
        with np.errstate(over="ignore"):
            return np.arcsinh(np.clip((X - self.centre_) / self.scale_, -largest, largest))


def winsorised(X) -> NDArray:
    """The values of each feature, moved to within `FAR` spreads of its median.

    The spread is that of the middle half of the values, of nine tenths if the half is all the same, or of 98 per cent.

    Examples
    --------
    >>> winsorised(np.array([[1.0], [2.0], [3.0], [4.0], [1e6]])).round(1).ravel().tolist()
    [1.0, 2.0, 3.0, 4.0, 14.9]
    """
    found = np.empty(X.shape, X.dtype)
    for some in gen_batches(X.shape[1], AT_A_TIME):  # in double precision, and quantiles need a copy
        found[:, some] = _winsorised(X[:, some])
    return found


def _winsorised(X) -> NDArray:
    spread = np.full(X.shape[1], np.inf)
    with np.errstate(over="ignore", invalid="ignore"):  # where the spread overflows, no value is moved
        levels = np.quantile(X, QUANTILES, axis=0)
        for low, high in ((0, 6), (1, 5), (2, 4)):
            of_normal = ndtri(QUANTILES[high]) - ndtri(QUANTILES[low])
            width = (levels[high] - levels[low]) / of_normal
            spread = np.where(width > 0, width, spread)
        least, most = levels[3] - FAR * spread, levels[3] + FAR * spread
    return np.fmin(np.fmax(X, least), most)  # unlike `clip`, they pass NaN over


# Whitening by the covariance within classes: features in which every class is as wide as every other direction.
#
# The covariance within classes S is shrunk towards a multiple of the identity by the rule of Ledoit and Wolf, so that
# it can be inverted even if there are more features than points. The whitening uses labels. So leave-one-out must
# leave out the label of a point here as well. With the shrinkage and the scaling held, the covariance without point j
# is S - c_j e_j e_j', where e_j is the residual of the point from the mean of its class. The inverse changes by one
# rank, so that squared distances from point j become |z_j - z|^2 + kappa_j (r_j . (z_j - z))^2 with the whitened
# residual r_j.


RANK = 1e-10  # directions of the data whose variance is a smaller share of the largest are rounding


class Whitening(TransformerMixin, BaseEstimator):
    """Standardise the features, then whiten them by their covariance within classes.

    Attributes
    ----------
    matrix_ : array of shape (n_features, n_directions)
        The whitened points are (x - origin_) @ matrix_.
    origin_ : array of shape (n_features,)
    shrinkage_ : float
        The weight of the identity in the covariance that was inverted.
    class_means_ : array of shape (n_classes, n_directions)
        Means of the whitened classes.
    labels_ : array of shape (n_samples,)
        Class number of each point that `fit` saw; -1 of a point that came later.
    removal_ : array of shape (n_samples,)
        c_j of each of these points: what leaving it out takes from the covariance.
    moved_, moved_points_ : arrays of shape (n_moved,) and (n_moved, n_directions)
        Places of points with very far values, and where they were moved to before the covariance was taken.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(200) % 2
    >>> X = rng.normal(size=(200, 2)) @ [[1000.0, 0.9], [0.0, 0.3]] + y[:, None]
    >>> Z = Whitening().fit(X, y).transform(X)
    >>> within = Z - np.stack([Z[y == c].mean(axis=0) for c in (0, 1)])[y]
    >>> print(f"{abs(np.corrcoef(within.T)[0, 1]):.2f}")  # 0.95 before
    0.00
    """

    def fit(self, X, y, sample_weight: NDArray | None = None, caution: float = 1.0):
        """Learn the whitening from points with labels.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            A point of weight w counts as w points.
        caution : float
            Times the shrinkage of Ledoit and Wolf.
        """
        given, X = X, winsorised(X)  # one far value is not the spread of a feature
        self.moved_ = np.flatnonzero((given != X).any(axis=1))
        moved_rows = X[self.moved_]
        classes, labels = np.unique(y, return_inverse=True)
        weights = np.ones(len(X)) if sample_weight is None else sample_weight.astype(float)
        total = weights.sum()
        self.origin_ = (np.einsum("j,jd->d", weights, X, dtype=float) / total).astype(X.dtype)
        Z = X
        Z -= self.origin_  # in place, here and below: the points may fill the memory
        scale = np.sqrt(np.einsum("j,jd,jd->d", weights, Z, Z, dtype=float) / total)
        scale[scale <= 8 * np.finfo(X.dtype).eps * np.abs(self.origin_)] = 1  # a constant column, up to rounding
        Z /= scale.astype(X.dtype)
        basis = _row_space(Z)
        Z = Z if basis is None else Z @ basis
        means = _class_means(Z, labels, weights, len(classes))
        for c, mean in enumerate(means.astype(Z.dtype)):
            Z[labels == c] -= mean
        self.shrinkage_, back = _whitener(Z, weights, caution)
        step = back if basis is None else basis @ back
        self.matrix_ = (step / scale[:, None]).astype(X.dtype)
        self.class_means_, self.labels_ = means @ back, labels
        of_class = np.bincount(labels, weights)[labels]
        with np.errstate(divide="ignore"):  # the only point of a class: its residual is 0
            rest = np.where(of_class > weights, weights * of_class / (of_class - weights), 0)
        self.removal_ = (1 - self.shrinkage_) * rest / total
        self.moved_points_ = self.transform(moved_rows)
        return self

    def transform(self, X):
        """Whitened points, shape (n_samples, n_directions)."""
        check_is_fitted(self)
        return (X - self.origin_) @ self.matrix_

    def reindexed(self, origin: NDArray) -> Whitening:
        """The same whitening for other points: `origin` is the place of each among those that `fit` saw, -1 for none.

        Of points that are not among them no entry is left. A class that had no other points has no mean any more. The
        matrix stays: it is a summary of all points.
        """
        new = copy(self)
        seen = origin >= 0
        new.labels_, new.removal_ = np.where(seen, self.labels_[origin], -1), np.where(seen, self.removal_[origin], 0)
        new.class_means_ = self.class_means_.copy()
        new.class_means_[np.setdiff1d(np.arange(len(self.class_means_)), new.labels_)] = 0
        new.moved_ = np.flatnonzero(np.isin(origin, self.moved_))
        new.moved_points_ = self.moved_points_[np.searchsorted(self.moved_, origin[new.moved_])]
        return new

    def left_out(self, Z: NDArray, rows: NDArray) -> tuple[NDArray, NDArray]:
        """Directions r_j and factors kappa_j by which distances from a point grow when its label is left out.

        Parameters
        ----------
        Z : array of shape (n, n_directions)
            Whitened points.
        rows : integer array of shape (n,)
            The row of each of them among the points that `fit` saw; -1 for a point that it did not see.
        """
        moved = np.isin(rows, self.moved_)
        if moved.any():
            Z = Z.copy()
            Z[moved] = self.moved_points_[np.searchsorted(self.moved_, rows[moved])]
        residuals = Z - self.class_means_[self.labels_[rows]].astype(Z.dtype)
        removal = np.where(rows >= 0, self.removal_[rows], 0)
        kept = 1 - removal * np.einsum("jd,jd->j", residuals, residuals, dtype=float)
        return residuals, removal / np.maximum(kept, np.finfo(float).eps)


def _row_space(Z: NDArray) -> NDArray | None:
    """An orthonormal basis of the span of the rows if there are fewer rows than features, None otherwise."""
    if Z.shape[1] <= Z.shape[0]:
        return None
    Z = Z.astype(float, copy=False)
    squares, U = np.linalg.eigh(Z @ Z.T)
    kept = squares > RANK * max(squares.max(), np.finfo(float).tiny)
    return Z.T @ (U[:, kept] / np.sqrt(squares[kept]))


def _class_means(Z: NDArray, labels: NDArray, weights: NDArray, n_classes: int) -> NDArray:
    means = np.zeros((n_classes, Z.shape[1]))
    for c in range(n_classes):
        mine = labels == c
        means[c] = np.einsum("j,jd->d", weights[mine], Z[mine], dtype=float) / weights[mine].sum()
    return means


def _whitener(residuals: NDArray, weights: NDArray, caution: float = 1.0) -> tuple[float, NDArray]:
    """Shrinkage and inverse root of the covariance of residuals."""
    total, d = weights.sum(), residuals.shape[1]
    if not residuals.any():
        raise ValueError("every class is a single point, so there is no covariance within classes to whiten by")
    S = ((residuals * weights[:, None].astype(residuals.dtype)).T @ residuals).astype(float) / total
    target = np.trace(S) / d
    shrinkage = caution * ledoit_wolf(S, residuals, weights)
    values, vectors = np.linalg.eigh((1 - shrinkage) * S + shrinkage * target * np.eye(d))
    # Exact duplicates may leave no spread in some direction, and then no shrinkage either.
    return shrinkage, vectors / np.sqrt(np.maximum(values, RANK * target))


def ledoit_wolf(S: NDArray, residuals: NDArray, weights: NDArray) -> float:
    """The shrinkage of Ledoit and Wolf (2004) for residuals with weights; S is their covariance.

    scikit-learn has it for points that all count once.
    """
    total, target = weights.sum(), np.trace(S) / len(S)
    delta = np.sum(np.square(S)) - len(S) * target**2
    fourth = weights @ np.square(np.einsum("jd,jd->j", residuals, residuals, dtype=float))
    beta = (fourth / total - np.sum(np.square(S))) / total
    return float(np.clip(beta / delta, 0, 1)) if delta > 0 else 1.0


# Units of features: those of extreme size are divided by powers of two, so that their squares can be computed.


def feature_sizes(X) -> NDArray:
    """The largest absolute value of each feature, in double precision."""
    if is_foreign(X):
        xp = Library.of(X).xp
        return to_numpy(xp.max(xp.abs(X), axis=0)).astype(float)
    if sparse.issparse(X):
        return abs(X).max(axis=0).toarray().ravel().astype(float)
    return np.maximum(X.max(axis=0), -X.min(axis=0)).astype(float)


def feature_units(X) -> NDArray:
    """A power of two for each feature: 1, unless squares of the feature would overflow or vanish.

    Examples
    --------
    >>> feature_units(np.array([[3.0, 1e200], [-5.0, 0.0]])).tolist() == [1, 2.0**664]
    True
    """
    return units_of(feature_sizes(X), precision(X))


def in_units(X, units: NDArray):
    """The features divided by their units, in the precision of X; X itself if all units are 1."""
    if (units == 1).all():
        return at_home(X)
    X = at_home(X)
    if sparse.issparse(X):
        found = sparse.csr_array(X, copy=True)
        found.data = _in_units(found.data, units[found.indices])
        return found
    return _in_units(X, units)


def _in_units(values: NDArray, units: NDArray) -> NDArray:
    # In double precision, because a unit may be no number in single precision. Far from the points that the units
    # come from, the ratio may still overflow; it is then the largest number, which is far enough.
    largest = np.finfo(values.dtype).max
    with np.errstate(over="ignore"):
        return np.clip(values.astype(float) / units, -largest, largest).astype(values.dtype)


class Units(TransformerMixin, BaseEstimator):
    """Divide features of extreme size by powers of two.

    Attributes
    ----------
    units_ : array of shape (n_features,)

    Examples
    --------
    >>> Units().fit_transform(np.array([[1.0, 2.0**700], [3.0, 2.0**701]])).tolist()
    [[1.0, 0.5], [3.0, 1.0]]
    """

    def fit(self, X, y=None):
        """Learn the unit of each feature."""
        self.units_ = feature_units(X)
        return self

    def transform(self, X):
        """Points in these units."""
        check_is_fitted(self)
        return in_units(X, self.units_)


# A table has numbers, which come first, and categories, which are 0 and 1 as they are.


class Beside(TransformerMixin, BaseEstimator):
    """A representation of the first columns, with the others beside it as they are.

    Parameters
    ----------
    representation : fitted transformer or None
        Of the first columns; None to leave them out.
    first : int
        How many columns it takes.
    others : int
        How many of the other columns, which come after them, count.
    """

    def __init__(self, representation=None, first: int = 0, others: int = 0) -> None:
        self.representation = representation
        self.first = first
        self.others = others

    def fit(self, X, y=None):
        """Nothing is left to learn."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X):
        """Points in the representation, then the other columns."""
        others = X[:, self.first :]
        if self.representation is None:
            return others
        Z = self.representation.transform(X[:, : self.first])
        return np.concatenate([Z, others], axis=1) if self.others else Z

    def reindexed(self, origin: NDArray) -> Beside:
        """The same for other points, see `Whitening.reindexed`."""
        return Beside(reindexed(self.representation, origin), self.first, self.others)

    @property
    def left_out(self) -> Any:
        """How distances grow when a label is left out, see `Whitening.left_out`; None if they do not."""
        correct = correction(self.representation)
        return None if correct is None else self._padded(correct)

    def _padded(self, correct: Callable) -> Callable:
        def padded(Z: NDArray, rows: NDArray) -> tuple[NDArray, NDArray]:
            directions, factors = correct(Z[:, : Z.shape[1] - self.others], rows)
            return np.pad(directions, ((0, 0), (0, self.others))), factors

        return padded


def correction(transform: Any) -> Any:
    """How a representation, or the last step of a pipeline, corrects itself for points that are left out, or None."""
    steps = getattr(transform, "steps", None)
    return getattr(steps[-1][1] if steps else transform, "left_out", None)


def reindexed(transform: Any, origin: NDArray) -> Any:
    """The same representation, which knows other points by their place; `origin` is the old place of each."""
    steps = getattr(transform, "steps", None)
    last = steps[-1][1] if steps else transform
    if not hasattr(last, "reindexed"):
        return transform
    new: Any = last.reindexed(origin)
    if steps:
        new, steps = copy(transform), [*steps[:-1], (steps[-1][0], new)]
        new.steps = steps
    return new


@dataclass(frozen=True, eq=False)
class Transformer:
    """A fitted transformer with the interface of scikit-learn.

    Examples
    --------
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> halved = Transformer.fitted_to(FunctionTransformer(lambda X: X[::2]), np.zeros((4, 1)), np.zeros(4))
    >>> halved.transform(np.zeros((4, 1)))
    Traceback (most recent call last):
        ...
    ValueError: FunctionTransformer(...) returned an array of shape (2, 1) for 4 points: ...
    """

    fitted: Any

    @classmethod
    def fitted_to(cls, given, X, y: NDArray) -> Transformer:
        """A copy of the transformer, fitted to labelled points; the given one is not changed."""
        copy = clone(given)
        call_noted(copy.fit, (X, y), {}, given, f"fitted to {counted(X.shape[0])}")
        return cls(copy)

    @property
    def steps(self) -> Any:
        return getattr(self.fitted, "steps", None)

    @property
    def left_out(self) -> Any:
        """How the transformer corrects itself for points that are left out; None if it cannot."""
        return getattr(self.fitted, "left_out", None)

    def transform(self, X) -> Any:
        """The points in the representation: finite numbers, with a row for each point."""
        n = X.shape[0]
        found = call_noted(self.fitted.transform, (X,), {}, self.fitted, f"called on {counted(n)}")
        found = sparse.csr_array(found) if sparse.issparse(found) else np.asarray(found)  # it may be a data frame
        if found.ndim != 2 or found.shape[0] != n:
            raise ValueError(
                f"{name_of(self.fitted)} returned an array of shape {found.shape} for {counted(n)}: it must "
                "return a row for each point"
            )
        if found.dtype.kind not in REAL:
            raise ValueError(f"{name_of(self.fitted)} returned {kind_of(found)}: it must return real numbers")
        found = found.astype(np.float32 if found.dtype == np.float32 else np.float64, copy=False)
        self._check_finite(found, X)
        return found

    def _check_finite(self, found, X) -> None:
        numbers = found.data if sparse.issparse(found) else found
        if np.isfinite(numbers).all():
            return
        wrong = int(np.flatnonzero(~np.isfinite(numbers))[0])
        starts = found.indptr if sparse.issparse(found) else np.arange(len(found) + 1) * found.shape[1]
        row = int(np.searchsorted(starts, wrong, side="right")) - 1
        what = f"{name_of(self.fitted)} returned {numbers.ravel()[wrong]:g}"
        raise PointsError.at(what, [X[[row]]], "features must be finite")


# `Member`: a kernel on a representation of the points, for the bank of a mixture.


# With 0, dense regions decide everything. With 1 and no floor, the classifier is too certain far from the data.
ALPHAS = (0.5, 0.75, (0.75, 3.0), (1.0, 3.0))


@dataclass(frozen=True)
class Member:
    """A kernel on a representation of the points.

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, optional
        Never negative. None for squared exponentials at all useful length scales.
    transform : str or transformer of scikit-learn, default="raw"
        The representation: "raw" (the features as they are), "standardised", "whitened" (by their covariance within
        classes, `coxfield.kernels.transforms.Whitening`), "principal" (40 principal directions), "compressed" (heavy
        tails are compressed, `coxfield.kernels.transforms.Compression`), "principal, whitened", "compressed,
        whitened", or a transformer, which is fitted to the training points and their labels.
    alphas : tuple of float or of pairs (float, float), default=(0.5, 0.75, (0.75, 3), (1, 3))
        Powers of the density by which the kernel may be divided; 0 for the kernel itself. A pair is a power and a floor
        that is added to the density, in points: with a floor, a few points that are far from all others say little.
        The mixture chooses among them.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> bank = [Member(RBF(1.0)), Member(transform="whitened"), Member(RBF(2.0), PCA(2), alphas=(0.5,))]
    """

    kernel: Any = None
    transform: Any = "raw"
    alphas: tuple[Any, ...] = ALPHAS

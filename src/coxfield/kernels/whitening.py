"""Whitening by the covariance within classes: features in which every class is as wide as every other direction.

The covariance within classes S is shrunk towards a multiple of the identity by the rule of Ledoit and Wolf, so that it
can be inverted even if there are more features than points. The whitening uses labels. So leave-one-out must leave
out the label of a point here as well. With the shrinkage and the scaling held, the covariance without point j is
S - c_j e_j e_j', where e_j is the residual of the point from the mean of its class. The inverse changes by one rank,
so that squared distances from point j become |z_j - z|^2 + kappa_j (r_j . (z_j - z))^2 with the whitened residual r_j.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from coxfield.kernels.compression import winsorised

if TYPE_CHECKING:
    from numpy.typing import NDArray

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

    def fit(self, X, y, sample_weight: NDArray | None = None):
        """Learn the whitening from points with labels.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            A point of weight w counts as w points.
        """
        given, X = X, winsorised(X)  # one far value is not the spread of a feature
        classes, labels = np.unique(y, return_inverse=True)
        weights = np.ones(len(X)) if sample_weight is None else sample_weight.astype(float)
        total = weights.sum()
        self.origin_ = (np.einsum("j,jd->d", weights, X, dtype=float) / total).astype(X.dtype)
        Z = X - self.origin_
        scale = np.sqrt(np.einsum("j,jd,jd->d", weights, Z, Z, dtype=float) / total)
        scale[scale <= 8 * np.finfo(X.dtype).eps * np.abs(self.origin_)] = 1  # a constant column, up to rounding
        Z /= scale.astype(X.dtype)
        basis = _row_space(Z)
        Z = Z if basis is None else Z @ basis
        means = _class_means(Z, labels, weights, len(classes))
        self.shrinkage_, back = _whitener(Z - means[labels].astype(Z.dtype), weights)
        step = back if basis is None else basis @ back
        self.matrix_ = (step / scale[:, None]).astype(X.dtype)
        self.class_means_, self.labels_ = means @ back, labels
        of_class = np.bincount(labels, weights)[labels]
        with np.errstate(divide="ignore"):  # the only point of a class: its residual is 0
            rest = np.where(of_class > weights, weights * of_class / (of_class - weights), 0)
        self.removal_ = (1 - self.shrinkage_) * rest / total
        self.moved_ = np.flatnonzero((given != X).any(axis=1))
        self.moved_points_ = self.transform(X[self.moved_])
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


def _whitener(residuals: NDArray, weights: NDArray) -> tuple[float, NDArray]:
    """Shrinkage and inverse root of the covariance of residuals."""
    total, d = weights.sum(), residuals.shape[1]
    if not residuals.any():
        raise ValueError("every class is a single point, so there is no covariance within classes to whiten by")
    S = ((residuals * weights[:, None].astype(residuals.dtype)).T @ residuals).astype(float) / total
    target = np.trace(S) / d
    shrinkage = ledoit_wolf(S, residuals, weights)
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

"""The no-interference condition, and a classifier that meets it.

A model of labels given points meets the condition if a point without a label says nothing about the labels of the other
points. That is: the labels of the other points have the same distribution if the point is there and its label is summed
out, and if the point is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coxfield.geometry.window import check_points
from coxfield.kernels.checked import values_of
from coxfield.process.labels import LabelDistribution

if TYPE_CHECKING:
    from collections.abc import Callable

    from sklearn.gaussian_process.kernels import Kernel


def interference(distribution: Callable[[np.ndarray], LabelDistribution], points, others) -> float:
    """Measure how far a model is from the no-interference condition; 0 if it is met.

    The largest absolute value of ``sum_{y*} Pr(y*, y | x*, x) - Pr(y | x)`` over the labellings y, where x* are the
    points in `others`.

    Parameters
    ----------
    distribution : function of points of shape (n, d) that returns a LabelDistribution
    points : array of shape (N, d)
        x, the points whose labels are compared.
    others : array of shape (M, d)
        x*, the points whose labels are summed out.

    Returns
    -------
    float

    Examples
    --------
    Gaussian process classification meets the condition, classification with Cox processes does not:

    >>> from functools import partial
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.process import LogGaussianCoxProcess, label_distribution
    >>> points, others = [[0.0], [2.0]], [[1.0]]
    >>> round(interference(partial(gp_classifier_prior, RBF(1.0)), points, others), 12)
    0.0
    >>> round(interference(partial(label_distribution, [LogGaussianCoxProcess(RBF(1.0))] * 2), points, others), 3)
    0.021
    """
    points, others = check_points(points), check_points(others)
    together = distribution(np.concatenate([points, others])).marginal(range(len(points)))
    return float(np.abs(together.probabilities - distribution(points).probabilities).max())


def gp_classifier_prior(kernel: Kernel, points) -> LabelDistribution:
    """Distribution of the labels of up to three points under Gaussian process classification, in closed form.

    There are two classes, a Gaussian process f of mean zero and a probit likelihood: a label is the sign of f(x) + e,
    where e is standard normal. Let r_jk be the correlation of f + e at two points, and s_j = -1 or +1 the labels. Then

        Pr(y | x) = 2^-N (1 + 2/pi sum_{j<k} s_j s_k arcsin r_jk).

    This is the probability of an orthant. It has no such form for more than three points (Sheppard, 1899).

    Parameters
    ----------
    kernel : scikit-learn kernel
    points : array of shape (N, d), N at most 3

    Returns
    -------
    LabelDistribution

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> gp_classifier_prior(RBF(1.0), [[0.0], [0.1]]).probabilities.round(2)
    array([[0.33, 0.17],
           [0.17, 0.33]])
    """
    points = check_points(points)
    n = len(points)
    if not 1 <= n <= 3:
        raise ValueError(
            f"the probabilities have a closed form for one, two or three points, got {n}: give at most three"
        )
    covariance = values_of(kernel, points) + np.eye(n)
    scale = np.sqrt(np.diag(covariance))
    angles = np.triu(np.arcsin(np.clip(covariance / np.outer(scale, scale), -1, 1)), 1)
    signs = 2 * np.indices((2,) * n) - 1
    return LabelDistribution((1 + 2 / np.pi * np.einsum("j...,jk,k...->...", signs, angles, signs)) / 2**n)

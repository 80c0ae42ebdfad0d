"""Product densities of log Gaussian Cox processes: how likely it is to see points at given places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coxfield.geometry.window import check_points
from coxfield.kernels.checked import values_of
from coxfield.process.stationary import check_in_dimension, check_kernel, check_mean, mean_at

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.gaussian_process.kernels import Kernel

    from coxfield.process.stationary import Mean

MOST_SUBSETS = 2**16  # those of 16 points; more would take too long to enumerate


def log_product_density(points, kernel: Kernel, mean: Mean = 0.0) -> float:
    """Logarithm of the product density of a log Gaussian Cox process at K points (eq. LGCPproductDensity).

    log m(x_1, ..., x_K) = sum_j mu(x_j) + 1/2 sum_{j,k} C(x_j - x_k)

    Parameters
    ----------
    points : array of shape (K, d)
        The density of no points is 1.
    kernel : scikit-learn kernel
        Stationary.
    mean : float or function of points of shape (n, d)

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> log_product_density([[0.0, 0.0], [0.0, 0.0]], RBF(1.0), mean=0.5)  # 2 mu + 4 C(0) / 2
    3.0
    """
    check_kernel(kernel)
    check_mean(mean)
    points = check_points(points)
    if not len(points):
        return 0.0
    check_in_dimension(kernel, points.shape[1])
    # eq. LGCPproductDensity
    return float(mean_at(mean, points).sum() + values_of(kernel, points).sum() / 2)


def subset_log_densities(points: NDArray, kernel: Kernel, mean: Mean) -> NDArray:
    """Logarithms of the product densities of all subsets of N points, shape (2^N,).

    Bit j of the position says whether point j belongs to the subset.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> subset_log_densities(np.zeros((2, 1)), RBF(1.0), 0.5).tolist()  # none, the first, the second, both
    [0.0, 1.0, 1.0, 3.0]
    """
    check_in_dimension(kernel, points.shape[1])
    members = subsets(len(points)).astype(float)
    pairs = np.einsum("sj,jk,sk->s", members, values_of(kernel, points), members, optimize=True)
    return members @ mean_at(mean, points) + pairs / 2  # eq. LGCPproductDensity


def subsets(n: int) -> NDArray:
    """Whether each of n points belongs to each subset, shape (2^n, n).

    Subsets are in the order of binary numbers; point 0 is the lowest bit.
    """
    if 2**n > MOST_SUBSETS:
        raise ValueError(
            f"{n} points have too many subsets to enumerate: give at most {MOST_SUBSETS.bit_length() - 1} points"
        )
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1

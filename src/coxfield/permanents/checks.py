"""Checks of the arguments of the functions on alpha-permanents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_array

if TYPE_CHECKING:
    from numpy.typing import NDArray


def check_square(A) -> NDArray:
    """A as a square matrix of finite float64 numbers; it may have no rows."""
    A = np.asarray(A, dtype=float) if np.size(A) == 0 else check_array(A, dtype=float, input_name="A")
    if A.shape == (0,):
        A = A.reshape(0, 0)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"a permanent needs a square matrix, got shape {A.shape}: give as many rows as columns")
    return A


def check_alpha(alpha, *, positive: bool) -> float:
    """Alpha as a finite float, above 0 if `positive`."""
    number = float(alpha)
    if not np.isfinite(number) or (positive and number <= 0):
        raise ValueError(f"alpha must be a {'positive ' if positive else ''}finite number, got {alpha!r}")
    return number


def check_covariances(A) -> NDArray:
    """A as a symmetric matrix without negative entries and with a positive diagonal."""
    A = check_square(A)
    if not np.allclose(A, A.T, rtol=1e-10, atol=0):
        raise ValueError("A must be symmetric, such as a matrix of covariances, but it is not: give (A + A.T) / 2")
    if (A < 0).any():
        raise ValueError(
            f"A must not have negative entries, got {A.min():.3g}: use alpha_permanent, which takes any sign"
        )
    if not (np.diagonal(A) > 0).all():
        raise ValueError(
            f"the diagonal of A must be positive, got {np.diagonal(A).min():.3g}: leave out points without variance"
        )
    return A

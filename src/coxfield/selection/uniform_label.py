"""One observation of a uniform label, mixed into the labels that were seen.

If every decision is right, the log loss alone has no minimum: it falls for ever as the signal variance grows. So one
point's worth of labels, uniform over the classes, is distributed over all points. This keeps the variance finite. It is
defined only here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def share(total: float) -> float:
    """The share of the uniform label if the points have this total weight."""
    return 1 / (1 + total)


def mixed(values: NDArray, y: NDArray, total: float) -> NDArray:
    """Expected value of each row under its label with the uniform label mixed in.

    Parameters
    ----------
    values : array of shape (..., n, n_classes)
        Such as log probabilities.
    y : array of shape (n,), class numbers
    total : float
        Weight of all points.

    Examples
    --------
    >>> mixed(np.array([[1.0, 0.0]]), np.array([0]), total=1.0).tolist()  # half of it is the mean over the classes
    [0.75]
    """
    own = values[..., np.arange(len(y)), y]
    return (1 - share(total)) * own + share(total) * values.mean(axis=-1)

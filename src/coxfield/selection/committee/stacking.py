"""How loud each voice speaks: weights that make the labels most probable, each from the others.

The prior is worth ten labels, divided between the voices. So with few labels all voices speak about equally loud.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

PRIOR = 10.0  # labels
ROUNDS = 500
TOLERANCE = 1e-9
SMALLEST = 1e-9  # probability of a label that a voice excludes


def stack(probabilities: NDArray) -> NDArray:
    """Weights of voices from the probabilities that each gives to the labels, shape (voices, labels).

    Examples
    --------
    The second voice is right a little more often:

    >>> stack(np.array([[0.5, 0.9, 0.1], [0.6, 0.9, 0.9]])).round(2)
    array([0.46, 0.54])
    """
    likely = np.maximum(probabilities, SMALLEST)
    weights = np.full(len(likely), 1 / len(likely))
    for _ in range(ROUNDS):
        parts = weights[:, None] * likely
        counts = (parts / parts.sum(axis=0)).sum(axis=1) + PRIOR / len(likely)
        new = counts / counts.sum()
        done = np.abs(new - weights).max() <= TOLERANCE
        weights = new
        if done:
            break
    return weights

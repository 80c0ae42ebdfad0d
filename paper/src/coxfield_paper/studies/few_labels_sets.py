"""Data sets with few labels: published splits, scikit-learn's digits, the paper's sets, and rings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_digits

from coxfield.datasets.fetch import require
from coxfield_paper.studies import circles, semi_supervised

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Draw = tuple["NDArray", "NDArray", "NDArray"]
"""Points, their classes, and the labels given: -1 where there is none."""

SPLITS, DRAWS = 12, 10  # published splits per set of the book; random draws of the other sets
FILES = {"digit1": "ssl_digit1.npz", "USPS": "ssl_usps.npz", "g241c": "ssl_g241c.npz", "BCI": "ssl_bci.npz"}
RINGS = {"two rings": 2, "three rings": 3}


def published(data: str, labels: int, seed: int) -> Draw:
    """One of the twelve splits that the book 'Semi-Supervised Learning' publishes with its sets."""
    with np.load(require(FILES[data], data)) as arrays:
        X, truth = arrays["X"].astype(float), arrays["y"].astype(int)
        return X, truth, _given(truth, arrays[f"labeled{labels}_idx"][seed])


def digits(data: str, labels: int, seed: int) -> Draw:
    """scikit-learn's 1,797 digits; as many labels for each of the ten classes.

    Examples
    --------
    >>> X, truth, y = digits("digits", 2, seed=0)
    >>> X.shape, np.bincount(y[y >= 0]).tolist()
    ((1797, 64), [2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    rows = [rng.choice(np.flatnonzero(truth == digit), labels, replace=False) for digit in range(10)]
    return X, truth, _given(truth, np.concatenate(rows))


def _given(truth: NDArray, known: NDArray) -> NDArray:
    """The classes of the points that are known, and -1 for the others."""
    y = np.full(len(truth), -1)
    y[known] = truth[known]
    return y


def rings(data: str, labels: int, seed: int) -> Draw:
    """Noisy rings, as in figure concentricCircles of the paper; the number of labels per ring is that of the figure."""
    count = RINGS[data]
    return circles.draw(count, circles.RINGS[count]["noise"], seed)


@dataclass(frozen=True)
class Family:
    """Data sets that are drawn alike, and shown in one table."""

    title: str
    sets: tuple[str, ...]
    labels: tuple[int, ...]
    unit: str
    """What the numbers of labels count."""
    draws: int
    """How often the labelled points are drawn. Each draw has a seed, from 0 on."""
    draw: Callable[[str, int, int], Draw]
    """Data set, number of labels, seed -> points, classes, labels given."""

    def counted(self, labels: int) -> str:
        """A number of labels with its unit.

        Examples
        --------
        >>> FAMILY["digits"].counted(1), FAMILY["oil"].counted(10)
        ('1 label per class', '10 labels')
        """
        return f"{labels} {self.unit if labels != 1 else self.unit.replace('labels', 'label')}"


FAMILIES = (
    Family("Sets of the book 'Semi-Supervised Learning'", tuple(FILES), (10, 100), "labels", SPLITS, published),
    Family("scikit-learn's digits", ("digits",), (1, 2, 5, 10), "labels per class", DRAWS, digits),
    Family(
        "The paper's sets",
        ("oil", "rMNIST", "double helix"),
        semi_supervised.LABELS,
        "labels",
        DRAWS,
        semi_supervised.partition,
    ),
    Family("The paper's rings", tuple(RINGS), (circles.LABELS,), "labels per ring", DRAWS, rings),
)
FAMILY = {data: family for family in FAMILIES for data in family.sets}


def draw(data: str, labels: int, seed: int) -> Draw:
    """Points of a data set, their classes, and the labels given: -1 where there is none."""
    return FAMILY[data].draw(data, labels, seed)

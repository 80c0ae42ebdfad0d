"""Training and test parts of the embedded data sets, as the paper divides them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.model_selection import ShuffleSplit

from coxfield.datasets import load_banana, load_pima, load_synth

if TYPE_CHECKING:
    from numpy.typing import NDArray

Partition = tuple["NDArray", ...]
"""X_train, y_train, X_test, y_test."""


def embedded(banana_partitions: int = 10, random_state: int = 0) -> dict[str, list[Partition]]:
    """Partitions by data set: the standard one of Synth and of Diabetes, random 400/4900 ones of Banana."""
    X, y = load_banana(return_X_y=True)
    splits = ShuffleSplit(banana_partitions, train_size=400, test_size=4900, random_state=random_state)
    return {
        "Synth": [load_synth(return_X_y=True)],
        "Diabetes": [load_pima(return_X_y=True)],
        "Banana": [(X[train], y[train], X[test], y[test]) for train, test in splits.split(X)],
    }

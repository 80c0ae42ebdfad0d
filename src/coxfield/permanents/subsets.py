"""Steps from subset to subset, which the sweeps of exact alpha-permanents take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


def walks(n: int) -> Iterator[tuple[int, NDArray, NDArray]]:
    """All steps (k, subsets with k, these subsets without k) on subsets of n elements, smaller subsets first."""
    subsets = np.arange(2**n)
    sizes = np.bitwise_count(subsets)
    for size in range(1, n + 1):
        layer = subsets[sizes == size]
        for k in range(n):
            reached = layer[layer >> k & 1 == 1]
            yield k, reached, reached ^ (1 << k)

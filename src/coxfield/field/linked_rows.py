"""Listed couplings of a field, some rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

LINKS = 2**19  # per block: with fewer, a block costs more than its links


@dataclass(frozen=True)
class LinkedRows:
    """Couplings between linked nodes; `coxfield.field.rows.CouplingRows` says what the methods are for."""

    links: tuple[sparse.csr_array, ...]
    """For each different covariance, a symmetric matrix without a diagonal."""
    users: NDArray
    """Whether each class uses each covariance, shape (n_covariances, Q)."""
    held = True

    @cached_property
    def blocks(self) -> list[slice]:
        """Blocks of about `LINKS` links."""
        n, most = self.links[0].shape[0], max(one.nnz for one in self.links)
        step = max(1, n * LINKS // max(most, 1))
        return [slice(start, min(start + step, n)) for start in range(0, n, step)]

    def values(self, k: int, rows: slice) -> sparse.csr_array:
        """Sparse rows."""
        return self.links[k][rows]

    def before(self, values: sparse.csr_array, rows: slice) -> sparse.csr_array:
        """A sparse triangle."""
        return sparse.tril(values[:, rows], -1, format="csr")

    @cached_property
    def _upper(self) -> list[sparse.csr_array]:
        return [sparse.triu(one, 1, format="csr") for one in self.links]

    def after(self, k: int, rows: slice) -> NDArray:
        """One number per link."""
        return self._upper[k].data[self._entries(k, rows)]

    def ends(self, k: int, rows: slice) -> tuple[NDArray, NDArray]:
        """Two nodes per link."""
        degrees = np.diff(self._upper[k].indptr[rows.start : rows.stop + 1])
        i = np.repeat(np.arange(rows.start, rows.stop), degrees)
        return i, self._upper[k].indices[self._entries(k, rows)]

    def _entries(self, k: int, rows: slice) -> slice:
        return slice(*self._upper[k].indptr[[rows.start, rows.stop]])

"""All couplings of a field, some rows at a time.

Couplings of listed links are a sparse matrix. Others are dense, held if they fit into memory and otherwise computed
each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy import sparse

from coxfield.field.edges import listed_links
from coxfield.kernels.called import MOST
from coxfield.kernels.protocol import values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field.potts import LabelField
    from coxfield.kernels.protocol import KernelPoints

LINKS = 2**19  # per block: with fewer, a block costs more than its links


class CouplingRows(Protocol):
    """Rows of the matrices C^(c)(x_i, x_j), 0 for i = j, one matrix for each different covariance."""

    @property
    def users(self) -> NDArray:
        """Whether each class uses each covariance, shape (n_covariances, Q)."""

    @property
    def blocks(self) -> list[slice]:
        """All rows, cut into blocks."""

    @property
    def held(self) -> bool:
        """Whether all couplings are held."""

    def values(self, k: int, rows: slice) -> Any:
        """Couplings by covariance k between some nodes and all nodes, as a matrix. Do not write to them."""

    def before(self, values: Any, rows: slice) -> Any:
        """The part of `values` between nodes of the block and earlier nodes of the block, shape (rows, rows)."""

    def after(self, k: int, rows: slice) -> NDArray:
        """Couplings by covariance k between some nodes and all later nodes, as an array of numbers."""

    def ends(self, k: int, rows: slice) -> tuple[NDArray, NDArray]:
        """The nodes i and j of each number of `after`, in arrays that broadcast to its shape."""


@dataclass(frozen=True)
class DenseRows:
    """Couplings between all pairs; `CouplingRows` says what the methods are for."""

    points: tuple[KernelPoints, ...]
    """The nodes, bound to each of the different covariances."""
    users: NDArray
    """Whether each class uses each covariance, shape (n_covariances, Q)."""
    step: int
    """Number of rows per block."""

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.points[0])

    @property
    def blocks(self) -> list[slice]:
        """All rows, cut into blocks."""
        return [slice(start, min(start + self.step, self.n)) for start in range(0, self.n, self.step)]

    @property
    def held(self) -> bool:
        """Whether all couplings are held."""
        return len(self.points) * self.n**2 <= MOST

    @cached_property
    def _matrices(self) -> list[NDArray]:
        return [self._evaluate(k, slice(0, self.n)) for k in range(len(self.points))]

    def values(self, k: int, rows: slice) -> NDArray:
        """Whole rows."""
        return self._matrices[k][rows] if self.held else self._evaluate(k, rows)

    def before(self, values: NDArray, rows: slice) -> NDArray:
        """A triangle of whole rows."""
        return np.tril(values[:, rows], -1)

    def after(self, k: int, rows: slice) -> NDArray:
        """Whole rows, 0 up to the node itself."""
        return np.triu(self.values(k, rows), rows.start + 1)

    def ends(self, k: int, rows: slice) -> tuple[NDArray, NDArray]:
        """A column and a row of numbers."""
        return np.arange(rows.start, rows.stop)[:, None], np.arange(self.n)[None]

    def _evaluate(self, k: int, rows: slice) -> NDArray:
        found = values(self.points[k][rows], self.points[k]).astype(float, copy=False)
        own = np.arange(rows.start, rows.stop)
        found[own - rows.start, own] = 0
        return found


def coupling_rows(field: LabelField, step: int) -> CouplingRows:
    """The couplings of a field in blocks of `step` rows, or in larger blocks if they are listed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField
    >>> field = LabelField.from_points(np.array([[0.0], [1.0]]), RBF(1.0), labels=[-1, -1])
    >>> coupling_rows(field, step=2).values(0, slice(0, 2)).round(4)
    array([[0.    , 0.6065],
           [0.6065, 0.    ]])
    """
    users = np.arange(len(field.points))[:, None] == field.covariances.owner
    links = listed_links(field.points)
    return DenseRows(field.points, users, step) if links is None else LinkedRows(tuple(links), users)


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

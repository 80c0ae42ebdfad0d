"""Points for tests on Dask: the same rows in memory and in chunks."""

from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

N, M, D = 90, 40, 3


@dataclass(frozen=True)
class Case:
    """Training points, labels, weights, queries and a kernel."""

    X: Any
    y: np.ndarray
    Q: Any
    kernel: Any
    weights: np.ndarray | None = None
    length: float = 1.0
    """The shortest length scale."""

    @property
    def condition(self):
        """By how much distances by products multiply rounding: the largest |z|^2, of points and queries together."""
        X, Q = (points.toarray() if sparse.issparse(points) else points for points in (self.X, self.Q))
        return 4 + 8 * np.square(np.concatenate([X, Q]) / self.length).sum(axis=1).max()


def points(seed=0, dtype=float, n_classes=3):
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(N, D)).astype(dtype), rng.normal(size=(M, D)).astype(dtype)
    y = np.concatenate([np.arange(n_classes), (3 * X[n_classes:, 0]).round().astype(int) % n_classes])
    return X, y, Q


def case(name):
    """A case by its name."""
    X, y, Q = points(dtype=np.float32 if name == "float32" else float, n_classes=30 if name == "many" else 3)
    names = np.array(["one", "two", "three"])
    per_class = {0: RBF(0.7), 1: 0.5 * Matern(1.2), 2: RBF(0.7)}
    rng = np.random.default_rng(1)
    found = {
        "dense": Case(X, y, Q, RBF(0.8), length=0.8),
        "float32": Case(X, y, Q, RBF(0.8), length=0.8),
        "sparse": Case(sparse.csr_array(np.where(X > 0, X, 0)), y, sparse.csr_array(np.where(Q > 0, Q, 0)), RBF(1.0)),
        "underflow": Case(X, y, 30 * Q, RBF(0.02), length=0.02),
        "half underflow": Case(X, y, np.where(np.arange(M)[:, None] % 2, Q, 300 * Q), RBF(1.0)),
        "per class": Case(X, y, Q, per_class, length=0.7),
        "weights": Case(X, y, Q, RBF(0.8), rng.integers(0, 3, size=N).astype(float), length=0.8),
        "many": Case(X, y, Q, RBF(0.8), length=0.8),
        "called": Case(X, y, Q, DotProduct(0.5)),
    }
    if name == "text":
        return Case(X, names[y], Q, RBF(0.8), length=0.8)
    return found[name]


CASES = ("dense", "float32", "sparse", "underflow", "half underflow", "per class", "weights", "many", "called", "text")


def chunked(rows, size):
    """Rows as a Dask array in chunks of a size; sparse rows stay sparse."""
    if rows is None:
        return None
    if not sparse.issparse(rows):
        return da.from_array(rows, chunks=(size, *rows.shape[1:]))
    parts = [rows[k : k + size] for k in range(0, rows.shape[0], size)]
    blocks = [da.from_array(np.arange(part.shape[0]), chunks=-1) for part in parts]
    made = [
        block.map_blocks(lambda _, part=part: part, dtype=rows.dtype, new_axis=1, chunks=(part.shape[:1], (D,)))
        for block, part in zip(blocks, parts, strict=True)
    ]
    return da.concatenate(made)

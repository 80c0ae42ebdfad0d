"""Training rows as they were given, in blocks, so that rows can come and go without moving the others.

Rows that arrive form a new block. Blocks of similar size are joined, so that each row is moved a few times at most,
however many calls bring rows. A row that leaves is overwritten where it is, or the others are copied without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

GONE = -1  # the number of a row that was overwritten


@dataclass(frozen=True)
class Block:
    """Rows that are held together."""

    X: Any
    """Array or CSR array of shape (n, d)."""
    numbers: NDArray
    """The number of each row in the `Store`; `GONE` for a row that was overwritten."""
    own: bool
    """Whether nobody else holds the array, so that rows may be overwritten."""

    @property
    def left(self) -> NDArray:
        """The rows that were not overwritten."""
        return np.flatnonzero(self.numbers != GONE)

    @property
    def whole(self) -> bool:
        """Whether no row was overwritten."""
        return bool((self.numbers != GONE).all())

    def compact(self) -> Block:
        """The block without room for rows that are gone."""
        return self if self.whole else Block(self.X[self.left], self.numbers[self.left], own=True)

    def copied_without(self, numbers: NDArray) -> Block:
        """A copy of the rows that have none of some numbers."""
        kept = np.flatnonzero((self.numbers != GONE) & ~np.isin(self.numbers, numbers))
        return Block(self.X[kept], self.numbers[kept], own=True)

    def overwritten(self, numbers: NDArray) -> Block:
        """The same array with zeros in place of some rows."""
        rows = np.flatnonzero(np.isin(self.numbers, numbers))
        self.X[rows] = 0
        left = self.numbers.copy()
        left[rows] = GONE
        return replace(self, numbers=left)


@dataclass(frozen=True)
class TrainingRows:
    """All training rows, with their classes and weights in the order in which they arrived."""

    blocks: tuple[Block, ...]
    y: NDArray
    """Class numbers."""
    weights: NDArray | None
    """One number per row, or one per row and class; None if every row counts once."""
    chosen_from: NDArray
    """Whether the covariance was chosen from each row."""

    @classmethod
    def of(cls, X, y: NDArray, weights: NDArray | None, chosen_from: NDArray | None, *, own: bool) -> TrainingRows:
        """Rows that arrive together; `chosen_from` is None if the covariance was chosen from all of them."""
        chosen = np.ones(len(y), bool) if chosen_from is None else chosen_from
        return cls((Block(X, np.arange(len(y)), own),), y, weights, chosen)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def X(self) -> Any:  # noqa: N802
        """The points: the array itself if there is only one, a new array otherwise."""
        parts = [block.compact().X for block in self.blocks]
        return parts[0] if len(parts) == 1 else _stacked(parts)

    @property
    def numbers(self) -> NDArray:
        """The number of each row in the store."""
        return np.concatenate([block.numbers[block.left] for block in self.blocks])

    @property
    def counts(self) -> NDArray:
        """The weight of each row, in double precision; of soft labels, the sum over classes."""
        if self.weights is None:
            return np.ones(len(self))
        weights = self.weights.astype(float)
        return weights if weights.ndim == 1 else weights.sum(axis=1)

    @property
    def dtype(self) -> np.dtype:
        """Precision of the points."""
        return self.blocks[0].X.dtype

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.blocks[0].X.shape[1]

    @property
    def like(self) -> Any:
        """Some of the points, to see whether they are sparse."""
        return self.blocks[0].X

    @property
    def can_be_overwritten(self) -> bool:
        """Whether nobody else holds the rows, and a row that was overwritten has left no trace of its form."""
        return all(block.own and not sparse.issparse(block.X) for block in self.blocks)

    def owned(self) -> TrainingRows:
        """The same rows in arrays that nobody else holds."""
        blocks = tuple(block if block.own else replace(block, X=block.X.copy(), own=True) for block in self.blocks)
        return replace(self, blocks=blocks)

    def shared(self) -> TrainingRows:
        """The same rows, held by somebody else too."""
        return replace(self, blocks=tuple(replace(block, own=False) for block in self.blocks))

    def appended(self, X, y: NDArray, weights: NDArray | None, first: int) -> TrainingRows:
        """The rows with more of them, whose numbers start at `first`. Nobody else may hold X."""
        block = Block(X, first + np.arange(len(y)), own=True)
        together = _joined_weights(self.weights, weights, len(self), len(y), self.dtype)
        chosen = np.concatenate([self.chosen_from, np.zeros(len(y), bool)])
        return TrainingRows((*self.blocks, block), np.concatenate([self.y, y]), together, chosen)

    def to_join(self) -> int:
        """How many of the last blocks should become one, because they are not much larger than what follows them."""
        count, size = 1, len(self.blocks[-1].numbers)
        for block in self.blocks[-2::-1]:
            if len(block.numbers) > 2 * size:
                break
            count, size = count + 1, size + len(block.numbers)
        return count

    def joined(self, count: int) -> TrainingRows:
        """The same rows with the last `count` blocks as one."""
        last = [block.compact() for block in self.blocks[-count:]]
        block = Block(_stacked([b.X for b in last]), np.concatenate([b.numbers for b in last]), own=True)
        return replace(self, blocks=(*self.blocks[:-count], block))

    def with_classes(self, new: NDArray) -> TrainingRows:
        """The rows with other class numbers: `new` has one for each old one."""
        return replace(self, y=new[self.y])

    def renumbered(self, new: NDArray) -> TrainingRows:
        """The same rows with other numbers: `new` has one for each old one."""
        return replace(self, blocks=tuple(replace(block, numbers=new[block.numbers]) for block in self.blocks))

    def without(self, rows: NDArray, numbers: NDArray, *, overwrite: bool) -> TrainingRows:
        """The rows without some of them, given by place and by number."""
        blocks = [_left_of(block, numbers, overwrite) for block in self.blocks]
        weights = None if self.weights is None else np.delete(self.weights, rows, axis=0)
        left = tuple(block for block in blocks if len(block.left))
        return TrainingRows(left, np.delete(self.y, rows), weights, np.delete(self.chosen_from, rows))


def _left_of(block: Block, numbers: NDArray, overwrite: bool) -> Block:
    """What is left of a block; a block of which half is gone is copied, so that memory is freed at last."""
    found = np.count_nonzero(np.isin(block.numbers, numbers))
    if not found:
        return block
    few = 2 * (found + len(block.numbers) - len(block.left)) < len(block.numbers)
    return block.overwritten(numbers) if overwrite and block.own and few else block.copied_without(numbers)


def _stacked(parts: list) -> Any:
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def _joined_weights(old: NDArray | None, new: NDArray | None, n_old: int, n_new: int, dtype) -> NDArray | None:
    """Weights of all rows; where one of the two has none, its rows count once."""
    if old is None and new is None:
        return None
    return np.concatenate(
        [
            np.ones(n_old, dtype) if old is None else old,
            np.ones(n_new, dtype) if new is None else new,
        ]
    )

"""Training rows as they were given, in blocks, so that rows can come and go without moving the others.

Rows that arrive form a new block. Blocks of similar size are joined, so that each row is moved a few times at most,
however many calls bring rows. A row that leaves is overwritten where it is, or the others are copied without it: nobody
else holds the arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.kernels.namespace import precision, rows_of, stacked

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALIKE = 8  # blocks of similar size that become one
GONE = -1  # the number of a row that was overwritten


@dataclass(frozen=True)
class Block:
    """Rows that are held together."""

    X: Any
    """Array or CSR array of shape (n, d)."""
    numbers: NDArray
    """The number of each row in the `Store`; `GONE` for a row that was overwritten."""

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
        return self if self.whole else Block(rows_of(self.X, self.left), self.numbers[self.left])

    def copied_without(self, rows: NDArray) -> Block:
        """A copy of the other rows."""
        kept = np.setdiff1d(self.left, rows, assume_unique=True)
        return Block(rows_of(self.X, kept), self.numbers[kept])

    def erase(self, rows: NDArray) -> None:
        """Write zeros in place of some rows, which must not count any more."""
        self.X[rows] = 0

    def overwritten(self, rows: NDArray) -> Block:
        """The same array, in which some rows do not count any more and may be overwritten."""
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
    def of(cls, X, y: NDArray, weights: NDArray | None, chosen_from: NDArray | None) -> TrainingRows:
        """Rows that arrive together, in an array that nobody else holds.

        `chosen_from` is None if the covariance was chosen from all of them.
        """
        chosen = np.ones(len(y), bool) if chosen_from is None else chosen_from
        return cls((Block(X, np.arange(len(y))),), y, weights, chosen)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def X(self) -> Any:  # noqa: N802
        """The points: the array itself if there is only one, a new array otherwise."""
        parts = [block.compact().X for block in self.blocks]
        return parts[0] if len(parts) == 1 else stacked(parts)

    @property
    def numbers(self) -> NDArray:
        """The number of each row in the store."""
        return np.concatenate([block.numbers[block.numbers != GONE] for block in self.blocks])

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
        return precision(self.blocks[0].X)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.blocks[0].X.shape[1]

    @property
    def like(self) -> Any:
        """Some of the points, to see whether they are sparse."""
        return self.blocks[0].X

    @property
    def dense(self) -> bool:
        """Whether rows can be overwritten: in NumPy, unless they are sparse, where columns would tell of a row."""
        return isinstance(self.like, np.ndarray)

    def appended(self, X, y: NDArray, weights: NDArray | None, first: int) -> TrainingRows:
        """The rows with more of them, whose numbers start at `first`. Nobody else may hold X."""
        block = Block(X, first + np.arange(len(y)))
        together = _joined_weights(self.weights, weights, len(self), len(y), self.dtype)
        chosen = np.concatenate([self.chosen_from, np.zeros(len(y), bool)])
        return TrainingRows((*self.blocks, block), np.concatenate([self.y, y]), together, chosen)

    def to_join(self) -> int:
        """How many of the last blocks should become one: `ALIKE` that are of similar size, and so on with the result.

        So a row is moved once per power of `ALIKE`, and there are fewer than `ALIKE` blocks per such power.
        """
        sizes, count = [len(block.numbers) for block in self.blocks], 1
        while True:
            alike = _alike(sizes[:-count], sum(sizes[-count:]))
            if alike + 1 < ALIKE:
                return count
            count += alike

    def joined(self, count: int) -> TrainingRows:
        """The same rows with the last `count` blocks as one."""
        last = [block.compact() for block in self.blocks[-count:]]
        block = Block(stacked([b.X for b in last]), np.concatenate([b.numbers for b in last]))
        return replace(self, blocks=(*self.blocks[:-count], block))

    def only(self, places: NDArray) -> TrainingRows:
        """A copy of some rows, numbered from 0."""
        weights = None if self.weights is None else self.weights[places]
        return TrainingRows.of(rows_of(self.X, places), self.y[places], weights, self.chosen_from[places])

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
        left = tuple(block for block in blocks if (block.numbers != GONE).any())
        return TrainingRows(left, np.delete(self.y, rows), weights, np.delete(self.chosen_from, rows))


def _left_of(block: Block, numbers: NDArray, overwrite: bool) -> Block:
    """What is left of a block; a block of which half is gone is copied, so that memory is freed at last."""
    rows = np.flatnonzero(np.isin(block.numbers, numbers))
    if not len(rows):
        return block
    few = 2 * (len(rows) + np.count_nonzero(block.numbers == GONE)) < len(block.numbers)
    return block.overwritten(rows) if overwrite and few else block.copied_without(rows)


def _alike(sizes: list[int], size: int) -> int:
    """How many of the last sizes are no power of `ALIKE` larger than another one that follows them."""
    larger = (count for count, other in enumerate(reversed(sizes)) if other >= ALIKE * size)
    return next(larger, len(sizes))


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

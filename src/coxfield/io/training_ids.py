"""Ids of the training rows in a model file: texts by which rows can be named, replaced and forgotten.

They are one array of bytes in the archive: the texts in UTF-8, with a zero byte between two of them. An array of text
would give each id as much room as the longest one takes.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.io.requirements import Unsound, is_text, require, require_array

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

MEMBER = "ids.npy"
BETWEEN = "\0"


@dataclass(frozen=True)
class TrainingIds:
    """One text per training row, in the order of `X_fit_`. Several rows may have the same id: those of one person."""

    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def places(self, wanted: Iterable[str]) -> NDArray:
        """Places of all rows that have one of the wanted ids."""
        names = set(wanted)
        return np.array([place for place, text in enumerate(self.texts) if text in names], dtype=int)

    def missing(self, wanted: Iterable[str]) -> list[str]:
        """Those of the wanted ids that no row has, each once, in their order."""
        known = set(self.texts)
        return [text for text in dict.fromkeys(wanted) if text not in known]

    def known(self, wanted: Iterable[str]) -> list[str]:
        """Those of the wanted ids that some row has, each once, in their order."""
        known = set(self.texts)
        return [text for text in dict.fromkeys(wanted) if text in known]

    def without(self, places: NDArray) -> TrainingIds:
        """The ids of the rows that are left."""
        gone = set(places.tolist())
        return TrainingIds(tuple(text for place, text in enumerate(self.texts) if place not in gone))

    def followed_by(self, texts: Sequence[str]) -> TrainingIds:
        """The ids with those of more rows."""
        return TrainingIds((*self.texts, *texts))


def check_ids(ids: TrainingIds, n_rows: int) -> None:
    """Refuse ids that are not texts, or not one per training row."""
    require(len(ids) == n_rows, f"it has {len(ids)} ids for {n_rows} training rows")
    require(all(is_text(text) for text in ids.texts), "an id in it is not text")
    require(all(text.strip() for text in ids.texts), "an id in it is blank")
    require(not any(BETWEEN in text for text in ids.texts), "an id in it holds a zero byte")


def packed(ids: TrainingIds) -> bytes:
    """The bytes of the member of the archive."""
    buffer = io.BytesIO()
    np.save(buffer, np.frombuffer(BETWEEN.join(ids.texts).encode(), dtype=np.uint8), allow_pickle=False)
    return buffer.getvalue()


def unpacked(content: bytes, n_rows: int) -> TrainingIds:
    """The ids of a member whose header was checked. They are counted first: each one takes memory of its own."""
    array = require_array(np.load(io.BytesIO(content), allow_pickle=False), "its list of ids", (None,), kinds="u")
    require(array.dtype == np.uint8, "its list of ids does not hold bytes")
    count = np.count_nonzero(array == 0) + 1
    require(count == n_rows, f"it has {count} ids for {n_rows} training rows")
    try:
        texts = array.tobytes().decode()
    except UnicodeDecodeError as error:
        raise Unsound("its list of ids holds text that cannot be read") from error
    ids = TrainingIds(tuple(texts.split(BETWEEN)))
    check_ids(ids, n_rows)
    return ids

"""Files written whole or not at all: a reader sees the old file or the new one, never a part."""

from __future__ import annotations

import secrets
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a stream that takes the place of `path` when the block ends well, and vanishes when it does not.

    The bytes go to a hidden neighbour of `path`, because only within a folder is a move sure to be one step. A file
    that is replaced keeps its permissions, and a symbolic link goes on pointing where it did.
    """
    path = path.resolve()
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as stream:
            yield stream
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)

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
    """Yield a stream whose content replaces `path` if the block succeeds, and is removed if it fails.

    The bytes go to a hidden file in the folder of `path`, because a move within a folder is a single step. A file that
    is replaced keeps its permissions. A symbolic link still points to the same place.
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

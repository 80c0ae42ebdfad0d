"""Files written whole or not at all: a reader sees the old file or the new one, never a part."""

from __future__ import annotations

import errno
import secrets
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PARTS: set[Path] = set()
"""Hidden files of blocks that have not ended."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CAUSES = (*_FULL, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENAMETOOLONG)


class FileNotWrittenError(OSError):
    """A file could not be written, and is as it was before. The message names the file, the cause and the remedy."""

    def __init__(self, path: Path | str, error: OSError):
        remedy = "make room, or write to another disk" if error.errno in _FULL else "write to another folder"
        super().__init__(f"{path} could not be written, because of '{error.strerror}': {remedy}")
        self.errno = error.errno


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a stream whose content replaces `path` if the block succeeds, and is removed if it fails.

    The bytes go to a hidden file in the folder of `path`, because a move within a folder is a single step. A file that
    is replaced keeps its permissions. A symbolic link still points to the same place.

    Raises
    ------
    FileNotWrittenError
        The disk is full or broken, or the folder cannot be written to.
    """
    given, path = path, path.resolve()
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    _PARTS.add(part)
    try:
        with part.open("xb") as stream:
            yield stream
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    except FileNotWrittenError:  # of another file, in the block
        raise
    except OSError as error:
        if error.errno in _CAUSES and error.filename in (None, str(part), str(path)):
            raise FileNotWrittenError(given, error) from error
        raise  # of something else that the block does
    finally:
        part.unlink(missing_ok=True)
        _PARTS.discard(part)


def discard_parts() -> None:
    """Remove the hidden files of all blocks that have not ended: for a program that ends without leaving its blocks."""
    for part in tuple(_PARTS):
        part.unlink(missing_ok=True)

"""Files written whole or not at all: a reader sees the old file or the new one, never a part.

A program that reads a file, changes it and writes it again works `alone`, or another one would undo its changes.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

POLL = 0.02  # seconds between two looks at a lock that somebody else holds

_PARTS: set[Path] = set()
"""Hidden files of blocks that have not ended."""
_TAKEN = (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)  # what systems say of a lock that somebody else holds
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

    The bytes go to a hidden file in the folder of `path`, because a move within a folder is a single step. They are on
    the disk before the move, and the move is before the block ends: not even a power failure leaves a part. A file that
    is replaced keeps its permissions, and the hidden file has them from the start. A symbolic link still points to the
    same place.

    Raises
    ------
    FileNotWrittenError
        The disk is full or broken, or the folder cannot be written to.
    """
    given, path = path, path.resolve()
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    _PARTS.add(part)
    try:
        replaces = path.exists()
        part.touch(0o600 if replaces else 0o666, exist_ok=False)
        if replaces:
            shutil.copymode(path, part)
        with part.open("r+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
        _sync_folder(path.parent)
    except FileNotWrittenError:  # of another file, in the block
        raise
    except OSError as error:
        if error.errno in _CAUSES and error.filename in (None, str(part), str(path)):
            raise FileNotWrittenError(given, error) from error
        raise  # of something else that the block does
    finally:
        part.unlink(missing_ok=True)
        _PARTS.discard(part)


def _sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where systems know how. The file is there already, so nothing fails."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


@contextmanager
def alone(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Wait until no other program is in such a block for the same path, and keep others out until this block ends.

    The lock is one of the operating system on a hidden file beside `path`. The file alone means nothing. So a program
    that is killed leaves no lock behind. Where a file system has no locks, all programs enter.

    Parameters
    ----------
    path : Path
        The file that is read and written in the block. It need not exist.
    waiting : callable, optional
        Called once if there is a need to wait.

    Raises
    ------
    FileNotWrittenError
        The folder cannot be written to.
    """
    real = path.resolve()
    lock = real.with_name(f".{real.name}.lock")
    try:
        number = _locked(lock, waiting)
    except OSError as error:
        raise FileNotWrittenError(path, error) from error
    _PARTS.add(lock)
    try:
        yield
    finally:
        _PARTS.discard(lock)
        with suppress(OSError):  # Windows removes no open file; one that is left behind does no harm
            lock.unlink()
        os.close(number)


def _locked(lock: Path, waiting: Callable[[], None]) -> int:
    """The number of a file that is open and locked."""
    waited = False
    while True:
        number = os.open(lock, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            if _take(number) and _is_at(number, lock):
                return number
        except BaseException:
            os.close(number)
            raise
        os.close(number)
        if not waited:
            waiting()
            waited = True
        time.sleep(POLL)


def _take(number: int) -> bool:
    """Lock an open file if nobody else has. The system takes the lock back when the process ends, however it ends."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _TAKEN  # otherwise there are no locks here
    return True


def _is_at(number: int, path: Path) -> bool:
    """Whether an open file is still the one of this name: the one who had the lock before may have removed it."""
    try:
        return os.path.samestat(os.fstat(number), path.stat())
    except FileNotFoundError:
        return False


def discard_parts() -> None:
    """Remove the hidden files of all blocks that have not ended: for a program that ends without leaving its blocks."""
    for part in tuple(_PARTS):
        with suppress(OSError):
            part.unlink(missing_ok=True)

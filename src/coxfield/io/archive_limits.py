"""Limits of an archive, checked before anything in it is parsed: a small file must not take much memory or time.

`save` writes members as they are, not compressed. So no member can be larger than the file, and their sizes cannot add
up to more than the file. Only sparse points are compressed, in an archive inside the archive; `array_headers` has
limits for them.

A model of 60,000 points with 784 features is a file of 0.4 GB with some 40 members and 0.1 MB of text.
"""

from __future__ import annotations

import io
import json
import os
import re
from itertools import accumulate
from typing import IO, TYPE_CHECKING, Any
from zipfile import ZIP_STORED, ZipFile

from coxfield.io.requirements import quoted, require

if TYPE_CHECKING:
    from collections.abc import Sequence
    from zipfile import ZipInfo

FILE_BYTES = 2**32
DIRECTORY_BYTES = 2**21  # of the list of members at the end of the file
MEMBERS = 10_000
TEXT_BYTES = 2**24  # of a text in JSON, such as the structure of a model
NESTING = 200  # of lists and mappings in a text; a sum of fifty kernels has 180
CONTAINERS = 200_000  # lists and mappings in a text
ENDINGS = (".json", ".npy", ".npz", ".txt")

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', flags=re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)).difference(b"[]{}"))


class ShortReads(io.RawIOBase):
    """A stream that refuses to read much at a time: `ZipFile` reads the list of members in one piece."""

    def __init__(self, stream: IO[bytes]):
        self._stream = stream

    def read(self, size: int | None = -1) -> bytes:
        """At most so many bytes; all that are left if there is no number."""
        found = self._stream.read(DIRECTORY_BYTES + 1 if size is None or size < 0 else min(size, DIRECTORY_BYTES + 1))
        require(len(found) <= DIRECTORY_BYTES, "its list of members is too long")
        return found

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to another place."""
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """The place."""
        return self._stream.tell()

    def seekable(self) -> bool:
        """Always."""
        return True


def check_archive(stream: IO[bytes]) -> None:
    """Refuse a stream whose size, or whose members by their number, kind and size, are no model.

    Raises
    ------
    Unsound
        A limit is exceeded.
    BadZipFile
        It is no archive.
    """
    size = stream.seek(0, os.SEEK_END)
    require(size <= FILE_BYTES, f"it has {size} bytes, more than {FILE_BYTES}")
    with ZipFile(ShortReads(stream)) as archive:
        check_members(archive.infolist(), size)


def check_members(members: Sequence[ZipInfo], size: int) -> None:
    """Refuse members that `save` would not write to a file of this size."""
    require(len(members) <= MEMBERS, f"it has {len(members)} members, more than {MEMBERS}")
    names = [member.filename for member in members]
    require(len(set(names)) == len(names), "two of its members have the same name")
    for member in members:
        name = quoted(member.filename)
        require(member.filename.endswith(ENDINGS), f"its member {name} is no part of a model")
        require(member.compress_type == ZIP_STORED, f"its member {name} is compressed, which no part of a model is")
        require(member.file_size == member.compress_size, f"its member {name} has two different sizes")
        is_text = member.filename.endswith((".json", ".txt"))
        require(not is_text or member.file_size <= TEXT_BYTES, f"its member {name} is too long for a text")
    total = sum(member.file_size for member in members)
    require(total <= size, f"its members claim {total} bytes, but the file has {size}")


def parse(text: bytes, what: str) -> Any:
    """A text in JSON that is neither too long nor too deep; this is known before it is parsed."""
    require(len(text) <= TEXT_BYTES, f"{what} is too long")
    require(text.isascii() and b"\0" not in text, f"{what} is not in the letters that `save` writes")
    brackets = _STRING.sub(b"", text).translate(None, _NO_BRACKETS)
    require(brackets.count(b"[") + brackets.count(b"{") <= CONTAINERS, f"{what} has too many parts")
    steps = (1 if bracket in b"[{" else -1 for bracket in brackets)
    require(max(accumulate(steps), default=0) <= NESTING, f"{what} is nested too deeply")
    return json.loads(text)

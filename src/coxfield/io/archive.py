"""The archive of a model file: its limits, the headers of its arrays, and its checksum.

All of that is checked before anything in it is parsed or built: a small file must not take much memory or time.

`save` writes members as they are, not compressed. So no member can be larger than the file, and their sizes cannot add
up to more than the file. Only sparse points are compressed, in an archive inside the archive, which has limits of its
own. A model of 60,000 points with 784 features is a file of 0.4 GB with some 40 members and 0.1 MB of text.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
from itertools import accumulate
from typing import IO, TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from numpy.lib import format as npy

from coxfield.io.requirements import Unsound, quoted, require

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

KINDS = "biufcSUmM"  # of arrays: booleans, numbers, text and dates; neither records nor objects, which would run code
PARTS = 8  # arrays of a sparse matrix; there are five or six
FREE_BYTES = 2**28  # that sparse matrices may take, however small they are when compressed
RATIO = 16  # by which larger ones may have been compressed; column numbers are seldom compressed by 10
READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}

CHECKSUM = "sha256.txt"  # the member that has it
CHUNK = 2**20  # bytes that are read at a time

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


def check_arrays(archive: ZipFile) -> None:
    """Refuse an archive with an array whose header announces what is not there: memory is taken before it is read.

    The sizes of the members have been checked before.
    """
    packed = unpacked = 0
    for member in archive.infolist():
        if member.filename.endswith(".npy"):
            _check_array(archive, member)
        elif member.filename.endswith(".npz"):
            with archive.open(member) as stream, ZipFile(ShortReads(stream)) as parts:
                unpacked += _checked_size(parts, member)
            packed += member.file_size
    fits = unpacked <= max(FREE_BYTES, RATIO * packed)
    require(fits, f"its sparse matrices take {unpacked} bytes when they are unpacked")


def _checked_size(parts: ZipFile, whole: ZipInfo) -> int:
    """The number of bytes that a sparse matrix takes."""
    name, members = quoted(whole.filename), parts.infolist()
    require(len(members) <= PARTS, f"its member {name} has too many parts")
    for member in members:
        known = member.filename.endswith(".npy") and member.compress_type in (ZIP_STORED, ZIP_DEFLATED)
        require(known, f"its member {name} is no sparse matrix")
        _check_array(parts, member)
    return sum(member.file_size for member in members)


def _check_array(archive: ZipFile, member: ZipInfo) -> None:
    name = quoted(member.filename)
    with archive.open(member) as stream:
        announced = _announced(stream, name)
        found = member.file_size - stream.tell()
    require(announced == found, f"its array {name} announces {announced} bytes, but has {found}")


def _announced(stream: IO[bytes], name: str) -> int:
    """The number of bytes that the array of a header takes."""
    try:
        reader = READERS[npy.read_magic(stream)]
        shape, _, dtype = reader(stream)
    except Exception as error:  # a header is a piece of Python, which can be wrong in many ways
        raise Unsound(f"its array {name} has a damaged header") from error
    plain = dtype.kind in KINDS and dtype.fields is None and dtype.subdtype is None and not dtype.hasobject
    require(plain, f"its array {name} does not hold numbers or text")
    require(all(length >= 0 for length in shape), f"its array {name} has a negative length")
    values = math.prod(shape)
    require(values <= 1 or dtype.itemsize > 0, f"its array {name} has values without any size")
    return values * dtype.itemsize


def checksum(archive: ZipFile) -> str:
    """SHA-256 of the names, the sizes and the bytes of all members in their order, without that of the checksum.

    By it damage is found. It is not a signature: anyone can compute it.
    """
    found = hashlib.sha256()
    for member in archive.infolist():
        if member.filename == CHECKSUM:
            continue
        found.update(f"{member.filename}\0{member.file_size}\0".encode())
        with archive.open(member) as stream:
            while part := stream.read(CHUNK):
                found.update(part)
    return found.hexdigest()


def add_checksum(archive: ZipFile) -> None:
    """Write the checksum as the last member."""
    archive.writestr(CHECKSUM, checksum(archive))


def check_checksum(archive: ZipFile) -> None:
    """Refuse an archive whose bytes are not those that were written."""
    require(CHECKSUM in archive.namelist(), "it has lost its checksum")
    require(archive.read(CHECKSUM) == checksum(archive).encode(), "it is damaged, and no longer as it was written")

"""Headers of stored arrays: what they announce must be what is there, because memory is taken before it is read.

An array of Python objects is refused: to read it would run code of the file.
"""

from __future__ import annotations

import math
from typing import IO, TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from numpy.lib import format as npy

from coxfield.io.archive_limits import ShortReads
from coxfield.io.requirements import Unsound, quoted, require

if TYPE_CHECKING:
    from zipfile import ZipInfo

KINDS = "biufcSUmM"  # booleans, numbers, text and dates; neither objects nor records
PARTS = 8  # arrays of a sparse matrix; there are five or six
FREE_BYTES = 2**28  # that sparse matrices may take, however small they are when compressed
RATIO = 16  # by which larger ones may have been compressed; column numbers are seldom compressed by 10
READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def check_arrays(archive: ZipFile) -> None:
    """Refuse an archive with an array whose header is wrong; the sizes of its members have been checked before."""
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

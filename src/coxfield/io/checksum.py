"""A checksum of all members of an archive, by which damage is found. It is no signature: anyone can compute it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from coxfield.io.requirements import require

if TYPE_CHECKING:
    from zipfile import ZipFile

MEMBER = "sha256.txt"
CHUNK = 2**20  # bytes that are read at a time


def checksum(archive: ZipFile) -> str:
    """SHA-256 of the names, the sizes and the bytes of all members in their order, without that of the checksum."""
    found = hashlib.sha256()
    for member in archive.infolist():
        if member.filename == MEMBER:
            continue
        found.update(f"{member.filename}\0{member.file_size}\0".encode())
        with archive.open(member) as stream:
            while part := stream.read(CHUNK):
                found.update(part)
    return found.hexdigest()


def add_checksum(archive: ZipFile) -> None:
    """Write the checksum as the last member."""
    archive.writestr(MEMBER, checksum(archive))


def check_checksum(archive: ZipFile) -> None:
    """Refuse an archive whose bytes are not those that were written."""
    require(MEMBER in archive.namelist(), "it has lost its checksum")
    require(archive.read(MEMBER) == checksum(archive).encode(), "it is damaged, and no longer as it was written")

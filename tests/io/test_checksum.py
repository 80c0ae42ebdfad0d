"""The checksum: the same for the same members, another for any other."""

import hashlib
import io
import zipfile

import pytest

from coxfield.io.checksum import MEMBER, add_checksum, check_checksum, checksum
from coxfield.io.requirements import Unsound

CONTENT = {"a.npy": b"12345", "b.json": b""}


def archive(members, with_checksum=True):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as found:
        for name, content in members.items():
            found.writestr(name, content)
        if with_checksum:
            add_checksum(found)
    return zipfile.ZipFile(buffer)


def test_it_is_the_hash_of_names_sizes_and_bytes():
    assert checksum(archive(CONTENT)) == hashlib.sha256(b"a.npy\x005\x0012345b.json\x000\x00").hexdigest()


def test_it_does_not_depend_on_itself_and_passes():
    assert checksum(archive(CONTENT)) == checksum(archive(CONTENT, with_checksum=False))
    check_checksum(archive(CONTENT))


@pytest.mark.parametrize(
    "members",
    [
        {"a.npy": b"12346", "b.json": b""},
        {"a.npy": b"1234", "b.json": b"5"},
        {"b.json": b"", "a.npy": b"12345"},
        {"a.npy": b"12345"},
        {"a.npy": b"12345", "c.json": b""},
    ],
)
def test_other_members_are_refused(members):
    changed = archive({**members, MEMBER: checksum(archive(CONTENT)).encode()}, with_checksum=False)
    with pytest.raises(Unsound, match="it is damaged, and no longer as it was written"):
        check_checksum(changed)


def test_without_it_an_archive_is_refused():
    with pytest.raises(Unsound, match="it has lost its checksum"):
        check_checksum(archive(CONTENT, with_checksum=False))

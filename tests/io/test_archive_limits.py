"""Limits of archives: files that would take much memory or time are refused before anything is parsed."""

import io
import json
import struct
import tracemalloc
import zipfile

import pytest

from coxfield.io import archive_limits
from coxfield.io.archive_limits import CONTAINERS, NESTING, TEXT_BYTES, check_archive, parse
from coxfield.io.requirements import Unsound


def archive(members, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as found:
        for name, content in members:
            found.writestr(name, content)
    return buffer


def refusal(stream):
    """The clause, for which next to no memory was taken."""
    tracemalloc.start()
    try:
        with pytest.raises(Unsound) as caught:
            check_archive(stream)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    return str(caught.value)


def test_members_of_a_model_pass():
    check_archive(archive([("schema.json", b"{}"), ("1.npy", b"1" * 1000), ("2.npz", b""), ("sha256.txt", b"")]))


def test_what_is_no_archive_is_said_to_be_none():
    with pytest.raises(zipfile.BadZipFile):
        check_archive(io.BytesIO(b"not an archive"))


def test_a_bomb_is_refused():
    bomb = archive([("schema.json", b"{}"), ("1.npy", bytes(10**7))], zipfile.ZIP_DEFLATED)
    assert "'schema.json' is compressed" in refusal(bomb)


def test_a_member_is_not_larger_than_the_file():
    content = bytearray(archive([("1.npy", b"12345")]).getvalue())
    at = content.rfind(b"PK\x01\x02") + 20
    content[at : at + 8] = struct.pack("<LL", 4 * 10**9, 4 * 10**9)
    assert "its members claim 4000000000 bytes, but the file has" in refusal(io.BytesIO(content))
    content[at : at + 8] = struct.pack("<LL", 5, 4 * 10**9)
    assert "its member '1.npy' has two different sizes" in refusal(io.BytesIO(content))


def test_members_that_overlap_are_refused():
    content = bytearray(archive([("1.npy", bytes(3000)), ("2.npy", bytes(3000))]).getvalue())
    first, second = content.find(b"PK\x01\x02"), content.rfind(b"PK\x01\x02")
    for at in (first, second):
        content[at + 20 : at + 28] = struct.pack("<LL", 6000, 6000)
    assert "its members claim 12000 bytes" in refusal(io.BytesIO(content))


def test_there_are_not_too_many_members(monkeypatch):
    monkeypatch.setattr(archive_limits, "MEMBERS", 20)
    many = archive((f"{number}.npy", b"") for number in range(21))
    assert "it has 21 members, more than 20" in refusal(many)


def test_the_list_of_members_is_not_read_if_it_is_long(monkeypatch):
    monkeypatch.setattr(archive_limits, "DIRECTORY_BYTES", 1000)
    assert refusal(archive((f"{number}.npy", b"") for number in range(20))) == "its list of members is too long"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_have_different_names_and_known_endings():
    assert "two of its members have the same name" in refusal(archive([("1.npy", b"1"), ("1.npy", b"2")]))
    assert "its member 'run.py' is no part of a model" in refusal(archive([("run.py", b"")]))


def test_files_and_texts_are_not_too_large(monkeypatch):
    assert "its member 'schema.json' is too long for a text" in refusal(
        archive([("schema.json", bytes(TEXT_BYTES + 1))])
    )
    monkeypatch.setattr(archive_limits, "FILE_BYTES", 100)
    assert "bytes, more than 100" in refusal(archive([("1.npy", bytes(100))]))


def test_a_model_of_sixty_thousand_images_is_far_from_the_limits():
    names = [f"pixel_{number:03d}" for number in range(784)]
    assert archive_limits.FILE_BYTES > 8 * (60_000 * 784 * 8)
    assert len(json.dumps(names)) < TEXT_BYTES / 100


@pytest.mark.parametrize("value", [1, "[[[", {"a": [1, {"b": None}]}, '\\"[', "é"])
def test_texts_come_back(value):
    assert parse(json.dumps(value).encode(), "it") == value


def nested(depth):
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        (nested(NESTING + 1), "it is nested too deeply"),
        (b'{"a":' * (NESTING + 1), "it is nested too deeply"),
        (nested(10**5), "it is nested too deeply"),
        (b"[" + b"[]," * CONTAINERS + b"[]]", "it has too many parts"),
        (b" " * (TEXT_BYTES + 1), "it is too long"),
        ('["é"]'.encode(), "it is not in the letters"),
        (json.dumps([1]).encode("utf-16-le"), "it is not in the letters"),
    ],
    ids=["lists", "mappings", "very deep", "wide", "long", "letters", "other encoding"],
)
def test_texts_have_limits(text, clause):
    parse(nested(NESTING), "it")
    with pytest.raises(Unsound, match=clause):
        parse(text, "it")


def test_brackets_in_strings_are_no_nesting_and_strings_without_end_take_no_time():
    assert parse(json.dumps(["[" * 10**4, '"' + "[" * 10**4]).encode(), "it")[0] == "[" * 10**4
    with pytest.raises(ValueError, match="Unterminated string"):
        parse(b'["' + b'\\"' * 10**6, "it")

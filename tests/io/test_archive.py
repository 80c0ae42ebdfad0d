"""Archives that would take much memory or time are refused before they are parsed; and the trial of a model."""

import hashlib
import io
import json
import struct
import tracemalloc
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import FunctionTransformer

from coxfield import LGCPClassifier
from coxfield.io import model_file
from coxfield.io import model_file as limits
from coxfield.io.model_data import Unsound
from coxfield.io.model_file import (
    CHECKSUM,
    CONTAINERS,
    TEXT_BYTES,
    add_checksum,
    check_archive,
    check_checksum,
    checksum,
    parse,
    revived,
    try_out,
)
from coxfield.kernels.transforms import Member
from model_archives import saved


def stream_of(members, compression=zipfile.ZIP_STORED):
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
            check_archive(stream.getvalue())
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    return str(caught.value)


def test_members_of_a_model_pass():
    check_archive(stream_of([("model.json", b"{}"), ("1.npy", b"1" * 1000), ("sha256.txt", b"")]).getvalue())


def test_what_is_no_archive_is_said_to_be_none():
    with pytest.raises(zipfile.BadZipFile):
        check_archive(b"not an archive")


def test_a_bomb_is_refused():
    bomb = stream_of([("model.json", b"{}"), ("1.npy", bytes(10**7))], zipfile.ZIP_DEFLATED)
    assert "'model.json' is compressed" in refusal(bomb)


def test_a_member_is_not_larger_than_the_file():
    content = bytearray(stream_of([("1.npy", b"12345")]).getvalue())
    at = content.rfind(b"PK\x01\x02") + 20
    content[at : at + 8] = struct.pack("<LL", 4 * 10**9, 4 * 10**9)
    assert "its members claim 4000000000 bytes, but the file has" in refusal(io.BytesIO(content))
    content[at : at + 8] = struct.pack("<LL", 5, 4 * 10**9)
    assert "its member '1.npy' has two different sizes" in refusal(io.BytesIO(content))


def test_members_that_overlap_are_refused():
    content = bytearray(stream_of([("1.npy", bytes(3000)), ("2.npy", bytes(3000))]).getvalue())
    first, second = content.find(b"PK\x01\x02"), content.rfind(b"PK\x01\x02")
    for at in (first, second):
        content[at + 20 : at + 28] = struct.pack("<LL", 6000, 6000)
    assert "its members claim 12000 bytes" in refusal(io.BytesIO(content))


def test_there_are_not_too_many_members(monkeypatch):
    monkeypatch.setattr(limits, "MEMBERS", 20)
    many = stream_of((f"{number}.npy", b"") for number in range(21))
    assert "it has 21 members, more than 20" in refusal(many)


def test_the_list_of_members_is_not_read_if_it_is_long(monkeypatch):
    monkeypatch.setattr(limits, "DIRECTORY_BYTES", 1000)
    assert refusal(stream_of((f"{number}.npy", b"") for number in range(20))) == "its list of members is too long"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_have_different_names_and_known_endings():
    assert "two of its members have the same name" in refusal(stream_of([("1.npy", b"1"), ("1.npy", b"2")]))
    assert "its member 'run.py' is not a part of a model" in refusal(stream_of([("run.py", b"")]))


def test_files_and_texts_are_not_too_large(monkeypatch, tmp_path):
    assert "its member 'model.json' is too long for a text" in refusal(
        stream_of([("model.json", bytes(TEXT_BYTES + 1))])
    )
    monkeypatch.setattr(limits, "FILE_BYTES", 100)
    path = tmp_path / "large.skops"
    path.write_bytes(stream_of([("1.npy", bytes(100))]).getvalue())
    with pytest.raises(limits.ModelFileError, match="bytes, more than 100"):
        limits.load(path)


def test_a_model_of_sixty_thousand_images_is_far_from_the_limits():
    names = [f"pixel_{number:03d}" for number in range(784)]
    assert limits.FILE_BYTES > 8 * (60_000 * 784 * 8)
    assert len(json.dumps(names)) < TEXT_BYTES / 100


@pytest.mark.parametrize("value", [1, "[[[", {"a": [1, {"b": None}]}, '\\"[', "é"])
def test_texts_come_back(value):
    assert parse(json.dumps(value).encode(), "it") == value


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        (b"[" * 10**5 + b"]" * 10**5, "it is nested too deeply"),
        (b'{"a":' * 10**5, "it is nested too deeply"),
        (b"[" + b"[]," * CONTAINERS + b"[]]", "it has too many parts"),
    ],
    ids=["lists", "mappings", "wide"],
)
def test_texts_have_limits(text, clause):
    with pytest.raises(Unsound, match=clause):
        parse(text, "it")


def archive_of(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as found:
        for name, content in members.items():
            found.writestr(name.replace("_", "."), content)
    return zipfile.ZipFile(buffer)


def header(text):
    """The bytes of an array without values."""
    text = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def announced(dtype, shape):
    return header(f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}")


@pytest.mark.parametrize(
    "array", [np.eye(3), np.float64(1), np.array(["a", "bc"]), np.zeros((0, 5)), np.array([True]), np.eye(3, order="F")]
)
def test_arrays_come_back(array):
    np.testing.assert_array_equal(limits._array(archive_of(a_npy=saved(array)), "a.npy"), array)


@pytest.mark.parametrize(
    ("content", "clause"),
    [
        (announced("<f8", (10**12,)), "announces 8000000000000 bytes, but has 0"),
        (announced("<f8", (10**30, 10**30)), "announces 8"),
        (saved(np.eye(3))[:-1], "announces 72 bytes, but has 71"),
        (saved(np.eye(3)) + b"1", "announces 72 bytes, but has 73"),
        (saved(np.array([{}]), allow_pickle=True), "does not hold numbers or text"),
        (announced("O", (1,)), "does not hold numbers or text"),
        (announced([("a", "<f8")], (0,)), "does not hold numbers or text"),
        (announced("<f8", (-1, 0)), "has a negative length"),
        (announced("<U0", (10**12,)), "has values without any size"),
        (header("__import__('os').abort()"), "has a damaged header"),
        (header("(" * 100), "has a damaged header"),
        (header("{}"), "has a damaged header"),
        (b"", "has a damaged header"),
        (b"PK\x03\x04", "has a damaged header"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "has a damaged header"),
    ],
)
def test_headers_that_are_wrong_are_refused(content, clause):
    with pytest.raises(Unsound, match=f"its array 'a.npy' {clause}"):
        limits._array(archive_of(a_npy=content), "a.npy")


def test_an_array_that_is_missing_is_named():
    for name in ("b.npy", "../a.npy", "a.txt"):
        with pytest.raises(Unsound, match="is missing"):
            limits._array(archive_of(a_npy=saved(np.eye(3)), a_txt=b""), name)


CONTENT = {"a.npy": b"12345", "b.json": b""}


def signed(members, with_checksum=True):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as found:
        for name, content in members.items():
            found.writestr(name, content)
        if with_checksum:
            add_checksum(found)
    return zipfile.ZipFile(buffer)


def test_it_is_the_hash_of_names_sizes_and_bytes():
    assert checksum(signed(CONTENT)) == hashlib.sha256(b"a.npy\x005\x0012345b.json\x000\x00").hexdigest()


def test_it_does_not_depend_on_itself_and_passes():
    assert checksum(signed(CONTENT)) == checksum(signed(CONTENT, with_checksum=False))
    check_checksum(signed(CONTENT))


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
    changed = signed({**members, CHECKSUM: checksum(signed(CONTENT)).encode()}, with_checksum=False)
    with pytest.raises(Unsound, match="it is damaged, and no longer as it was written"):
        check_checksum(changed)


def test_without_it_an_archive_is_refused():
    with pytest.raises(Unsound, match="it has lost its checksum"):
        check_checksum(signed(CONTENT, with_checksum=False))


RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)


def test_a_model_of_a_state_is_the_model():
    model = LGCPClassifier().fit(X, Y)
    np.testing.assert_array_equal(revived(model.__getstate__()).predict_proba(X), model.predict_proba(X))


def test_a_trial_does_not_warn_of_names_that_its_points_do_not_have():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try_out(LGCPClassifier(selection=None).fit(pd.DataFrame(X, columns=["a", "b"]), Y))


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        ({"mean_": np.array([np.nan, 0.0])}, "the probabilities that it predicts are not finite"),
        ({"kernel_": {}}, "it cannot predict its own points"),
        ({"kernel": RBF.__new__(RBF)}, "it cannot predict its own points"),
    ],
)
def test_a_state_that_does_not_work_is_refused(change, clause):
    state = LGCPClassifier(selection=None).fit(X, Y).__getstate__()
    with pytest.raises(Unsound, match=clause):
        revived({**state, **change})


def test_scores_that_would_overflow_elsewhere_are_refused():
    model = LGCPClassifier([Member()]).fit(X, Y)
    model.kernel_.ladders[0].weights[:] = 1e300
    with pytest.raises(Unsound, match="its scores are too large to be added"):
        try_out(model)


def test_a_transformer_that_fails_is_found():
    model = LGCPClassifier([Member(transform=FunctionTransformer(np.arctan))]).fit(X, Y)
    model.kernel_.ladders[0].transform.fitted.func = np.atleast_3d
    with pytest.raises(Unsound, match="it cannot predict its own points"):
        try_out(model)


def test_a_trial_does_not_compute_the_densities_of_many_points(monkeypatch):
    mixture = LGCPClassifier().fit(X, Y).kernel_
    model = LGCPClassifier(mixture, selection=None).fit(X, Y)
    monkeypatch.setattr(LGCPClassifier, "_scores_of", None)
    with pytest.raises(Unsound, match="it cannot predict its own points"):
        try_out(model)
    monkeypatch.setattr(model_file, "VALUES", 1)
    try_out(model)

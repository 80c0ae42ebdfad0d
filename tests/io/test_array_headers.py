"""Headers of arrays: what they announce is there, and it is numbers or text."""

import io
import zipfile

import numpy as np
import pytest
from scipy import sparse

from coxfield.io import array_headers
from coxfield.io.array_headers import check_arrays
from coxfield.io.requirements import Unsound
from model_archives import saved


def archive(**members):
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


def npz(**parts):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as found:
        for name, content in parts.items():
            found.writestr(f"{name}.npy", content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "array", [np.eye(3), np.float64(1), np.array(["a", "bc"]), np.zeros((0, 5)), np.array([True]), np.eye(3, order="F")]
)
def test_arrays_pass(array):
    check_arrays(archive(a_npy=saved(array)))


def test_sparse_matrices_pass():
    buffer = io.BytesIO()
    sparse.save_npz(buffer, sparse.eye_array(1000, format="csr"))
    check_arrays(archive(a_npz=buffer.getvalue()))


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
        check_arrays(archive(a_npy=content))
    with pytest.raises(Unsound, match=f"its array 'a.npy' {clause}"):
        check_arrays(archive(b_npz=npz(a=content)))


def test_sparse_matrices_do_not_take_much_memory():
    zeros = saved(np.zeros(10**6))
    bomb = npz(**dict.fromkeys("abcdef", zeros))
    check_arrays(archive(a_npz=bomb))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_headers, "FREE_BYTES", 10**6)
        with pytest.raises(Unsound, match="its sparse matrices take 48000768 bytes when they are unpacked"):
            check_arrays(archive(a_npz=bomb))
        patch.setattr(array_headers, "FREE_BYTES", 9 * 10**6)
        few = npz(a=zeros)
        check_arrays(archive(a_npz=few))
        with pytest.raises(Unsound, match="its sparse matrices take 16000256 bytes when they are unpacked"):
            check_arrays(archive(a_npz=few, b_npz=few))


def test_sparse_matrices_are_made_of_a_few_arrays():
    with pytest.raises(Unsound, match="has too many parts"):
        check_arrays(archive(a_npz=npz(**dict.fromkeys("abcdefghi", saved(np.eye(2))))))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as found:
        found.writestr("run.py", b"")
    with pytest.raises(Unsound, match="is no sparse matrix"):
        check_arrays(archive(a_npz=buffer.getvalue()))

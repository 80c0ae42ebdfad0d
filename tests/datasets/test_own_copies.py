"""Sets of the user: the official files are read number by number, others are refused; checksums of the real sets."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from coxfield.datasets import DatasetUnavailableError, fetch_bci, fetch_mnist, load_oil, load_stl10
from coxfield.datasets.fetch import data_folder


def write_oil(folder, rng):
    wanted = {}
    for part, short in (("train", "Trn"), ("valid", "Vdn"), ("test", "Tst")):
        X, y = rng.random((5, 12)).round(4), rng.integers(3, size=5)
        np.savetxt(folder / f"Data{short}.txt", X)
        np.savetxt(folder / f"Data{short}Lbls.txt", np.eye(3)[y])
        wanted[f"X_{part}"], wanted[f"y_{part}"] = X, y
    return wanted


def test_official_text_files_and_npz_give_the_same_arrays(tmp_path, monkeypatch):
    wanted = write_oil(tmp_path, np.random.default_rng(0))
    np.savez(tmp_path / "oil.npz", **wanted)
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    for oil in (load_oil(tmp_path), load_oil(tmp_path / "oil.npz"), load_oil()):
        for name, array in wanted.items():
            np.testing.assert_allclose(oil[name], array)
    (tmp_path / "oil.npz").unlink()
    np.testing.assert_allclose(load_oil().X_test, wanted["X_test"])
    assert oil.target_names == ["homogeneous", "annular", "laminar"]


def test_missing_or_broken_oil_files_are_said_plainly(tmp_path, monkeypatch):
    monkeypatch.delenv("COXFIELD_DATA", raising=False)
    with pytest.raises(DatasetUnavailableError, match="in no package"):
        load_oil()
    with pytest.raises(DatasetUnavailableError, match=r"pass the folder with DataTrn\.txt"):
        load_oil(tmp_path)
    np.savez(tmp_path / "oil.npz", X_train=np.zeros((2, 12)))
    with pytest.raises(DatasetUnavailableError, match="cannot be read"):
        load_oil(tmp_path / "oil.npz")


NAMES = ["airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck"]


def write_stl10(folder, rng, counts=(3, 2)):
    """Files of the official format; returns the pictures as (row, column, colour), and the classes from 0."""
    folder.mkdir()
    wanted = {}
    for part, count in zip(("train", "test"), counts, strict=True):
        pictures, y = rng.integers(256, size=(count, 96, 96, 3), dtype=np.uint8), rng.integers(10, size=count)
        with (folder / f"{part}_X.bin").open("wb") as file:
            for picture in pictures:
                for colour in range(3):
                    for column in range(96):
                        file.write(picture[:, column, colour].tobytes())
        (folder / f"{part}_y.bin").write_bytes(bytes((y + 1).tolist()))
        wanted[part] = pictures, y
    (folder / "class_names.txt").write_text("".join(f"{name}\n" for name in NAMES))
    return wanted


def test_pictures_and_classes_are_read_pixel_by_pixel(tmp_path, monkeypatch):
    wanted = write_stl10(tmp_path / "stl10_binary", np.random.default_rng(0))
    inside, above = load_stl10(tmp_path / "stl10_binary"), load_stl10(tmp_path)
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    for stl in (inside, above, load_stl10()):
        for part, (pictures, y) in wanted.items():
            np.testing.assert_array_equal(stl[f"X_{part}"].reshape(-1, 96, 96, 3), pictures)
            np.testing.assert_array_equal(stl[f"y_{part}"], y)
            assert (stl[f"X_{part}"].dtype, stl[f"y_{part}"].dtype) == (np.uint8, np.int64)
        assert stl.target_names.tolist() == NAMES


def test_missing_stl10_files_are_said_plainly(tmp_path):
    with pytest.raises(DatasetUnavailableError, match=r"in no package .*; unpack the official stl10_binary\.tar\.gz"):
        load_stl10()
    with pytest.raises(DatasetUnavailableError, match=r"cannot be read from .*; unpack the official"):
        load_stl10(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("train_X.bin", bytes(27648 * 3 - 1), "no multiple of 27648"),
        ("train_X.bin", bytes(27648 * 2), "holds 2 pictures, but train_y.bin 3 labels"),
        ("test_y.bin", bytes([0, 4]), "labels from 0 to 4"),
        ("test_y.bin", bytes([11, 4]), "labels from 4 to 11"),
        ("class_names.txt", b"cat\ndog\n", "names 2 classes"),
        ("class_names.txt", b"\xff\xfe", "cannot be read"),
    ],
)
def test_broken_stl10_files_are_said_plainly(tmp_path, name, content, sentence):
    write_stl10(tmp_path / "stl10_binary", np.random.default_rng(0))
    (tmp_path / "stl10_binary" / name).write_bytes(content)
    with pytest.raises(DatasetUnavailableError, match=sentence):
        load_stl10(tmp_path)


FOLDER = data_folder()  # before the tests hide it


@pytest.fixture
def needs(monkeypatch):
    """Return a function that skips the test unless the folder holds a file."""

    def needs(filename):
        if FOLDER is None or not (FOLDER / filename).is_file():
            pytest.skip(f"COXFIELD_DATA names no folder with {filename}")
        monkeypatch.setenv("COXFIELD_DATA", str(FOLDER))

    return needs


def test_mnist_is_the_standard_split(needs):
    needs("mnist.npz")
    mnist = fetch_mnist(download=False)
    assert mnist.X_train.shape == (60_000, 784)
    assert mnist.X_test.shape == (10_000, 784)
    assert np.bincount(mnist.y_test).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@pytest.mark.parametrize(("splits", "percent"), [("labeled10_idx", 48.74), ("labeled100_idx", 44.83)])
def test_bci_meets_the_nearest_neighbour_figures(needs, splits, percent):
    needs("ssl_bci.npz")
    bci = fetch_bci(download=False)
    errors = []
    for labelled in bci[splits]:
        unlabelled = np.setdiff1d(np.arange(400), labelled)
        nearest = KNeighborsClassifier(1).fit(bci.X[labelled], bci.y[labelled])
        errors.append(100 * (1 - nearest.score(bci.X[unlabelled], bci.y[unlabelled])))
    assert np.mean(errors) == pytest.approx(percent, abs=0.005)

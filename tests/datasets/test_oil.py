import numpy as np
import pytest

from coxfield.datasets import DatasetUnavailableError, load_oil


def write_text(folder, rng):
    wanted = {}
    for part, short in (("train", "Trn"), ("valid", "Vdn"), ("test", "Tst")):
        X, y = rng.random((5, 12)).round(4), rng.integers(3, size=5)
        np.savetxt(folder / f"Data{short}.txt", X)
        np.savetxt(folder / f"Data{short}Lbls.txt", np.eye(3)[y])
        wanted[f"X_{part}"], wanted[f"y_{part}"] = X, y
    return wanted


def test_official_text_files_and_npz_give_the_same_arrays(tmp_path, monkeypatch):
    wanted = write_text(tmp_path, np.random.default_rng(0))
    np.savez(tmp_path / "oil.npz", **wanted)
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    for oil in (load_oil(tmp_path), load_oil(tmp_path / "oil.npz"), load_oil()):
        for name, array in wanted.items():
            np.testing.assert_allclose(oil[name], array)
    (tmp_path / "oil.npz").unlink()
    np.testing.assert_allclose(load_oil().X_test, wanted["X_test"])
    assert oil.target_names == ["homogeneous", "annular", "laminar"]


def test_missing_or_broken_files_are_said_plainly(tmp_path, monkeypatch):
    monkeypatch.delenv("COXFIELD_DATA", raising=False)
    with pytest.raises(DatasetUnavailableError, match="in no package"):
        load_oil()
    with pytest.raises(DatasetUnavailableError, match=r"pass the folder with DataTrn\.txt"):
        load_oil(tmp_path)
    np.savez(tmp_path / "oil.npz", X_train=np.zeros((2, 12)))
    with pytest.raises(DatasetUnavailableError, match="cannot be read"):
        load_oil(tmp_path / "oil.npz")

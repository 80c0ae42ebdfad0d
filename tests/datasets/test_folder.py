import pytest

from coxfield.datasets import DatasetUnavailableError
from coxfield.datasets.folder import data_folder, own_copy, require


@pytest.mark.parametrize("value", [None, ""])
def test_without_the_variable_there_is_no_folder(value, monkeypatch):
    if value is not None:
        monkeypatch.setenv("COXFIELD_DATA", value)
    assert data_folder() is None


def test_the_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COXFIELD_DATA", "~/data")
    assert data_folder() == tmp_path / "data"
    assert own_copy("~/mine", "toy", "pass it") == tmp_path / "mine"


def test_a_file_of_the_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    (tmp_path / "toy.npz").write_bytes(b"")
    assert require("toy.npz", "toy") == tmp_path / "toy.npz"


def test_the_sentence_says_what_is_missing_and_what_to_do(tmp_path, monkeypatch):
    with pytest.raises(DatasetUnavailableError) as unset:
        require("toy.npz", "toy")
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    with pytest.raises(DatasetUnavailableError) as absent:
        require("toy.npz", "toy")
    opening = "toy is read from toy.npz in the folder that COXFIELD_DATA names, but "
    remedy = "; put the file into a folder and set COXFIELD_DATA to that folder."
    assert str(unset.value) == f"{opening}COXFIELD_DATA is not set{remedy}"
    assert str(absent.value) == f"{opening}there is no toy.npz in {tmp_path}{remedy}"


def test_a_given_path_comes_before_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path / "data"))
    assert own_copy(tmp_path / "mine", "toy", "pass it") == tmp_path / "mine"
    assert own_copy(None, "toy", "pass it") == tmp_path / "data"
    monkeypatch.delenv("COXFIELD_DATA")
    with pytest.raises(DatasetUnavailableError, match=r"toy is in no package .*; pass it, or set COXFIELD_DATA"):
        own_copy(None, "toy", "pass it")

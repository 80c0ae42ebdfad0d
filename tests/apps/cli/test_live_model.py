"""A model that is read, changed and written: the file changes only at the end."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from coxfield import LGCPClassifier
from coxfield.apps.cli.live_model import LiveModel
from coxfield.io import model_file

RNG = np.random.default_rng(5)
X = RNG.normal(size=(30, 2))
Y = np.array(["a", "b"])[np.arange(30) % 2]
IDS = [f"id{row}" for row in range(30)]


@pytest.fixture
def path(tmp_path):
    model = LGCPClassifier(selection="loo_error", n_jobs=2).fit(X[:20], Y[:20])
    path = tmp_path / "model.skops"
    model_file.save(model, path, target="y", features=["p", "q"], id_column="name", ids=IDS[:20])
    return path


def test_rows_and_ids_come_and_go_together(path, capsys):
    before = path.read_bytes()
    with LiveModel.opened(path, None, jobs=1, quiet=False) as live:
        live = live.with_rows(X[20:], Y[20:], np.empty(0, str), None, IDS[20:])
        live = live.without(np.array([0, 25]), reselect=False)
        assert path.read_bytes() == before
        live.write({"Changed": "much"})
    saved = model_file.load(path)
    kept = [row for row in range(30) if row not in (0, 25)]
    assert saved.ids.texts == tuple(IDS[row] for row in kept)
    assert saved.model.X_fit_.tolist() == X[kept].tolist()
    assert (saved.model.n_jobs, saved.model.verbose) == (None, 0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["Changed: much", "Rows: 28"]
    assert lines[-1] == f"Model: {path}"


def test_new_classes_leave_with_their_last_row_but_announced_ones_stay(path):
    saved = model_file.load(path)
    saved.model.partial_fit(X[:1], Y[:1], classes=["z"])
    model_file.save(saved.model, path, target="y", features=["p", "q"])
    with LiveModel.opened(path, None, jobs=None, quiet=True) as live:
        live = live.with_rows(X[20:22], np.array(["c", "a"]), np.array(["c"]), None, None)
        assert live.saved.model.classes_.tolist() == ["a", "b", "c", "z"]
        live = live.without(np.array([21]), reselect=False)
    assert live.saved.model.classes_.tolist() == ["a", "b", "z"]


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_read():
    out = LiveModel.opened(Path("absent.skops"), Path("out.csv"), jobs=None, quiet=True)
    with pytest.raises(ValueError, match=r"ends in \.skops"), out:
        pass


def test_ids_are_asked_for_in_a_sentence(path):
    model_file.save(model_file.load(path).model, path, target="y", features=["p", "q"], id_column="name")
    with LiveModel.opened(path, None, jobs=None, quiet=True) as live:
        with pytest.raises(ValueError, match="has no ids of its training rows: fit the model again with --id COLUMN"):
            assert live.ids
        assert live.without(np.array([3]), reselect=False).saved.ids is None


def test_what_a_program_without_the_lock_wrote_is_not_undone(path, tmp_path):
    with LiveModel.opened(path, None, jobs=None, quiet=True) as live:
        model_file.save(live.saved.model, path, target="z", features=["p", "q"])
        theirs = path.read_bytes()
        sentence = r"was changed by another program since it was read, so nothing was written: run the command again"
        with pytest.raises(model_file.ModelFileError, match=sentence):
            live.write({})
        path.unlink()
        with pytest.raises(model_file.ModelFileError, match=sentence):
            live.write({})
        path.write_bytes(theirs)
    assert path.read_bytes() == theirs
    assert list(tmp_path.iterdir()) == [path]


def test_another_output_is_replaced_whatever_it_was(path, tmp_path):
    other = tmp_path / "other.skops"
    other.write_bytes(b"old")
    with LiveModel.opened(path, other, jobs=None, quiet=True) as live:
        path.unlink()
        live.write({})
    assert len(model_file.load(other).ids) == 20


def test_those_who_wait_are_told_unless_they_want_quiet(path, capsys):
    """A file that somebody else changes is read when it is free, not before."""
    with ThreadPoolExecutor(1) as pool:
        with LiveModel.opened(path, None, jobs=None, quiet=True) as live:
            waiting = pool.submit(_ids_of, path)
            while "Waiting for another command that changes" not in capsys.readouterr().err:
                time.sleep(0.01)
            live.without(np.array([0]), reselect=False).write({})
        assert waiting.result() == tuple(IDS[1:20])


def _ids_of(path):
    with LiveModel.opened(path, None, jobs=None, quiet=False) as live:
        return live.ids.texts


UPDATES = """
import sys
from pathlib import Path
import typer
from coxfield.apps.cli.app import app

command, name = typer.main.get_command(app), sys.argv[1]
for number in range(100):
    Path(f"{name}.csv").write_text(f"name,p,q,y\\n{name}{number},0.{number},1,a\\n")
    assert not command.main(["update", "model.skops", f"{name}.csv", "-q"], standalone_mode=False)
"""


def test_two_processes_that_update_one_file_lose_nothing(path, tmp_path):
    """Without a lock the one who writes last would undo what the other has written in the meantime."""
    commands = [[sys.executable, "-c", UPDATES, name] for name in ("one", "two")]
    running = [subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) for command in commands]
    for each in running:
        _, said = each.communicate()
        assert (each.returncode, said) == (0, "")
    added = {f"{name}{number}" for name in ("one", "two") for number in range(100)}
    saved = model_file.load(path)
    assert sorted(saved.ids.texts) == sorted([*IDS[:20], *added])
    assert len(saved.model.y_fit_) == 220
    assert not list(tmp_path.glob(".*"))

"""A model that is read, changed and written: the file changes only at the end."""

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
    live = LiveModel.load(path, None, jobs=1, quiet=False)
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
    live = LiveModel.load(path, None, jobs=None, quiet=True)
    live = live.with_rows(X[20:22], np.array(["c", "a"]), np.array(["c"]), None, None)
    assert live.saved.model.classes_.tolist() == ["a", "b", "c", "z"]
    live = live.without(np.array([21]), reselect=False)
    assert live.saved.model.classes_.tolist() == ["a", "b", "z"]


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_read():
    with pytest.raises(ValueError, match=r"ends in \.skops"):
        LiveModel.load(Path("absent.skops"), Path("out.csv"), jobs=None, quiet=True)


def test_ids_are_asked_for_in_a_sentence(path):
    model_file.save(model_file.load(path).model, path, target="y", features=["p", "q"], id_column="name")
    live = LiveModel.load(path, None, jobs=None, quiet=True)
    with pytest.raises(ValueError, match="has no ids of its training rows: fit the model again with --id COLUMN"):
        assert live.ids
    assert live.without(np.array([3]), reselect=False).saved.ids is None

"""tools/walk.py: which modules a call visits, in the order of first visit."""

import importlib.util
import sys
import threading
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "tools" / "walk.py"
spec = importlib.util.spec_from_file_location("walk", PATH)
walk = importlib.util.module_from_spec(spec)
sys.modules["walk"] = walk  # dataclasses look their module up
spec.loader.exec_module(walk)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A package of three modules: the first calls the second in a thread, and the third is only imported."""
    (tmp_path / "toy" / "inner").mkdir(parents=True)
    for name, text in {
        "__init__": "",
        "first": "from toy.inner import second, third\n\ndef go(start):\n    start(second.twice)\n",
        "inner/__init__": "",
        "inner/second": "def twice():\n    once()\n    once()\n\ndef once():\n    return 1\n",
        "inner/third": "def never():\n    return 2\n",
    }.items():
        (tmp_path / "toy" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "toy"
    for name in [name for name in sys.modules if name.split(".")[0] == "toy"]:
        del sys.modules[name]


def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize("start", [lambda work: work(), in_a_thread])
def test_modules_are_listed_in_the_order_of_first_visit_with_their_calls(toy, start):
    def call():
        from toy.first import go

        go(start)

    visits = walk.walk(call, toy)
    assert [visit.module for visit in visits] == ["first.py", "inner/second.py"]
    assert [(len(visit.calls), visit.calls.total()) for visit in visits] == [(1, 1), (2, 3)]
    assert walk.changes(visits) == 1
    assert sys.getprofile() is None


def test_a_failing_call_is_watched_no_longer(toy):
    with pytest.raises(ZeroDivisionError):
        walk.walk(lambda: 1 / 0, toy)
    assert sys.getprofile() is None


def test_calls_are_followed_from_the_estimator_on(monkeypatch, capsys):
    monkeypatch.setattr(walk, "CALLS", {"fit": walk.supervised})
    assert walk.main(["--short", "--most", "1"]) == 1
    title, names = capsys.readouterr().out.strip().splitlines()
    assert title.startswith("fit: ")
    assert "supervised" in names.split(" > ")[1]
    assert walk.main(["--most", "1000"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["module", "lines", "functions", "calls"]

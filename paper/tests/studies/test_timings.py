import json

import numpy as np

from coxfield_paper.report.blocks import Note, Table
from coxfield_paper.report.records import DONE, UNAVAILABLE, Record, attempt
from coxfield_paper.studies import semi_supervised, timings


def invented(quick, taken=(4.0, 2.0, 3.0)):
    machine = {"processor": "an abacus"}
    return {
        task.name: Record(task.name, task.arguments, DONE, {"seconds": list(taken), "cores": 1}, machine=machine)
        for task in timings.tasks(quick)
    }


def test_tasks_are_alone_and_named_once():
    tasks = timings.tasks(False) + timings.tasks(True)
    assert all(task.alone for task in tasks)
    assert len({task.name for task in tasks}) == len(tasks)
    assert [json.loads(json.dumps(task.arguments)) for task in tasks] == [task.arguments for task in tasks]


def test_quick_tasks_need_no_data_that_are_fetched():
    assert {task.arguments["data"] for task in timings.tasks(True)} == {"simulated", "double helix"}


def test_quick_tasks_run(monkeypatch):
    monkeypatch.setattr(timings, "REPEATS", 2)
    monkeypatch.setitem(
        timings.POINTS, "simulated", lambda: (np.random.default_rng(0).random((30, 4)), np.arange(30) % 3)
    )
    monkeypatch.setitem(
        semi_supervised.DATA, "double helix", lambda rng: semi_supervised.make_double_helix(20, random_state=rng)
    )
    for task in timings.tasks(True):
        record = attempt(task)
        assert record.done, record.reason
        assert len(record.result["seconds"]) == 2
        assert min(record.result["seconds"]) > 0


def test_simulated_points_are_as_many_as_the_papers():
    X, y = timings.POINTS["simulated"]()
    assert X.shape == (1000, 784)
    assert np.unique(y).tolist() == list(range(10))


def test_the_least_time_stands_beside_the_papers():
    (table,) = timings.render(invented(quick=False))
    assert isinstance(table, Table)
    assert [row[1:] for row in table.rows] == [
        ("17", "2", "8.5", "1"),
        ("–", "2", "–", "1"),
        ("130", "2", "65", "1"),
        ("85", "2", "42", "1"),
    ]
    assert any("an abacus" in note for note in table.notes)
    assert timings.STAND_IN not in table.notes


def test_the_quick_run_says_what_stands_in_and_what_is_left_out():
    table, note = timings.render(invented(quick=True))
    assert timings.STAND_IN in table.notes
    assert isinstance(note, Note)
    assert "prediction, 10,000 points of MNIST" in note.text
    assert "coxfield reproduce timings" in note.text


def test_times_without_a_result_are_not_shown():
    found = invented(quick=False)
    found["timings/prediction"] = Record("timings/prediction", {}, UNAVAILABLE, reason="no MNIST")
    table, note = timings.render(found)
    assert len(table.rows) == 3
    assert note.text.startswith("Not timed here: prediction")


def test_nothing_found_is_said():
    (note,) = timings.render({})
    assert note.text.startswith("Not timed here")

import dataclasses
import json
import warnings

import pytest

import coxfield
from coxfield.datasets import DatasetUnavailableError
from coxfield.progress import SlowWarning
from coxfield_paper.report.item import Task
from coxfield_paper.report.records import DONE, FAILED, Records, attempt, new_record, perform


@pytest.fixture
def records(tmp_path):
    return Records(tmp_path / "records")


def measure(seed, sizes):
    return {"error": 0.1}


ARGUMENTS = {"seed": 3, "sizes": (1, 2)}
TASK = Task("table/Synth/3", measure, ARGUMENTS)


def record(task=TASK, status=DONE, **changes):
    return new_record(task, status, **{"result": {"error": 0.1}, "seconds": 1.5} | changes)


def test_a_record_is_read_as_it_was_written(records):
    written = record()
    records.save(written)
    assert records.load("table/Synth/3") == written
    assert records.current(TASK) == written


def test_what_was_asked_otherwise_is_not_current(records):
    records.save(record())
    assert records.current(Task(TASK.name, measure, {"seed": 4, "sizes": (1, 2)})) is None
    assert records.current(Task("table/Synth/4", measure, ARGUMENTS)) is None


def test_a_record_of_other_code_is_not_current(records, monkeypatch):
    records.save(record())
    monkeypatch.setattr("coxfield_paper.report.item.source_digest", lambda function: "other code")
    assert records.load(TASK.name) is not None
    assert records.current(TASK) is None


def test_the_version_alone_is_not_believed(records):
    kept = dataclasses.replace(record(), code="")
    records.save(kept)
    assert kept.version == coxfield.__version__
    assert records.current(TASK) is None
    records.save(dataclasses.replace(record(), version="99.0"))
    assert records.current(TASK) is not None


def test_failures_are_current_but_are_no_result(records):
    records.save(record(status=FAILED, reason="no"))
    assert records.current(TASK).reason == "no"
    assert not records.current(TASK).done


@pytest.mark.parametrize("spoil", ["cut", "empty", "list", "changed", "field", "digest", "moved", "binary"])
def test_a_corrupt_record_is_not_believed(records, spoil):
    records.save(record())
    path = records.path("table/Synth/3")
    text = path.read_text()
    content = json.loads(text)
    if spoil == "moved":
        path = records.path("table/Synth/4")
    spoilt = {
        "cut": text[: len(text) // 2],
        "empty": "",
        "list": "[1, 2]",
        "changed": text.replace("0.1", "0.2"),
        "field": json.dumps(content | {"more": 1}),
        "digest": json.dumps({key: value for key, value in content.items() if key != "digest"}),
        "moved": text,
        "binary": None,
    }[spoil]
    path.write_bytes(b"\xff\x00" if spoilt is None else spoilt.encode())
    assert records.load("table/Synth/4" if spoil == "moved" else "table/Synth/3") is None


def test_numbers_that_json_does_not_have_are_refused_and_leave_no_file(records):
    with pytest.raises(ValueError, match="JSON"):
        records.save(record(result={"error": float("nan")}))
    assert list(records.folder.rglob("*.*")) == []


def square(x):
    return {"square": x * x}


def fail(x):
    raise ZeroDivisionError(f"{x} is\nnothing")


def look(x):
    raise DatasetUnavailableError("it is in no package")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tasks_are_done_and_kept(records, n_jobs):
    tasks = [Task(f"square/{x}", square, {"x": x}, alone=x == 2) for x in range(4)]
    found = {record.task: record.result for record in perform(tasks, records, n_jobs=n_jobs)}
    assert found == {f"square/{x}": {"square": x * x} for x in range(4)}
    assert all(records.current(task).result == found[task.name] for task in tasks)


def test_a_failure_and_missing_data_spoil_nothing_else(records):
    tasks = [Task("a", fail, {"x": 1}), Task("b", look, {"x": 1}), Task("c", square, {"x": 3})]
    failed, unavailable, done = perform(tasks, records)
    assert (failed.status, failed.reason) == ("failed", "ZeroDivisionError: 1 is nothing")
    assert (unavailable.status, unavailable.reason) == ("unavailable", "it is in no package")
    assert done.result == {"square": 9}


def test_each_record_is_kept_before_the_next_task_begins(records):
    tasks = [Task(f"square/{x}", square, {"x": x}) for x in range(3)]
    work = perform(tasks, records)
    next(work)
    assert records.current(tasks[0]) is not None
    assert records.current(tasks[1]) is None
    work.close()  # as when a run is stopped


def slow_task():
    warnings.warn(SlowWarning("counting: 1 % done"), stacklevel=1)
    return {}


def test_tasks_that_take_long_say_nothing_of_it():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        record = attempt(Task("slow", slow_task, {}))
    assert record.status == DONE
    assert seen == []

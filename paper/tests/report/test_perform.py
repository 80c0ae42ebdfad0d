import warnings

import pytest

from coxfield.datasets import DatasetUnavailableError
from coxfield.progress import SlowWarning
from coxfield_paper.report.perform import attempt, perform
from coxfield_paper.report.records import DONE, Records
from coxfield_paper.report.tasks import Task


def square(x):
    return {"square": x * x}


def fail(x):
    raise ZeroDivisionError(f"{x} is\nnothing")


def look(x):
    raise DatasetUnavailableError("it is in no package")


@pytest.fixture
def records(tmp_path):
    return Records(tmp_path)


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

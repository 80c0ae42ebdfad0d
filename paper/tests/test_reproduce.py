import json

import pytest
from typer.testing import CliRunner

from coxfield.apps.cli.app import app
from coxfield_paper.report import records
from coxfield_paper.report.blocks import Note
from coxfield_paper.report.item import Item, Task
from coxfield_paper.studies import items

CALLS = []


def work(x):
    CALLS.append(x)
    if x == 13:
        raise ValueError("thirteen is not to be had")
    return {"twice": 2 * x}


def render(found):
    return [Note(f"sum {sum(record.result['twice'] for record in found.values() if record.done)}")]


def item(name, numbers):
    def listed(quick):
        return [Task(f"{name}/{x}", work, {"x": x}) for x in (numbers[:1] if quick else numbers)]

    return Item(name, f"The item {name}", listed, render)


@pytest.fixture
def run(monkeypatch, tmp_path):
    CALLS.clear()
    monkeypatch.setattr(items, "ITEMS", {"one": item("one", [1, 2, 3]), "two": item("two", [5])})

    def run(*arguments):
        command = ["reproduce", "--jobs", "1", "-o", str(tmp_path / "out"), *arguments]
        return CliRunner().invoke(app, command, catch_exceptions=False)

    return run


def test_all_items_are_made_and_the_page_written(run, tmp_path):
    result = run()
    assert result.exit_code == 0
    assert sorted(CALLS) == [1, 2, 3, 5]
    page = (tmp_path / "out" / "index.html").read_text()
    assert "sum 12" in page
    assert "sum 10" in page
    assert "coxfield reproduce one" in page
    assert "4 computed" in result.stderr
    assert "index.html" in result.stderr


def test_a_cluster_does_the_tasks(run, monkeypatch):
    addresses = []

    def on_cluster(tasks, address):
        addresses.append(address)
        return map(records.attempt, tasks)

    monkeypatch.setattr(records, "_on_cluster", on_cluster)
    assert "1 computed" in run("two", "--dask", "tcp://127.0.0.1:8786").stderr
    assert addresses == ["tcp://127.0.0.1:8786"]


def test_a_second_run_computes_nothing(run):
    run()
    CALLS.clear()
    assert "4 reused" in run().stderr
    assert CALLS == []
    run("--again", "two")
    assert CALLS == [5]


def test_a_quick_run_counts_towards_a_full_one(run):
    run("--quick")
    assert sorted(CALLS) == [1, 5]
    run("one")
    assert sorted(CALLS) == [1, 2, 3, 5]


def test_a_stopped_run_goes_on_where_it_was(run, monkeypatch):
    def stopped(task):
        if len(CALLS) == 2:
            raise KeyboardInterrupt
        return attempt(task)

    attempt = records.attempt
    with monkeypatch.context() as patch:
        patch.setattr(records, "attempt", stopped)
        assert run().exit_code != 0
    assert len(CALLS) == 2
    assert "2 reused" in run().stderr
    assert sorted(CALLS) == [1, 2, 3, 5]


def test_a_corrupt_record_is_made_again(run, tmp_path):
    run()
    CALLS.clear()
    path = tmp_path / "out" / "records" / "one" / "2.json"
    content = json.loads(path.read_text())
    content["result"]["twice"] = 5
    path.write_text(json.dumps(content))
    (tmp_path / "out" / "records" / "one" / "3.json").write_text("{")
    run()
    assert sorted(CALLS) == [2, 3]
    assert "sum 12" in (tmp_path / "out" / "index.html").read_text()


def test_results_of_other_code_are_computed_again_and_not_shown(run, tmp_path, monkeypatch):
    run()
    CALLS.clear()
    monkeypatch.setattr("coxfield_paper.report.item.source_digest", lambda function: "other code")
    run("two")
    assert CALLS == [5]
    page = (tmp_path / "out" / "index.html").read_text()
    assert "sum 10" in page
    assert "sum 12" not in page


def test_a_failed_task_is_told_and_the_page_written_all_the_same(run, tmp_path, monkeypatch):
    monkeypatch.setitem(items.ITEMS, "two", item("two", [13]))
    result = run()
    assert result.exit_code == 1
    assert "two/13: ValueError: thirteen is not to be had" in result.stderr
    page = (tmp_path / "out" / "index.html").read_text()
    assert "sum 12" in page
    assert "thirteen is not to be had" in page


def test_an_unknown_item_is_refused_with_the_names_of_the_others(run):
    result = run("three")
    assert result.exit_code == 1
    assert "'three'" in result.stderr
    assert "all, one, two" in result.stderr


def test_items_are_listed(run):
    assert run("--list").stdout.splitlines() == ["one              The item one", "two              The item two"]


def test_an_output_that_is_a_file_is_refused(run, tmp_path):
    (tmp_path / "out").write_text("")
    result = run()
    assert result.exit_code == 1
    assert "must be a folder" in result.stderr

import numpy as np
import pytest

from coxfield.calibration import reliability
from coxfield_paper.report.blocks import Figure, Note, Table, Verdict
from coxfield_paper.report.records import DONE, UNAVAILABLE, Record, attempt
from coxfield_paper.studies import few_labels
from coxfield_paper.studies.bins import sums
from coxfield_paper.studies.few_labels_methods import FROM_GRAPH_LEARNING, METHODS, OURS, PAPER, SELF_TRAINING
from coxfield_paper.studies.few_labels_sets import FAMILIES, FAMILY, FILES

JUDGED = sums(reliability([0, 0, 1, 1], np.array([[0.9, 0.1], [0.6, 0.4], [0.6, 0.4], [0.2, 0.8]]))) | {"ece": 0.1}


def record(data, labels, method, seed, error=5.0):
    result = {"error": error, "seconds": 1.0} | JUDGED
    return Record(few_labels.name(data, labels, method, seed), {}, DONE, result)


def rendered(*records):
    return few_labels.render({one.task: one for one in records})


def arguments(tasks):
    return {tuple(task.arguments.values()) for task in tasks}


def test_there_is_a_task_for_each_draw_and_none_in_the_quick_run():
    tasks = few_labels.tasks(False)
    assert few_labels.tasks(True) == []
    for task in tasks[::97]:
        assert task.name == few_labels.name(**task.arguments)
    ours = [task for task in tasks if task.arguments["method"] == OURS]
    assert len(ours) == 4 * 2 * 12 + 4 * 10 + 3 * 5 * 10 + 2 * 10


def test_slow_and_impossible_fits_are_left_out():
    asked = arguments(few_labels.tasks(False))
    assert sum((data, method) == ("digits", PAPER) for data, _, method, _ in asked) == 2 * len(FAMILY["digits"].labels)
    assert not any((data, labels, method) == ("digits", 1, SELF_TRAINING) for data, labels, method, _ in asked)


@pytest.mark.parametrize("installed", [True, False])
def test_a_package_that_is_not_installed_has_no_tasks(monkeypatch, installed):
    monkeypatch.setattr(few_labels, "has_graph_learning", lambda: installed)
    methods = {method for _, _, method, _ in arguments(few_labels.tasks(False))}
    assert methods == set(METHODS) - (set() if installed else set(FROM_GRAPH_LEARNING))


def test_families_without_results_are_left_out_and_named():
    blocks = rendered(record("digits", 2, OURS, 0), record("digits", 2, OURS, 1))
    assert [type(block) for block in blocks] == [*[Note] * 5, Table, Table, Figure, Table, Note]
    assert "designed while looking at errors" in blocks[0].text
    assert "digits" in blocks[5].caption
    assert "no results for digit1, USPS, g241c, BCI, oil" in blocks[-1].text
    assert "digits" not in blocks[-1].text


def test_with_all_sets_nothing_is_missing():
    found = [record(data, family.labels[0], OURS, 0) for family in FAMILIES for data in family.sets]
    blocks = rendered(*found)
    assert sum(isinstance(block, Table) for block in blocks) == len(FAMILIES) + 2
    assert not isinstance(blocks[-1], Note)


def test_draws_that_a_method_skips_are_no_results():
    skipped = Record(few_labels.name("USPS", 10, SELF_TRAINING, 4), {}, DONE, {"skipped": "a class has one label"})
    done = record("USPS", 10, SELF_TRAINING, 3)
    found = few_labels.results({one.task: one for one in (skipped, done)})
    assert list(found["USPS", 10, SELF_TRAINING]) == [3]


def test_claims_are_made_from_the_records():
    found = [record("BCI", 100, OURS, seed, error=30.0) for seed in range(3)]
    verdicts = {claim.statement: claim.verdict for claim in few_labels.claims({one.task: one for one in found})}
    assert [verdict for statement, verdict in verdicts.items() if "BCI" in statement] == [Verdict.BORNE_OUT]
    assert set(verdicts.values()) == {Verdict.BORNE_OUT, Verdict.NOT_TESTED}


@pytest.mark.parametrize("data", FILES)
def test_a_set_that_is_not_there_is_said_in_its_record(monkeypatch, tmp_path, data):
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    first = next(task for task in few_labels.tasks(False) if task.arguments["data"] == data)
    assert attempt(first).status == UNAVAILABLE

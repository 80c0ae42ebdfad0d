import numpy as np
import pytest

from coxfield_paper.report.blocks import Figure
from coxfield_paper.report.records import DONE, UNAVAILABLE, Record, attempt
from coxfield_paper.studies import learning

LEARNED = [method for method in learning.METHODS if method.startswith("pseudo_likelihood")]


@pytest.mark.parametrize("data", ["Synth", "Diabetes", "Banana"])
def test_learning_lowers_the_log_loss_on_the_embedded_sets(data):
    seeds = range(min(learning.PARTITIONS[data], 2))

    def mean(method):
        return np.mean([learning.measure(data, method, seed)["log_loss"] for seed in seeds])

    assert max(map(mean, LEARNED)) < mean("loo_error")


def record(method, seed, loss, error):
    task = learning.STUDY.task("Banana", method, seed)
    return Record(task, {}, DONE, {"train": 400, "log_loss": loss, "error": error})


def test_rows_are_means_and_differences_are_taken_partition_by_partition():
    records = [
        record("loo_error", 0, 0.3, 9.0),
        record("loo_error", 1, 0.5, 11.0),
        record("pseudo_likelihood", 0, 0.2, 10.0),
        record("pseudo_likelihood", 1, 0.4, 12.0),
    ]
    table, note = learning.render({one.task: one for one in records})
    rows = {row[:2]: row[2:] for row in table.rows}
    assert rows["Banana", "loo_error"] == ("400", "2", "0.400 ± 0.100", "–", "10.0 ± 1.0")
    assert rows["Banana", "pseudo_likelihood"] == ("400", "2", "0.300 ± 0.100", "−0.100 ± 0.000", "11.0 ± 1.0")
    assert set(rows["Banana", "calibrated SVC"]) == {"–"}
    assert {row[0] for row in table.rows} == {"Banana"}
    assert "no results for Synth, Diabetes, BCI, pendigits, satimage" in note.text


def test_gaussian_processes_are_spared_large_sets():
    methods = {task.arguments.get("method") for task in learning.tasks(False) if "/satimage/" in task.name}
    assert methods == set(learning.METHODS) - {"Gaussian process"}


def test_a_set_that_is_not_there_is_said_in_its_record(monkeypatch, tmp_path):
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    monkeypatch.setenv("COXFIELD_CACHE", str(tmp_path))
    (task, *_) = [task for task in learning.tasks(False) if "/satimage/" in task.name]
    assert attempt(task).status == UNAVAILABLE


def test_the_reliability_diagram_is_drawn_from_its_record():
    (task,) = [task for task in learning.tasks(True) if task.name == learning.RELIABILITY]
    drawn, _ = learning.render({task.name: attempt(task)})
    assert isinstance(drawn, Figure)
    names = [text.get_text() for text in drawn.figure.axes[0].get_legend().get_texts()]
    assert [name.partition(":")[0] for name in names] == ["before learning", "after learning"]

import numpy as np
import pytest

from coxfield.calibration import reliability
from coxfield_paper.report.blocks import Figure, Table
from coxfield_paper.report.records import DONE, UNAVAILABLE, Record, attempt
from coxfield_paper.studies import mixtures
from coxfield_paper.studies.bins import sums

JUDGED = sums(reliability([0, 0, 1, 1], np.array([[0.9, 0.1], [0.6, 0.4], [0.6, 0.4], [0.2, 0.8]])))


def record(data, method, seed, error, loss):
    times = {"fit_seconds": 1.26, "predict_seconds": 0.034}
    result = JUDGED | times | {"train": 1400, "error": error, "log_loss": loss, "ece": 0.1, "members": 7}
    return Record(mixtures.name(data, method, seed), {}, DONE, result)


def clocked(data, method, seconds):
    return Record(mixtures.clock_name(data, method), {}, DONE, {"train": 898, "fit_seconds": seconds, "error": 1.5})


def render(*records):
    return mixtures.render({one.task: one for one in records})


def test_rows_are_means_and_missing_methods_are_dashes():
    blocks = render(record("Banana", "mixture", 0, 10, 0.2), record("Banana", "mixture", 1, 12, 0.4))
    rows = {row[:2]: row[2:] for row in blocks[1].rows}
    assert rows["Banana", "mixture"] == ("1,400", "2", "11.00 ± 1.00", "0.300 ± 0.100", "1.3", "0.03")
    assert set(rows["Banana", "k-NN"]) == {"–"}
    assert {data for data, _ in rows} == {"Banana"}
    assert "no results for Synth, Diabetes, BCI, breast cancer" in blocks[-1].text


def test_calibration_is_shown_for_the_sets_with_a_mixture():
    blocks = render(record("wine", "mixture", 0, 10, 0.2), record("Synth", "loo_error", 0, 9, 0.3))
    calibration, drawn = blocks[2:4]
    assert [row[0] for row in calibration.rows] == ["wine"]
    assert isinstance(drawn, Figure)


def test_mnist_has_a_row_of_its_calibration_and_no_panel():
    blocks = render(record("MNIST", "mixture", 0, 2.5, 0.1))
    assert [row[0] for row in blocks[2].rows] == ["MNIST"]
    assert not any(isinstance(block, Figure) for block in blocks)


def test_times_stand_beside_each_other_with_their_ratio():
    both = clocked("digits", "mixture", 0.5), clocked("digits", "SVC 5 x 5 grid", 12.0)
    *_, table, _ = render(*both, clocked("satimage", "mixture", 2.0))
    assert isinstance(table, Table)
    assert table.rows == (
        ("digits", "898", "0.5", "12", "24", "1.50", "1.50"),
        ("satimage", "898", "2.0", "–", "–", "1.50", "–"),
    )


def test_it_is_said_that_the_design_has_seen_the_test_figures():
    note = render(record("wine", "mixture", 0, 10, 0.2))[0]
    assert "designed while looking at test figures of these data sets" in note.text


@pytest.mark.parametrize(
    ("data", "left_out"),
    [
        ("Synth", set()),
        ("satimage", {"Gaussian process"}),
        ("MNIST", set(mixtures.METHODS) - {"mixture", "loo_error", "k-NN"}),
    ],
)
def test_slow_methods_are_spared_large_sets(data, left_out):
    assert set(mixtures.methods_for(data)) == set(mixtures.METHODS) - left_out


def test_what_is_timed_runs_alone():
    alone = {task.name for task in mixtures.tasks(False) if task.alone}
    expected = {mixtures.clock_name(data, method) for data in mixtures.CLOCKED for method in mixtures.TIMED}
    assert alone == expected | {mixtures.name("MNIST", method, 0) for method in ("mixture", "loo_error")}
    assert not any(task.alone for task in mixtures.tasks(True))


@pytest.mark.parametrize("data", ["satimage", "pendigits"])
def test_a_set_that_is_not_there_is_said_in_its_record(monkeypatch, tmp_path, data):
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    monkeypatch.setenv("COXFIELD_CACHE", str(tmp_path))
    of_it = [task for task in mixtures.tasks(False) if task.arguments["data"] == data]
    assert {attempt(task).status for task in of_it} == {UNAVAILABLE}

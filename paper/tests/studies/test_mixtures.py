import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import log_loss

from coxfield import LGCPClassifier
from coxfield.calibration import reliability
from coxfield_paper.report.blocks import Figure, Table
from coxfield_paper.report.records import DONE, UNAVAILABLE, Record, attempt
from coxfield_paper.studies import mixtures
from coxfield_paper.studies.data_sets import MNIST
from coxfield_paper.studies.peers import SVCGrid
from coxfield_paper.studies.reliability import pooled, sums


@pytest.fixture
def blobs(monkeypatch):
    """Three classes in the plane, with 80 training and 60 test points, and a small grid for support vectors."""
    X, y = make_blobs(140, centers=[[0, 0], [3, 0], [0, 3]], random_state=0)
    parts = X[:80], y[:80], X[80:], y[80:]
    monkeypatch.setattr(mixtures, "load", lambda data, seed=0: parts)
    monkeypatch.setattr(mixtures, "FINE", SVCGrid((1.0,), (1.0,), folds=2))
    return parts


@pytest.mark.parametrize("method", [method for method in mixtures.METHODS if method != "random forest"])
def test_every_method_is_measured_in_what_json_can_hold(method, blobs):
    found = mixtures.measure("blobs", method, 0)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["train"] == 80
    assert found["error"] < 20
    assert found["log_loss"] < 2
    assert min(found["fit_seconds"], found["predict_seconds"]) > 0
    assert ("members" in found) == (method == mixtures.MIXTURE)


def test_figures_are_those_of_the_probabilities(blobs):
    X_train, y_train, X_test, y_test = blobs
    found = mixtures.measure("blobs", mixtures.MIXTURE, 0)
    fitted = LGCPClassifier().fit(X_train, y_train)
    probabilities = fitted.predict_proba(X_test)
    assert found["log_loss"] == pytest.approx(log_loss(y_test, probabilities))
    assert found["error"] == pytest.approx(100 * np.mean(fitted.predict(X_test) != y_test))
    assert found["members"] == np.sum(fitted.mixture_["weight"] > 0)
    judged = pooled([found])
    assert judged.counts.sum() == len(y_test)
    assert found["ece"] == pytest.approx(judged.expected_calibration_error)


@pytest.mark.filterwarnings("error")
def test_probabilities_in_single_precision_are_judged_in_double(monkeypatch, blobs):
    in_double = mixtures.measure("blobs", mixtures.PLAIN, 0)["log_loss"]
    single = tuple(part.astype(np.float32) if part.ndim == 2 else part for part in blobs)
    monkeypatch.setattr(mixtures, "load", lambda data, seed=0: single)
    assert mixtures.measure("blobs", mixtures.PLAIN, 0)["log_loss"] == pytest.approx(in_double, rel=1e-3)


def test_the_forest_depends_on_the_seed_of_the_partition():
    assert [mixtures.build("wine", "random forest", 2, seed).random_state for seed in (0, 7)] == [0, 7]


def test_neighbours_on_mnist_are_three_and_not_tuned():
    assert mixtures.build(MNIST, mixtures.NEAREST, 784, 0).n_neighbors == 3
    assert hasattr(mixtures.build("digits", mixtures.NEAREST, 64, 0), "param_grid")


@pytest.mark.parametrize("method", mixtures.TIMED)
def test_fits_are_timed_with_their_error(method, blobs):
    found = mixtures.fit_seconds("blobs", method)
    assert found["fit_seconds"] > 0
    assert found["error"] < 20
    assert ("members" in found) == (method == mixtures.MIXTURE)


JUDGED = sums(reliability([0, 0, 1, 1], np.array([[0.9, 0.1], [0.6, 0.4], [0.6, 0.4], [0.2, 0.8]])))


def record(data, method, seed, error, loss):
    times = {"fit_seconds": 1.26, "predict_seconds": 0.034}
    result = JUDGED | times | {"train": 1400, "error": error, "log_loss": loss, "ece": 0.1, "members": 7}
    return Record(mixtures.STUDY.task(data, method, seed), {}, DONE, result)


def clocked(data, method, seconds):
    return Record(mixtures.clock_name(data, method), {}, DONE, {"train": 898, "fit_seconds": seconds, "error": 1.5})


def render(*records):
    return mixtures.render({one.task: one for one in records})


def test_rows_are_means_and_methods_that_were_not_run_have_none():
    blocks = render(record("Banana", "mixture", 0, 10, 0.2), record("Banana", "mixture", 1, 12, 0.4))
    rows = {row[:2]: row[2:] for row in blocks[1].rows}
    assert rows["Banana", "mixture"] == ("1,400", "2", "11.00 ± 1.00", "0.300 ± 0.100", "1.3", "0.03")
    assert list(rows) == [("Banana", "mixture")]
    assert "no results for Synth, Diabetes, BCI, breast cancer" in blocks[-1].text


def test_calibration_is_shown_for_the_sets_with_a_mixture():
    blocks = render(record("wine", "mixture", 0, 10, 0.2), record("Synth", "loo_error", 0, 9, 0.3))
    calibration, drawn = blocks[2:4]
    assert [row[0] for row in calibration.rows] == ["wine"]
    assert isinstance(drawn, Figure)


def test_calibration_rows_have_the_means_of_each_method():
    def judged(method, seed, ece, members):
        one = record("wine", method, seed, 10, 0.2)
        return replace(one, result=one.result | {"ece": ece, "members": members})

    blocks = render(judged("mixture", 0, 0.02, 10), judged("mixture", 1, 0.04, 14), judged("loo_error", 0, 0.1, 0))
    (row,) = blocks[2].rows
    assert row[:3] == ("wine", "12", "0.030 ± 0.010")
    assert row[4:] == ("0.100", "–")


def test_each_data_set_has_a_panel_with_its_calibration_error():
    drawn = render(record("wine", "mixture", 0, 10, 0.2), record("Synth", "mixture", 0, 9, 0.3))[3]
    titles = [axes.get_title() for axes in drawn.figure.axes if axes.axison]
    assert [title.partition(": ECE 0.")[0] for title in titles] == ["Synth", "wine"]
    assert "wine: 0." in drawn.description
    assert not drawn.wide


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
    assert alone == expected | {mixtures.STUDY.task("MNIST", method, 0) for method in ("mixture", "loo_error")}
    assert not any(task.alone for task in mixtures.tasks(True))


@pytest.mark.parametrize("data", ["satimage", "pendigits"])
def test_a_set_that_is_not_there_is_said_in_its_record(monkeypatch, tmp_path, data):
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    monkeypatch.setenv("COXFIELD_CACHE", str(tmp_path))
    of_it = [task for task in mixtures.tasks(False) if task.arguments["data"] == data]
    assert {attempt(task).status for task in of_it} == {UNAVAILABLE}

import json

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.gaussian_process.kernels import RBF

from coxfield import SLGCPClassifier
from coxfield.calibration import reliability
from coxfield.datasets import DatasetUnavailableError
from coxfield_paper.report.blocks import Figure, Note, Table
from coxfield_paper.report.records import DONE, Record
from coxfield_paper.studies import inference, semi_supervised
from coxfield_paper.studies.reliability import sums


def record(data, labels, way, seed, **result):
    asked = {"data": data, "labels": labels, "seed": seed}
    return Record(inference.name(data, labels, way, seed), asked, DONE, result=result, seconds=1.0)


def probabilities(seed, n=300):
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=n)
    return np.stack([1 - p, p], axis=1), (rng.uniform(size=n) < p**2).astype(int)


def test_there_is_a_task_for_each_partition_and_none_in_the_quick_run():
    tasks = inference.tasks(quick=False)
    assert len({task.name for task in tasks}) == len(tasks) == 3 * 2 * 2 * 10
    assert inference.tasks(quick=True) == []
    for task in tasks[::17]:
        way = "map" if task.function is inference.most_probable else "sampled"
        assert task.name == inference.name(way=way, **task.arguments)


def test_digit1_is_read_from_the_folder_of_the_data(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X, truth = rng.normal(size=(40, 3)).astype(np.float32), np.arange(40) % 2
    np.savez(tmp_path / "ssl_digit1.npz", X=X, y=truth)
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    drawn = [inference.partition("digit1", 4, seed) for seed in (0, 0, 1)]
    for points, classes, y in drawn:
        np.testing.assert_array_equal(points, X)
        np.testing.assert_array_equal(classes, truth)
        assert (y >= 0).sum() == 4
        assert set(y[y >= 0]) == {0, 1}
        np.testing.assert_array_equal(y[y >= 0], truth[y >= 0])
    np.testing.assert_array_equal(drawn[0][2], drawn[1][2])
    assert (drawn[0][2] != drawn[2][2]).any()


@pytest.mark.parametrize("folder", [None, "nowhere"])
def test_without_digit1_a_sentence_says_where_it_is_looked_for(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("COXFIELD_DATA", raising=False)
    if folder:
        monkeypatch.setenv("COXFIELD_DATA", str(tmp_path / folder))
    with pytest.raises(DatasetUnavailableError, match=r"ssl_digit1.npz.*COXFIELD_DATA.*(nowhere|not set)"):
        inference.partition("digit1", 4, 0)


def test_labels_and_distributions_are_judged_on_unlabelled_points_alone():
    X, truth = make_blobs(60, centers=[[0, 0], [6, 0]], random_state=0)
    y = np.where(np.arange(60) < 10, truth, -1)
    clf = SLGCPClassifier(0.5 * RBF(0.7), selection=None, inference="marginals", random_state=0).fit(X, y)
    found = inference.judge(clf, truth, y < 0)
    assert found["error"] == pytest.approx(100 * np.mean(clf.transduction_ != truth) * 60 / 50)
    assert not found["trivial"]
    assert sum(found["bins"]["counts"]) == 50
    assert found["bins"]["right"] == pytest.approx(np.round(found["bins"]["right"]))


def test_all_three_ways_are_tried_on_a_partition(monkeypatch):
    X, truth = make_blobs(60, centers=[[0, 0], [6, 0]], random_state=0)
    monkeypatch.setitem(semi_supervised.DATA, "oil", lambda rng: (X, truth))
    cut = inference.most_probable("oil", 4, seed=0)
    drawn = inference.sampled("oil", 4, seed=0)
    for found in (cut, drawn["marginals"], drawn["perturb_and_map"]):
        assert 0 <= found["error"] <= 100
    for found in (cut, drawn):
        assert found["length_scale"] > 0
    json.dumps([cut, drawn], allow_nan=False)


def test_what_is_found_becomes_a_table_and_diagrams():
    bins = sums(reliability(*reversed(probabilities(0))))["bins"]
    records = [record("oil", 4, "map", seed, error=error, trivial=error > 40) for seed, error in enumerate((2.0, 50.0))]
    judged = {"error": 10.0, "trivial": False, "bins": bins}
    ways = {"marginals": {**judged, "log_loss": 0.25}, "perturb_and_map": {**judged, "log_loss": 0.5}}
    records.append(record("oil", 4, "sampled", 0, **ways))
    table, figure = inference.render({one.task: one for one in records})
    assert isinstance(table, Table)
    assert isinstance(figure, Figure)
    assert table.rows[0] == ("oil", "4", "26.00 ± 24.00", "10.00", "10.00", "1 of 2", "0 of 1", "0.25", "0.50")
    assert len(table.rows) == 6
    assert set(table.rows[1][2:]) == {"–"}
    assert len(figure.figure.axes) == 1
    assert "oil, marginals: mean distance" in figure.description


def test_without_results_a_note_says_what_to_run():
    (note,) = inference.render({})
    assert isinstance(note, Note)
    assert "coxfield reproduce table-inference" in note.text
    only_map = record("oil", 4, "map", 0, error=1.0, trivial=False)
    (table,) = inference.render({only_map.task: only_map})
    assert isinstance(table, Table)

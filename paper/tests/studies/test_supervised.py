import numpy as np
import pytest
from sklearn.utils import Bunch

from coxfield.datasets import load_banana
from coxfield_paper.report.records import DONE, Record
from coxfield_paper.studies import data_sets, supervised


@pytest.mark.parametrize(
    ("data", "seeds", "low", "high"), [("Synth", 1, 8.5, 9.7), ("Diabetes", 1, 21.3, 22.1), ("Banana", 3, 10.6, 12.2)]
)
def test_lgcp_errs_as_in_the_paper(data, seeds, low, high):
    errors = [supervised.measure(data, "LGCP", seed)["error"] for seed in range(seeds)]
    assert low <= np.mean(errors) <= high


def test_partitions_are_the_papers():
    parts = {data: data_sets.partition(data, seed=0) for data in ("Synth", "Diabetes", "Banana")}
    sizes = {data: (len(y_train), len(y_test)) for data, (_, y_train, _, y_test) in parts.items()}
    assert sizes == {"Synth": (250, 1000), "Diabetes": (200, 332), "Banana": (400, 4900)}


def test_random_partitions_differ_and_cover_the_data():
    X, _ = load_banana(return_X_y=True)
    first, second = data_sets.partition("Banana", 0), data_sets.partition("Banana", 1)
    assert not np.array_equal(first[0], second[0])
    assert np.array_equal(np.sort(np.concatenate([first[0], first[2]]), axis=0), np.sort(X, axis=0))
    assert np.array_equal(first[0], data_sets.partition("Banana", 0)[0])


def test_monkeys_and_trucks_are_five_hundred_of_each(monkeypatch):
    rng = np.random.default_rng(0)
    y_train, y_test = np.repeat(np.arange(10), 100), np.repeat(np.arange(10), 450)
    stl = {
        "X_train": rng.integers(256, size=(1000, 12), dtype=np.uint8),
        "y_train": y_train,
        "X_test": rng.integers(256, size=(4500, 12), dtype=np.uint8),
        "y_test": y_test,
        "target_names": np.array([*"abcdefgh", "monkey", "truck"]),
    }
    monkeypatch.setattr(data_sets, "load_stl10", lambda: Bunch(**stl))
    X_train, y_train, X_test, y_test = data_sets.partition("rSTL", 2)
    assert len(y_train) == len(y_test) == 500
    assert np.bincount(np.concatenate([y_train, y_test])).tolist() == [500, 500]
    assert X_train.max() <= 1
    assert X_train.dtype == X_test.dtype == float


def test_the_quick_run_is_a_part_of_the_full_one():
    full = {task.name: task.arguments for task in supervised.STUDY.tasks(False)}
    quick = {task.name: task.arguments for task in supervised.STUDY.tasks(True)}
    assert quick.items() <= full.items()
    assert len(full) == len(supervised.STUDY.tasks(False))


def test_the_table_shows_means_differences_and_what_is_missing():
    found = {}
    for seed, error in enumerate((10.0, 12.0)):
        arguments = {"data": "Banana", "method": "LGCP", "seed": seed}
        name = supervised.STUDY.task(*arguments.values())
        found[name] = Record(name, arguments, DONE, result={"error": error}, seconds=3.0)
    (table,) = supervised.render(found)
    rows = {row[:2]: row[2:] for row in table.rows}
    assert rows["Banana", "LGCP"] == ("400/4900", "2", "11.4", "11.00 ± 1.00", "−0.40", "10.0–12.0", "3")
    assert rows["BCI", "GPC"] == ("200/200", "–", "24.5", "–", "–", "–", "–")
    assert len(rows) == 15

import numpy as np
import pytest
from sklearn.utils import Bunch

from coxfield.datasets import DatasetUnavailableError
from coxfield_paper.studies import data_sets
from coxfield_paper.studies.data_sets import HALVED, MNIST, RANDOM, RECIPES, load, partition


@pytest.mark.parametrize(("data", "sizes"), [("Synth", (250, 1000)), ("Diabetes", (200, 332)), ("Banana", (400, 4900))])
def test_the_parts_have_the_sizes_of_the_paper(data, sizes):
    X_train, y_train, X_test, y_test = partition(data)
    assert (len(y_train), len(y_test)) == (len(X_train), len(X_test)) == sizes


def test_a_seed_always_means_the_same_partition_and_another_seed_another():
    first, again, other = (partition("Banana", seed)[0] for seed in (2, 2, 3))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_training_and_test_points_are_the_whole_set():
    X_train, _, X_test, _ = partition("Banana", 1)
    whole, parts = partition("Banana", 0), np.concatenate([X_train, X_test])
    assert sorted(map(tuple, parts)) == sorted(map(tuple, np.concatenate([whole[0], whole[2]])))


@pytest.mark.parametrize("data", HALVED)
def test_halves_have_all_points_once_and_equal_shares_of_the_classes(data):
    X, y = HALVED[data](return_X_y=True)
    X_train, y_train, X_test, y_test = load(data, seed=RANDOM - 1)
    assert X_train.dtype == np.float64
    together = np.concatenate([X_train, X_test])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(X, axis=0))
    counts = [np.bincount(part, minlength=y.max() + 1) for part in (y_train, y_test)]
    assert np.abs(counts[0] - counts[1]).max() <= 1
    np.testing.assert_array_equal(sum(counts), np.bincount(y))


def test_a_seed_always_means_the_same_half():
    first, again, other = load("wine", 1)[1], load("wine", 1)[1], load("wine", 2)[1]
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_the_sets_of_the_paper_are_divided_as_in_its_tables():
    for found, expected in zip(load("Banana", 4), partition("Banana", 4), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("data", RECIPES)
def test_sets_that_are_in_no_package_are_said_to_be_missing(monkeypatch, tmp_path, data):
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    monkeypatch.setenv("COXFIELD_CACHE", str(tmp_path))
    with pytest.raises(DatasetUnavailableError, match=data):
        load(data)


def test_standard_sets_are_floats_in_their_standard_partition(monkeypatch):
    names = ("X_train", "y_train", "X_test", "y_test")
    arrays = {key: np.full((2, 3) if key[0] == "X" else 2, k, np.uint8) for k, key in enumerate(names)}
    monkeypatch.setattr(data_sets, "obtain", lambda recipe, download: arrays)
    X_train, y_train, X_test, y_test = load("satimage")
    assert X_train.dtype == X_test.dtype == np.float32
    assert [part.flat[0] for part in (X_train, y_train, X_test, y_test)] == [0, 1, 2, 3]


def test_pixels_of_mnist_are_between_zero_and_one(monkeypatch):
    X = np.array([[0, 255], [51, 102]], np.uint8)
    data = Bunch(X_train=X, y_train=[0, 1], X_test=X[:1], y_test=[0])
    monkeypatch.setattr(data_sets, "fetch_mnist", lambda: data)
    X_train, _, X_test, _ = load(MNIST)
    assert X_train.dtype == X_test.dtype == np.float32
    np.testing.assert_array_equal(X_train, np.array([[0, 1], [0.2, 0.4]], np.float32))

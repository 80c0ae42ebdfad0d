import numpy as np
import pytest

from coxfield.datasets import DatasetUnavailableError
from coxfield_paper.studies import circles, few_labels_sets
from coxfield_paper.studies.few_labels_sets import FAMILIES, FAMILY, FILES, draw


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A folder with a small file in the format of the sets of the book."""
    rng = np.random.default_rng(0)
    splits = {f"labeled{n}_idx": np.stack([rng.permutation(200)[:n] for _ in range(12)]) for n in (10, 100)}
    arrays = {"X": rng.normal(size=(200, 3)).astype(np.float32), "y": (np.arange(200) % 2).astype(np.uint8)}
    np.savez(tmp_path / "ssl_usps.npz", **arrays, **splits)
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    return arrays | splits


@pytest.mark.parametrize(("labels", "seed"), [(10, 0), (100, 11)])
def test_published_splits_are_read_as_they_are(book, labels, seed):
    X, truth, y = draw("USPS", labels, seed)
    np.testing.assert_array_equal(X, book["X"])
    np.testing.assert_array_equal(truth, book["y"])
    np.testing.assert_array_equal(np.flatnonzero(y >= 0), np.sort(book[f"labeled{labels}_idx"][seed]))
    np.testing.assert_array_equal(y[y >= 0], truth[y >= 0])


@pytest.mark.parametrize("data", FILES)
def test_without_its_file_a_set_of_the_book_names_the_file(data, tmp_path, monkeypatch):
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    with pytest.raises(DatasetUnavailableError, match=rf"{FILES[data]}.*COXFIELD_DATA"):
        draw(data, 10, 0)


@pytest.mark.parametrize("labels", FAMILY["digits"].labels)
def test_digits_have_as_many_labels_per_class_and_other_ones_for_each_seed(labels):
    X, truth, y = draw("digits", labels, 0)
    assert X.shape == (1797, 64)
    assert np.bincount(y[y >= 0]).tolist() == [labels] * 10
    np.testing.assert_array_equal(y[y >= 0], truth[y >= 0])
    np.testing.assert_array_equal(y, draw("digits", labels, 0)[2])
    assert (y != draw("digits", labels, 1)[2]).any()


@pytest.mark.parametrize(("data", "count"), few_labels_sets.RINGS.items())
def test_rings_are_those_of_the_figure(data, count):
    (labels,) = FAMILY[data].labels
    X, truth, y = draw(data, labels, 4)
    expected = circles.draw(count, circles.RINGS[count]["noise"], 4)
    for found, wanted in zip((X, truth, y), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert np.bincount(y[y >= 0]).tolist() == [labels] * count


def test_the_papers_sets_are_drawn_as_for_its_figures():
    X, truth, y = draw("double helix", 10, 3)
    assert X.shape == (1000, 3)
    assert (y >= 0).sum() == 10
    np.testing.assert_array_equal(y[y >= 0], truth[y >= 0])


def test_every_data_set_is_in_one_family():
    assert sum(len(family.sets) for family in FAMILIES) == len(FAMILY)

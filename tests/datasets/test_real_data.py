"""The checksums are those of the real sets: run with COXFIELD_DATA naming a folder that holds them."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from coxfield.datasets import fetch_bci, fetch_mnist
from coxfield.datasets.fetch import data_folder

FOLDER = data_folder()  # before the tests hide it


@pytest.fixture
def needs(monkeypatch):
    """Return a function that skips the test unless the folder holds a file."""

    def needs(filename):
        if FOLDER is None or not (FOLDER / filename).is_file():
            pytest.skip(f"COXFIELD_DATA names no folder with {filename}")
        monkeypatch.setenv("COXFIELD_DATA", str(FOLDER))

    return needs


def test_mnist_is_the_standard_split(needs):
    needs("mnist.npz")
    mnist = fetch_mnist(download=False)
    assert mnist.X_train.shape == (60_000, 784)
    assert mnist.X_test.shape == (10_000, 784)
    assert np.bincount(mnist.y_test).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@pytest.mark.parametrize(("splits", "percent"), [("labeled10_idx", 48.74), ("labeled100_idx", 44.83)])
def test_bci_meets_the_nearest_neighbour_figures(needs, splits, percent):
    needs("ssl_bci.npz")
    bci = fetch_bci(download=False)
    errors = []
    for labelled in bci[splits]:
        unlabelled = np.setdiff1d(np.arange(400), labelled)
        nearest = KNeighborsClassifier(1).fit(bci.X[labelled], bci.y[labelled])
        errors.append(100 * (1 - nearest.score(bci.X[unlabelled], bci.y[unlabelled])))
    assert np.mean(errors) == pytest.approx(percent, abs=0.005)

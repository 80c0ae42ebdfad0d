"""What only real images show; skipped where MNIST is not at hand (`COXFIELD_DATA`, or the cache)."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.datasets import DatasetUnavailableError, fetch_mnist
from tolerances import assert_same_decisions


@pytest.fixture(scope="module")
def mnist():
    try:
        return fetch_mnist(download=False)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_decisions_at_a_thousandth_of_the_median_distance_are_the_nearest_neighbours(mnist, dtype):
    pixels, y, queries = mnist.X_train[:20_000], mnist.y_train[:20_000], mnist.X_test[:2000]
    # Squared distances of pixels are integers, exact in double precision: scores and their gaps have no rounding.
    squares = cdist(queries.astype(float), pixels.astype(float), "sqeuclidean")
    scores = -np.stack([squares[:, y == label].min(axis=1) for label in range(10)], axis=1)
    spread = np.median(np.linalg.norm(pixels[:500].astype(float)[:, None] - pixels[500:1000].astype(float), axis=-1))
    clf = LGCPClassifier(RBF(spread / 255 / 1000), selection=None).fit(pixels.astype(dtype) / dtype(255), y)
    decisions = clf.predict(queries.astype(dtype) / dtype(255))
    # Ours are of pixels / 255, which are rounded, in sums of 784 squares.
    assert_same_decisions(decisions, scores.argmax(axis=1), scores, terms=784, dtype=dtype)

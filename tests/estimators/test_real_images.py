"""What only real images show; skipped where MNIST is not at hand (`COXFIELD_DATA`, or the cache)."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.neighbors import NearestNeighbors

from coxfield import LGCPClassifier
from coxfield.datasets import DatasetUnavailableError, fetch_mnist


@pytest.fixture(scope="module")
def mnist():
    try:
        return fetch_mnist(download=False)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_decisions_at_a_thousandth_of_the_median_distance_are_the_nearest_neighbours(mnist, dtype):
    pixels, y, queries = mnist.X_train[:20_000], mnist.y_train[:20_000], mnist.X_test[:2000]
    # Squared distances of pixels are integers, exact in double precision: ties can be told.
    neighbours = NearestNeighbors(n_neighbors=2, algorithm="brute").fit(pixels.astype(float))
    distance, index = neighbours.kneighbors(queries.astype(float))
    untied = np.rint(distance[:, 0] ** 2) < np.rint(distance[:, 1] ** 2)
    spread = np.median(np.linalg.norm(pixels[:500].astype(float)[:, None] - pixels[500:1000].astype(float), axis=-1))
    clf = LGCPClassifier(RBF(spread / 255 / 1000), selection=None).fit(pixels.astype(dtype) / dtype(255), y)
    decisions = clf.predict(queries.astype(dtype) / dtype(255))
    assert untied.sum() > 1900
    np.testing.assert_array_equal(decisions[untied], y[index[untied, 0]])

"""The loudest training points of each class, compared with a sort of all terms."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct

from coxfield.engine.store import store_labels
from coxfield.engine.witnesses import witnesses
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.recognise import recognise
from tolerances import assert_close

RNG = np.random.default_rng(2)
X = RNG.normal(size=(25, 2))
Y = np.arange(25) % 3
KERNELS = {"positive": RBF(0.7), "of both signs": RBF(0.7) + DotProduct(0.1)}


@pytest.mark.parametrize("top", [1, 4, 9, 12])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_the_largest_terms_by_sorting(name, left, top):
    kernel = KERNELS[name]
    store = store_labels(X, Y, PerClass.shared_by(recognise(kernel, 2), 3))
    found = witnesses(store, X, top, np.arange(25) if left else None)
    values = kernel(X, X)
    for query in range(25):
        for label in range(3):
            rows = [row for row in np.flatnonzero(label == Y) if not (left and row == query)]
            order = sorted(rows, key=lambda row: -values[query, row])[:top]
            blank = top - len(order)
            assert found.rows[query, label].tolist() == [*order, *[-1] * blank]
            expected = np.append(values[query, order], np.zeros(blank))
            assert_close(found.terms[query, label], expected, terms=30, condition=10, scale=np.abs(values).max())

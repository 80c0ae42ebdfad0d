import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF

from coxfield.field.graph import nearest_pairs
from coxfield.kernels import nearest
from coxfield.kernels.recognise import recognise


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_many_features_are_projected_and_near_points_still_found(form, monkeypatch):
    monkeypatch.setattr(nearest, "FEW", 100)
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(100, 200)), 2, axis=0) + 1e-3 * rng.normal(size=(200, 200))
    i, j = nearest_pairs(recognise(RBF(1.0), 200).bind(form(X)), 1).ends
    assert (j[i % 2 == 0] == i[i % 2 == 0] + 1).mean() > 0.95

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF

from coxfield.dask import DaskLGCPClassifier, shards
from coxfield.dask.chunks import Form
from coxfield.dask.shards import Piece, Shards
from coxfield.engine.store import Labelled
from coxfield.kernels.protocol import PerClass
from coxfield.selection.grid import class_distance
from shard_cases import N, chunked, points
from tolerances import assert_close


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("unit", [1.0, 1e200])
@pytest.mark.parametrize("kernels", [[RBF(1.0)] * 3, [RBF(1.0), RBF(3.0), RBF(1.0)]], ids=["shared", "per class"])
def test_the_distance_over_shards_is_that_of_all_points(make, unit, kernels):
    X, y, _ = points()
    X = make(unit * (X + 5))
    weights = 1 + np.arange(N) % 3.0
    there = Shards((Piece(chunked(X, 25), chunked(y, 25), chunked(weights, 25)),), Form(np.dtype(float), 3))
    kernels = PerClass.of(kernels)
    found = shards.class_distance(there.surveyed(DaskLGCPClassifier()), kernels)
    # Variances are differences of second moments, about a row at best, and about 0 at worst: that is what is lost.
    plain = points()[0] + 5
    condition = max((np.square(plain[y == k]).mean(axis=0) / plain[y == k].var(axis=0)).max() for k in range(3))
    assert_close(found, class_distance(Labelled(X, y, 3, weights), kernels), terms=N, condition=condition)

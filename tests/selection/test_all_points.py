import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.field import LabelField
from coxfield.kernels.called import HeldPoints
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from coxfield.kernels.sklearn_tree import rescale
from coxfield.selection.grid import AllPoints
from tolerances import assert_close

X = np.random.default_rng(0).normal(size=(9, 2))
CODES = np.array([0, -1, 1, -1, -1, 2, -1, 0, -1])
MEAN = np.array([0.1, -0.3, 0.0])
KERNELS = [2.0 * RBF(0.8), Matern(1.0), RBF(2.0)]


@pytest.mark.parametrize("kernels", [KERNELS[:1] * 3, KERNELS], ids=["shared", "per class"])
def test_the_fields_are_those_of_the_rescaled_kernels(kernels):
    of = PerClass.of(kernels).map(lambda kernel: recognise(kernel, 2))
    everyone = AllPoints.at(X, of, MEAN, 0.5)
    assert all(isinstance(points, HeldPoints) for points in everyone.points)
    plain = LabelField.from_points(X, [rescale(kernel, 0.5, 1.0) for kernel in kernels], CODES, mean=MEAN)
    found, labels = everyone.field(CODES), np.array([0, 1, 2, 0, 1])
    assert_close(found.unary, plain.unary, terms=9, scale=10.0)
    assert_close(found.energy(labels), plain.energy(labels), terms=81, scale=100.0)


def test_another_variance_multiplies_the_couplings():
    of = PerClass.of(KERNELS).map(lambda kernel: recognise(kernel, 2))
    free = AllPoints.at(X, of, MEAN, 1.0).free_field(3.0)
    plain = LabelField.from_points(X, [rescale(k, 1.0, 3.0) for k in KERNELS], np.full(9, -1), mean=MEAN)
    assert len(free) == 9
    assert_close(free.totals, plain.totals, terms=9)
    assert_close(free.unary, plain.unary, scale=10.0)

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.field import LabelField
from coxfield.field import rows as module
from coxfield.field.rows import coupling_rows
from reference import kernel_value
from tolerances import assert_close

X = np.random.default_rng(0).normal(size=(7, 2))
KERNELS = [RBF(0.8), 2.0 * Matern(1.0), RBF(0.8)]
# (|x|^2 + |z|^2) / l^2, at most: the rounding of distances made of products is relative to that.
EXPONENTS = 4 * np.square(X / 0.8).sum(axis=1).max()


def field(dtype=float):
    return LabelField.from_points(X.astype(dtype), KERNELS, [-1] * 7, n_classes=3)


@pytest.fixture(params=[True, False], ids=["held", "evaluated"])
def held(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(module, "MOST", 0)
    return request.param


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("step", [1, 3, 7, 100])
def test_blocks_of_rows_are_the_couplings_by_double_loop(step, dtype, held):
    found = coupling_rows(field(dtype), step)
    assert found.held == held
    assert found.n == 7
    for k, kernel in enumerate(KERNELS[:2]):
        expected = [[kernel_value(kernel, X[i], X[j]) if i != j else 0.0 for j in range(7)] for i in range(7)]
        whole = np.concatenate([found.values(k, block) for block in found.blocks])
        nearest = min(1, min(np.sum((X[i] - X[j]) ** 2) for i in range(7) for j in range(i)))
        assert_close(whole, np.array(expected), condition=EXPONENTS / nearest, dtype=dtype)
        assert (np.diagonal(whole) == 0).all()
        assert whole.dtype == np.float64


@pytest.mark.parametrize("step", [1, 2, 7, 9])
def test_blocks_cover_every_row_once(step):
    blocks = coupling_rows(field(), step).blocks
    assert np.concatenate([np.arange(7)[block] for block in blocks]).tolist() == list(range(7))
    assert all(block.stop - block.start <= step for block in blocks)


def test_users_are_the_classes_of_each_covariance():
    assert coupling_rows(field(), 2).users.tolist() == [[True, False, True], [False, True, False]]


def test_what_is_held_is_evaluated_once(held, monkeypatch):
    calls = []
    values = module.values
    monkeypatch.setattr(module, "values", lambda *points: calls.append(len(points[0])) or values(*points))
    found = coupling_rows(field(), 4)
    for _ in range(3):
        for block in found.blocks:
            found.values(1, block)
    assert calls == ([7, 7] if held else [4, 3] * 3)

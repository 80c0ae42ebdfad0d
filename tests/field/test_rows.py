"""Couplings row by row, dense and listed, against the kernel and the matrix."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.field import LabelField
from coxfield.field import edges as module
from coxfield.field.edges import DenseRows, LinkedRows, coupling_rows
from field.random_graphs import dense_field, random_couplings
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


COUPLINGS = random_couplings(0, 9, density=0.5)


@pytest.fixture(params=[1, 10, 2**20], ids=["rows", "blocks", "whole"])
def rows(request, monkeypatch):
    monkeypatch.setattr(module, "LINKS", request.param)
    found = coupling_rows(LabelField.from_graph(COUPLINGS, [-1] * 9), step=2)
    assert isinstance(found, LinkedRows)
    return found


def test_blocks_of_links_cover_every_row_once(rows):
    assert np.concatenate([np.arange(9)[block] for block in rows.blocks]).tolist() == list(range(9))


def test_values_are_rows_of_the_matrix(rows):
    for block in rows.blocks:
        np.testing.assert_array_equal(rows.values(0, block).toarray(), COUPLINGS[block])
        np.testing.assert_array_equal(
            rows.before(rows.values(0, block), block).toarray(), np.tril(COUPLINGS[block, block], -1)
        )


def test_links_with_later_nodes_are_listed_once(rows):
    found = np.zeros((9, 9))
    for block in rows.blocks:
        i, j = rows.ends(0, block)
        found[i, j] += rows.after(0, block)
        assert ((i >= block.start) & (i < block.stop)).all()
    np.testing.assert_array_equal(found, np.triu(COUPLINGS, 1))


def test_dense_rows_say_the_same(rows):
    dense = coupling_rows(dense_field(COUPLINGS, [-1] * 9, 0.0, 2), step=4)
    assert isinstance(dense, DenseRows)
    assert dense.users.tolist() == rows.users.tolist() == [[True, True]]
    found = np.zeros((9, 9))
    for block in dense.blocks:
        i, j = dense.ends(0, block)
        found[i, j] += dense.after(0, block)
        np.testing.assert_array_equal(dense.before(dense.values(0, block), block), np.tril(COUPLINGS[block, block], -1))
    np.testing.assert_array_equal(found, np.triu(COUPLINGS, 1))


@pytest.mark.parametrize("n", [0, 3])
def test_graphs_without_links(n):
    rows = coupling_rows(LabelField.from_graph(np.zeros((n, n)), [-1] * n), step=2)
    assert len(rows.blocks) == min(n, 1)
    for block in rows.blocks:
        assert rows.after(0, block).size == 0

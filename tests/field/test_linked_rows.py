import numpy as np
import pytest

from coxfield.field import LabelField
from coxfield.field import linked_rows as module
from coxfield.field.linked_rows import LinkedRows
from coxfield.field.rows import DenseRows, coupling_rows
from field.random_graphs import dense_field, random_couplings

COUPLINGS = random_couplings(0, 9, density=0.5)


@pytest.fixture(params=[1, 10, 2**20], ids=["rows", "blocks", "whole"])
def rows(request, monkeypatch):
    monkeypatch.setattr(module, "LINKS", request.param)
    found = coupling_rows(LabelField.from_graph(COUPLINGS, [-1] * 9), step=2)
    assert isinstance(found, LinkedRows)
    return found


def test_blocks_cover_every_row_once(rows):
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

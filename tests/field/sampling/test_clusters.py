import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coxfield.field.sampling import clusters as module
from coxfield.field.sampling.clusters import clusters


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(0, 60))
def test_few_and_many_bonds_give_the_same_clusters(seed, n, count):
    bonds = np.random.default_rng(seed).integers(n, size=(2, count))
    found = clusters(bonds, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FEW", -1)
        expected = clusters(bonds, n)
    assert found[0] == expected[0]
    np.testing.assert_array_equal(found[1], expected[1])


def test_a_long_chain_is_one_cluster():
    order = np.random.default_rng(0).permutation(1500)
    number, cluster = clusters(np.stack([order[:-1], order[1:]]), 1500)
    assert number == 1
    assert not cluster.any()


def test_without_bonds_each_node_is_a_cluster():
    number, cluster = clusters(np.zeros((2, 0), int), 3)
    assert number == 3
    np.testing.assert_array_equal(cluster, np.arange(3))

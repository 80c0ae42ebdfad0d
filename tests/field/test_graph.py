import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.field import LabelField, map_labels
from coxfield.field.graph import nearest_pairs
from coxfield.kernels.recognise import recognise
from tolerances import assert_close


def test_every_node_is_paired_with_its_nearest_in_units_of_the_length_scale():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    scale = np.array([0.1, 1.0, 10.0])
    pairs = nearest_pairs(recognise(RBF(scale), 3).bind(X), 2)
    distances = np.linalg.norm((X[:, None] - X) / scale, axis=-1)
    np.fill_diagonal(distances, np.inf)
    i, j = pairs.ends
    assert (i < j).all()
    held = np.full((60, 60), np.inf)
    held[i, j] = held[j, i] = distances[i, j]
    assert_close(held.min(axis=1), distances.min(axis=1), terms=3)


@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_few_nodes_are_all_paired(n):
    assert len(nearest_pairs(recognise(RBF(1.0), 2).bind(np.zeros((n, 2))), 8)) == n * (n - 1) // 2


def test_a_field_of_many_features_is_solved_exactly():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, 100)).astype(np.float32)
    labels = np.concatenate([[0, 1] * 5, np.full(140, -1)])
    result = map_labels(LabelField.from_points(X, RBF(5.0), labels))
    assert result.certified.all()
    assert result.relative_gap <= 1e-9

"""Representations that members of a bank ask for."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA

from coxfield.engine.store import Labelled
from coxfield.selection.mixture.bank import DEFAULT, DIRECTIONS, Representations
from mixtures import problem


def names(labelled):
    seen = Representations(labelled)
    return [name for name in DEFAULT if seen.useful(name)]


def test_few_features_have_no_principal_directions():
    assert names(problem()) == ["raw", "standardised", "whitened", "ranked, whitened"]


def test_many_features_and_points_have():
    expected = ["raw", "standardised", "whitened", "principal", "principal, whitened"]
    assert names(problem(n=100, d=2 * DIRECTIONS)) == expected


@pytest.mark.parametrize("name", ["compressed, whitened", "ranked, whitened"])
def test_whitening_may_come_after_a_step_without_labels(name):
    found = Representations(problem(n=100)).of(name)
    assert found.points.shape == (100, 3)
    assert hasattr(found.transform[-1], "left_out")


def test_one_far_value_changes_no_unit():
    labelled = problem(n=400)
    X = labelled.X.copy()
    X[0, 1] = 1e9
    far = Representations(Labelled(X, labelled.y, 3))
    for name in ("standardised", "whitened"):
        one, other = (pdist(seen.of(name).points[1:]) for seen in (Representations(labelled), far))
        assert np.median(np.abs(one / other - 1)) < 0.2


def test_one_feature_has_one_representation():
    assert names(problem(d=1)) == ["raw"]


def test_features_of_one_scale_are_not_standardised():
    rng = np.random.default_rng(0)
    X = rng.permuted(np.repeat(np.linspace(-1, 1, 20)[:, None], 3, axis=1), axis=0)
    assert "standardised" not in names(Labelled(X, np.arange(20) % 2, 2))


def test_sparse_points_are_not_whitened():
    labelled = problem()
    sparse_points = Labelled(sparse.csr_array(labelled.X), labelled.y, 3)
    assert names(sparse_points) == ["raw", "standardised"]
    with pytest.raises(ValueError, match="sparse points have no representation 'whitened'"):
        Representations(sparse_points).of("whitened")


def test_classes_of_single_points_are_not_whitened():
    assert "whitened" not in names(Labelled(np.eye(3) * [1, 2, 3], np.arange(3), 3))


def test_a_transformer_is_fitted_once_and_named():
    labelled, transform = problem(), PCA(2)
    seen = Representations(labelled)
    first = seen.of(transform)
    assert seen.of(transform) is first
    assert first.points.shape == (24, 2)
    assert not hasattr(transform, "components_")  # the user's own is not touched
    assert (first.name, seen.of(PCA(1)).name) == ("PCA", "PCA 2")


@pytest.mark.parametrize("transform", ["white", 3])
def test_anything_else_is_refused(transform):
    with pytest.raises(ValueError, match="transform must be 'raw', 'standardised', "):
        Representations(problem()).of(transform)

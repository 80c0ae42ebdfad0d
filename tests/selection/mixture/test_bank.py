"""The bank of a mixture."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from coxfield.engine.store import Labelled
from coxfield.kernels.transforms import Member
from coxfield.selection.mixture.bank import bank_of
from mixtures import problem

DATA = problem(n=60)


def lengths(ladder):
    return [ladder.length_scale(f) for f in range(len(ladder.factors))]


def test_the_default_has_a_ladder_per_representation():
    bank = bank_of(None, DATA)
    assert [ladder.name for ladder in bank] == ["raw", "standardised", "whitened", "ranked, whitened"]
    for ladder in bank:
        Z = ladder.represent(DATA.X)
        squares = np.square(Z[:, None] - Z).sum(axis=2)
        nearest = np.sqrt(np.sort(squares, axis=1)[:, 1])
        found = lengths(ladder)
        assert found[0] == pytest.approx(2 * np.sqrt(squares.mean()))
        np.testing.assert_allclose(np.array(found[:-1]) / found[1:], np.sqrt(2))
        assert 0.35 * np.median(nearest) / 2 < found[-1] <= 0.35 * np.median(nearest)
        assert not ladder.weights.any()


def test_single_precision_has_no_length_scales_that_rounding_spoils():
    far = Labelled((DATA.X + 1e4).astype(np.float32), DATA.y, 3)
    for ladder in bank_of(None, far):
        points = ladder.bind(far.X)
        assert points.points.imprecise(points.points, ladder.factors.min()).mean() <= 0.5


def test_kernels_of_a_list_are_taken_as_they_are_and_share_distances():
    bank = bank_of([RBF(1.0), Matern(3.0), RBF(4.0), Member(RBF(2.0), "whitened"), RBF([1.0, 2.0, 3.0])], DATA)
    assert [ladder.name for ladder in bank] == ["raw", "raw", "whitened", "raw"]
    assert lengths(bank[0]) == [4.0, 1.0]
    assert lengths(bank[1]) == [3.0]
    assert repr(bank[3].kernel(0)) == "RBF(length_scale=[1, 2, 3])"


def test_one_kernel_is_taken_along_a_path_within_its_bounds():
    (free,) = bank_of(Matern(1.0), DATA)
    assert len(free.factors) > 5
    (bounded,) = bank_of(RBF(1.0, (3.0, 7.0)), DATA)
    assert all(3 <= length <= 7 for length in lengths(bounded))
    (fixed,) = bank_of(RBF(1.5, "fixed"), DATA)
    assert lengths(fixed) == [1.5]


def test_length_scales_may_be_given():
    for ladder in bank_of(None, DATA, length_scales=[0.5, 2.0]):
        assert lengths(ladder) == [2.0, 0.5]


def test_a_transformer_may_be_a_representation():
    (ladder,) = bank_of(Member(transform=PCA(2), alphas=(0.0,)), DATA)
    assert ladder.represent(DATA.X).shape == (60, 2)
    assert ladder.alphas.tolist() == [0.0]


def test_sparse_points_are_said_to_have_fewer_members():
    points = Labelled(sparse.csr_array(DATA.X), DATA.y, 3)
    with pytest.warns(UserWarning, match="X is sparse, so the mixture has no members on whitened features"):
        assert [ladder.name for ladder in bank_of(None, points)] == ["raw", "standardised"]


def test_bad_banks_are_refused():
    with pytest.raises(ValueError, match="the bank of covariances is empty"):
        bank_of([], DATA)
    with pytest.raises(ValueError, match=r"DotProduct\(sigma_0=1\) may take negative values, so it has no density"):
        bank_of([DotProduct()], DATA)
    with pytest.raises(TypeError, match="a covariance must be a kernel"):
        bank_of(["RBF"], DATA)
    with pytest.raises(ValueError, match="all points are the same"):
        bank_of(None, Labelled(np.ones((4, 2)), np.array([0, 0, 1, 1]), 2))


def test_duplicated_points_have_length_scales():
    twice = Labelled(np.repeat(DATA.X, 2, axis=0), np.repeat(DATA.y, 2), 3)
    assert all(len(ladder.factors) > 1 for ladder in bank_of(None, twice))

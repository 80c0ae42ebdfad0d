import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.field import LabelField
from coxfield.field.couplings import couple
from coxfield.field.graph import Pairs
from field.random_fields import KERNELS

rng = np.random.default_rng(0)
X = rng.normal(size=(9, 2))
GROUPS = rng.integers(3, size=9)


def field_of(kernels, points=X):
    """A field of free points with one kernel per class."""
    return LabelField.from_points(points, list(kernels), np.full(points.shape[0], -1), n_classes=len(kernels))


def tile(coupling):
    weights = coupling.tile(coupling)
    np.fill_diagonal(weights, 0)
    return weights


def listed(coupling):
    i, j = np.triu_indices(len(coupling), 1)
    weights = np.zeros((len(coupling),) * 2)
    weights[i, j] = coupling.weights(i, j)
    return weights + weights.T


def kernel_values(kernel):
    values = kernel(X)
    np.fill_diagonal(values, 0)
    return values


@pytest.mark.parametrize("form", [tile, listed])
@pytest.mark.parametrize("held", [False, True], ids=["", "held"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_one_covariance_for_both_labels_is_the_covariance(form, held, kernel):
    field = field_of([kernel, kernel])
    field = field.held() if held else field
    np.testing.assert_allclose(form(couple(field, 1, [0])), kernel_values(kernel), atol=1e-14)


@pytest.mark.parametrize("form", [tile, listed])
def test_two_covariances_count_half_each(form):
    one, zero = KERNELS[:2]
    expected = (kernel_values(one) + kernel_values(zero)) / 2
    np.testing.assert_allclose(form(couple(field_of([one, zero]), 0, [1])), expected, atol=1e-14)
    np.testing.assert_allclose(form(couple(field_of([one, zero]), 0)), kernel_values(one) / 2, atol=1e-14)


@pytest.mark.parametrize("form", [tile, listed])
def test_the_best_of_several_labels_has_the_largest_covariance(form):
    one, *others = KERNELS[3:7]
    largest = np.max([kernel_values(kernel) for kernel in others], axis=0)
    coupling = couple(field_of(KERNELS[3:7]), 0, [1, 2, 3])
    np.testing.assert_allclose(form(coupling), (kernel_values(one) + largest) / 2, atol=1e-14)


@pytest.mark.parametrize("form", [tile, listed])
@pytest.mark.parametrize("picks", [[0, 0, 0], [0, 1, 0], [2, 6, 7]])
def test_groups_have_their_own_covariance_and_no_weight_between_them(form, picks):
    one, zeros = KERNELS[0], [KERNELS[pick] for pick in picks]
    own = np.zeros((9, 9))
    for g, kernel in enumerate(zeros):
        members = np.flatnonzero(np.equal(GROUPS, g))
        mine = np.ix_(members, members)
        own[mine] = kernel_values(kernel)[mine]
    coupling = couple(field_of([one, *zeros]), 0, [1, 2, 3], GROUPS)
    np.testing.assert_allclose(form(coupling), (kernel_values(one) + own) / 2, atol=1e-14)


def test_some_nodes_have_a_part_of_the_weights():
    coupling = couple(field_of(KERNELS[:3]), 0, [0, 1, 2], GROUPS)
    rows, columns = np.array([5, 1, 2]), np.array([0, 8])
    part = coupling[rows].tile(coupling[columns])
    np.testing.assert_allclose(part, tile(coupling)[np.ix_(rows, columns)], rtol=1e-12)


def test_sparse_points_have_the_weights_of_dense_ones():
    dense, thin = (couple(field_of([RBF(0.8)] * 2, Z), 1, [0]) for Z in (X, sparse.csr_array(X)))
    for form in (tile, listed):
        np.testing.assert_allclose(form(thin), form(dense), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_points_far_away_keep_their_neighbours(dtype, far):
    Z = np.concatenate([X[:4], X[:4] + far]).astype(dtype)
    weights = tile(couple(field_of([Matern(0.5)] * 2, Z), 1, [0]))
    np.testing.assert_allclose(weights[:4, :4], tile(couple(field_of([Matern(0.5)] * 2, X[:4]), 1, [0])), rtol=0.1)
    assert (weights[:4, 4:] == 0).all()


def test_pairs_among_some_nodes_are_renumbered():
    pairs = Pairs(6, np.zeros(0, int)).union(np.array([4, 0, 5, 2]), np.array([1, 2, 4, 0]))
    np.testing.assert_array_equal(pairs.ends, [[0, 1, 4], [2, 4, 5]])
    np.testing.assert_array_equal(pairs.among(np.array([1, 4, 5])).ends, [[0, 1], [1, 2]])

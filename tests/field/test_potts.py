"""The label field against its definition, term by term."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from coxfield import LGCPClassifier
from coxfield.field import LabelField
from field import random_fields as reference
from field.random_fields import random_arguments, random_field


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_energy_is_the_double_loop_of_its_definition(seed, shared):
    field = random_field(seed, 3, 8, shared)
    labels = np.random.default_rng(seed).integers(3, size=8)
    assert field.energy(labels) == pytest.approx(reference.energy(field, labels), rel=1e-12)
    assert field.log_weight(labels) == -field.energy(labels)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_absorbing_labelled_points_leaves_the_energy_of_all_points_up_to_a_constant(seed, shared):
    X, kernel, known, means = random_arguments(seed, 3, 6, shared, n_known=4)
    field = LabelField.from_points(X, kernel, known, mean=means, n_classes=3)
    kernels = [kernel] * 3 if shared else kernel
    rng, constants = np.random.default_rng(seed), []
    for _ in range(5):
        labels = rng.integers(3, size=6)
        everything = known.copy()
        everything[field.nodes] = labels
        constants.append(reference.full_energy(X, kernels, means, everything) - field.energy(labels))
    np.testing.assert_allclose(constants, constants[0], rtol=1e-11)


@pytest.mark.parametrize("shared", [True, False])
def test_conditionals_are_ratios_of_weights(shared):
    field = random_field(5, 3, 6, shared)
    labels = np.random.default_rng(5).integers(3, size=6)
    expected = np.empty((6, 3))
    for i in range(6):
        for c in range(3):
            changed = labels.copy()
            changed[i] = c
            expected[i, c] = np.exp(-reference.energy(field, changed))
    np.testing.assert_allclose(field.conditionals(labels), expected / expected.sum(axis=1, keepdims=True), rtol=1e-10)


def test_the_conditional_of_a_single_unlabelled_point_is_the_supervised_prediction():
    X, _, _, _ = random_arguments(1, 2, 9, True, n_known=1)
    y = np.array([0, 1] * 5)
    clf = LGCPClassifier(RBF(0.7), mean={1: 0.3}, selection=None).fit(X[1:], y[1:])
    field = LabelField.from_points(X, RBF(0.7), [-1, *y[1:]], mean=[0.0, 0.3])
    np.testing.assert_allclose(field.conditionals([0]), clf.predict_proba(X[:1]))


def test_enumeration_lists_every_labelling_once():
    field = random_field(2, 3, 5, shared=False)
    labels, energies = field.enumerate()
    assert len(np.unique(labels, axis=0)) == len(labels) == 3**5
    for one, value in zip(labels[::20], energies[::20], strict=True):
        assert value == pytest.approx(field.energy(one), rel=1e-12)


def test_too_many_labellings_are_refused():
    with pytest.raises(ValueError, match="too many to list"):
        random_field(0, 2, 23, shared=True).enumerate()


@pytest.mark.parametrize("shared", [True, False])
def test_conditioning_on_some_nodes_changes_the_energy_of_the_rest_by_a_constant(shared):
    field = random_field(3, 3, 7, shared)
    known = np.array([-1, 2, -1, 0, -1, -1, 1])
    rest = field.condition(known)
    labels, energies = rest.enumerate()
    whole = np.tile(known, (len(labels), 1))
    whole[:, known < 0] = labels
    differences = [field.energy(one) - energy for one, energy in zip(whole, energies, strict=True)]
    np.testing.assert_allclose(differences, differences[0], rtol=1e-11)


@pytest.mark.parametrize("shared", [True, False])
def test_the_cost_is_the_energy_less_a_constant(shared):
    field = random_field(4, 3, 4, shared)
    labels, energies = field.enumerate()
    costs = [field.cost_given(one, field.neighbour_sums(one)) for one in labels]
    np.testing.assert_allclose(energies - costs, energies[0] - costs[0], rtol=1e-11)
    assert min(costs) >= 0


def test_float32_points_are_computed_in_float32_and_summed_in_float64():
    X, kernel, labels, _ = random_arguments(6, 2, 50, True)
    single, double = (LabelField.from_points(X.astype(dtype), kernel, labels) for dtype in (np.float32, float))
    y = np.random.default_rng(0).integers(2, size=50)
    assert single.X.dtype == np.float32
    assert single.unary.dtype == np.float64
    assert single.energy(y) == pytest.approx(double.energy(y), rel=1e-5)


def test_sparse_points_give_the_field_of_dense_ones():
    X, _, labels, _ = random_arguments(7, 2, 12, True)
    X[np.abs(X) < 0.5] = 0
    dense, thin = (LabelField.from_points(Z, RBF(1.0), labels) for Z in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(thin.unary, dense.unary)
    y = np.arange(12) % 2
    assert thin.energy(y) == pytest.approx(dense.energy(y))


def test_couplings_far_below_the_constant_terms_survive():
    X = np.array([[0.0], [10.0], [3.0]])
    field = LabelField.from_points(X, RBF(0.3), [0, 1, -1])
    assert field.unary[0, 0] == field.unary[0, 1] == -0.5
    assert field.relative_unary[0, 0] == pytest.approx(-np.exp(-(10**2) / 2))
    assert field.relative_unary[0, 0] < field.relative_unary[0, 1]


@pytest.mark.parametrize("n", [0, 1])
def test_fields_of_no_node_and_of_one(n):
    field = random_field(8, 2, n, shared=True)
    assert len(field) == n
    assert field.conditionals(np.zeros(n, int)).shape == (n, 2)
    assert field.enumerate()[1].shape == (2**n,)
    assert field.energy(np.zeros(n, int)) == pytest.approx(field.unary[:, 0].sum())


def test_a_field_may_have_no_labelled_points():
    field = LabelField.from_points(np.arange(3.0)[:, None], RBF(1.0), [-1, -1, -1])
    np.testing.assert_array_equal(field.relative_unary, 0)
    np.testing.assert_array_equal(field.unary, -0.5)


def test_equal_kernels_count_as_shared():
    X = np.arange(4.0)[:, None]
    assert LabelField.from_points(X, [RBF(1.0), RBF(1.0)], [0, 1, -1, -1]).shared
    assert not LabelField.from_points(X, {0: RBF(1.0), 1: Matern(1.0)}, [0, 1, -1, -1]).shared


def test_given_arrays_are_not_changed():
    X, kernel, labels, mean = random_arguments(9, 3, 8, False)
    copies = X.copy(), labels.copy(), mean.copy()
    field = LabelField.from_points(X, kernel, labels, mean=mean)
    y = np.zeros(8, int)
    field.energy(y), field.conditionals(y), field.enumerate(), field.condition(np.where(y == 0, -1, 0))
    for now, before in zip((X, labels, mean), copies, strict=True):
        np.testing.assert_array_equal(now, before)
    np.testing.assert_array_equal(y, 0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kernel": RBF(1.0) + DotProduct()}, "DotProduct.* may take negative values.*Theorem 2"),
        ({"kernel": [RBF(1.0)] * 3, "n_classes": 2}, "got 3 kernels for 2 classes"),
        ({"labels": [0, 1, -2, -1]}, "between -1 and"),
        ({"labels": [0, 3, -1, -1], "n_classes": 2}, "between -1 and"),
        ({"labels": [0.5, 1.0, -1, -1]}, "class numbers"),
        ({"labels": [0, 1, -1]}, "inconsistent numbers of samples"),
        ({"mean": [0.0, np.inf]}, "mean must be finite"),
        ({"X": [[0.0], [np.nan], [1.0], [2.0]]}, "NaN"),
    ],
)
def test_wrong_arguments_are_refused_with_a_sentence(changes, words):
    arguments = {"X": np.arange(4.0)[:, None], "kernel": RBF(1.0), "labels": [0, 1, -1, -1]} | changes
    with pytest.raises(ValueError, match=words):
        LabelField.from_points(arguments.pop("X"), arguments.pop("kernel"), arguments.pop("labels"), **arguments)


def test_points_whose_sum_is_no_number():
    largest = float(np.finfo(np.float32).max)
    X = np.array([[-largest, largest], [largest, largest], [-largest, -largest]], np.float32)
    field = LabelField.from_points(X, RBF(1e38), labels=[0, 1, -1])
    assert np.isfinite(field.energy(np.zeros(1, int)))

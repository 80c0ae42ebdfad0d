"""The most probable labelling and alpha-expansion against enumeration."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.field import LabelField, map_labels
from coxfield.field.edges import nearest_pairs
from coxfield.field.mincut import min_cut
from coxfield.field.solve import Expansion, _problem, expand
from field.random_fields import couplings, random_arguments, random_field
from tolerances import assert_same_decisions, assert_same_minimum


def optima(field):
    labels, energies = field.enumerate()
    return energies.min(), labels[energies <= energies.min() + 1e-9]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seed", range(60))
def test_two_classes_reach_the_minimum_of_all_labellings(seed, shared):
    field = random_field(seed, 2, 1 + seed % 12, shared, n_known=seed % 4)
    result, (least, _) = map_labels(field), optima(field)
    assert result.energy == pytest.approx(least, rel=1e-9, abs=1e-9)
    assert result.energy == pytest.approx(field.energy(result.labels))
    assert result.lower_bound <= least + 1e-9
    assert result.certified.all()
    assert result.relative_gap <= 1e-9


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seed", range(45))
def test_three_classes_bracket_the_minimum(seed, shared):
    field = random_field(seed, 3, 1 + seed % 9, shared, n_known=seed % 5)
    result, (least, best) = map_labels(field), optima(field)
    assert result.lower_bound - 1e-9 <= least <= result.energy + 1e-9
    assert result.gap == pytest.approx(result.energy - result.lower_bound, abs=1e-12)
    assert (best[:, result.certified] == result.labels[result.certified]).all(axis=1).any()
    separated = np.max([couplings(field, c) for c in range(3)], axis=0) * (best[0][:, None] != best[0])
    assert result.energy - least <= separated.sum() / 2 + 1e-9


@pytest.mark.parametrize("shared", [True, False])
def test_twelve_nodes_of_three_classes(shared):
    field = random_field(12, 3, 12, shared)
    result, (least, best) = map_labels(field), optima(field)
    assert result.lower_bound - 1e-9 <= least <= result.energy + 1e-9
    assert (best[:, result.certified] == result.labels[result.certified]).all(axis=1).any()


def digits_field(length_scale, n=700, n_classes=2, dtype=float):
    X, y = load_digits(return_X_y=True)
    labels = np.full(n, -1)
    labels[:30] = y[:30] % n_classes
    return LabelField.from_points((X[:n] / 16).astype(dtype), RBF(length_scale), labels, n_classes=n_classes)


@pytest.mark.parametrize("length_scale", [0.4, 0.5, 0.6, 1.0])
def test_digits_have_the_energy_of_the_full_graph(length_scale):
    field = digits_field(length_scale)
    pull = field.relative_unary[:, 0] - field.relative_unary[:, 1]
    i, j = np.triu_indices(len(field), 1)
    full = min_cut(np.maximum(pull, 0), np.maximum(-pull, 0), i, j, couplings(field, 0)[i, j])
    result = map_labels(field)
    assert result.cost == pytest.approx(full.value, rel=1e-9)
    assert result.relative_gap < 1e-8
    assert result.edges < len(i)


def test_ten_classes_of_digits_are_certified():
    result = map_labels(digits_field(0.4, n=400, n_classes=10))
    assert result.certified.all()
    assert result.relative_gap <= 1e-9


def test_float32_digits_are_labelled_like_float64():
    double, single = (map_labels(digits_field(0.5, dtype=dtype)) for dtype in (np.float64, np.float32))
    assert single.relative_gap <= 1e-9
    assert single.cost == pytest.approx(double.cost, rel=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n", [0, 1])
def test_fields_of_no_node_and_of_one(n, n_classes):
    field = random_field(8, n_classes, n, shared=True)
    result = map_labels(field)
    if n:
        assert_same_decisions(result.labels, field.unary.argmin(axis=1), -field.unary)
    assert result.certified.shape == (n,)
    assert result.certified.all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_when_all_couplings_underflow_the_unary_terms_decide(n_classes):
    X = 1e3 * np.arange(20.0)[:, None]
    labels = np.concatenate([np.arange(n_classes), np.full(20 - n_classes, -1)])
    field = LabelField.from_points(X, RBF(0.1), labels, mean=[0.0, 0.5, 0.2][:n_classes])
    result = map_labels(field)
    np.testing.assert_array_equal(result.labels, 1)
    assert result.certified.all()
    assert result.gap == 0


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_duplicated_points_share_a_label(n_classes, shared):
    X, kernel, labels, mean = random_arguments(21, n_classes, 6, shared)
    X, labels = np.repeat(X, 5, axis=0), np.repeat(labels, 5)
    result = map_labels(LabelField.from_points(X, kernel, labels, mean=mean, n_classes=n_classes))
    assert (result.labels.reshape(6, 5) == result.labels.reshape(6, 5)[:, :1]).all()
    assert result.certified.all()


def test_many_nodes_at_one_place():
    X = np.concatenate([np.zeros((30, 2)), np.ones((30, 2))])
    labels = np.array([0] + [-1] * 29 + [1] + [-1] * 29)
    result = map_labels(LabelField.from_points(X, RBF(0.2), labels))
    np.testing.assert_array_equal(result.labels, np.repeat([0, 1], 29))


def test_a_point_far_away_does_not_disturb_the_others():
    X, _, labels, _ = random_arguments(4, 2, 30, True, n_known=6)
    field = LabelField.from_points(X, Matern(0.5), labels)
    near = map_labels(field)
    far = map_labels(LabelField.from_points(np.concatenate([X, [[1e9, 0]]]), Matern(0.5), [*labels, -1]))
    assert_same_minimum(field.energy, far.labels[:-1], near.labels, terms=36**2)


def test_an_initial_labelling_does_not_change_the_minimum():
    field = digits_field(0.5)
    plain = map_labels(field)
    again = map_labels(field, init=plain.labels)
    assert again.cost == pytest.approx(plain.cost, rel=1e-9)
    assert again.rounds <= plain.rounds


@pytest.mark.parametrize("init", [[0], [2] * 8, [-1] * 8])
def test_an_initial_labelling_of_the_wrong_kind_is_refused(init):
    with pytest.raises(ValueError, match="init must hold a class below 2"):
        map_labels(random_field(0, 2, 8, shared=True), init=init)


def test_stopping_early_certifies_nothing_and_keeps_the_bound():
    field = digits_field(0.5)
    early, full = map_labels(field, max_rounds=1), map_labels(field)
    assert not early.certified.any()
    assert early.lower_bound <= full.energy <= early.energy + 1e-9
    assert early.cuts == 1


def test_progress_is_called_after_each_round():
    seen = []
    result = map_labels(digits_field(0.5), progress=seen.append)
    assert len(seen) == result.rounds
    assert seen[-1].edges <= result.edges


def test_the_field_is_not_changed():
    for n_classes in (2, 3):
        field = random_field(5, n_classes, 20, shared=False)
        before = field.X.copy(), field.relative_unary.copy(), field.common_unary.copy()
        init = np.zeros(20, int)
        map_labels(field, init=init)
        for now, then in zip((field.X, field.relative_unary, field.common_unary), before, strict=True):
            np.testing.assert_array_equal(now, then)
        np.testing.assert_array_equal(init, 0)


@pytest.mark.parametrize(("name", "value"), [("tolerance", "wrong"), ("tolerance", -1), ("max_rounds", 0.5)])
def test_wrong_options_are_refused(name, value):
    field = LabelField.from_points([[0.0], [1.0], [2.0]], RBF(1.0), labels=[0, -1, 1])
    with pytest.raises(ValueError, match=f"{name} must be a .*, got {value!r}"):
        map_labels(field, **{name: value})


SOLVER = {"tolerance": 1e-9, "max_rounds": 100}


def expanded(field, labels):
    return expand(field, labels, nearest_pairs(field.points[0]), **SOLVER)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("alpha", [0, 1, 2])
def test_the_two_class_energy_of_a_move_is_the_change_of_energy(alpha, shared):
    field = random_field(alpha, 3, 7, shared)
    labels = np.random.default_rng(alpha).integers(3, size=7)
    sums = field.neighbour_sums(labels)
    nodes = np.flatnonzero(labels != alpha)
    problem = _problem(field, Expansion(labels, sums, 0.0, 0, 0, 0), alpha, nodes)
    weights = problem.coupling.tile(problem.coupling)
    for x in np.indices((2,) * len(nodes)).reshape(len(nodes), -1).T.astype(bool):
        moved = labels.copy()
        moved[nodes[x]] = alpha
        change = weights[np.ix_(x, ~x)].sum() - problem.pull[x].sum()
        assert change == pytest.approx(field.energy(moved) - field.energy(labels), abs=1e-10)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_the_energy_never_rises_and_no_single_move_is_left(seed, shared):
    field = random_field(seed, 4, 40, shared)
    labels = np.random.default_rng(seed).integers(4, size=40)
    found = expanded(field, labels)
    energy = field.energy(found.labels)
    assert energy <= field.energy(labels)
    again = expanded(field, found.labels)
    assert again.moves == 0
    np.testing.assert_array_equal(again.labels, found.labels)
    np.testing.assert_allclose(found.sums, field.neighbour_sums(found.labels))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_the_excess_is_at_most_what_an_optimum_separates(seed, shared):
    """The factor 2 of the Potts model, in the form that also holds for class-specific covariances."""
    field = random_field(seed, 3, 8, shared)
    found = expanded(field, np.random.default_rng(seed).integers(3, size=8))
    labels, energies = field.enumerate()
    best = labels[energies.argmin()]
    largest = np.max([couplings(field, c) for c in range(3)], axis=0)
    separated = (largest * (best[:, None] != best)).sum() / 2
    assert field.energy(found.labels) - energies.min() <= separated + 1e-10


def test_the_given_labels_are_not_changed():
    field = random_field(3, 3, 20, shared=True)
    labels = np.random.default_rng(0).integers(3, size=20)
    before = labels.copy()
    assert expanded(field, labels).moves > 0
    np.testing.assert_array_equal(labels, before)

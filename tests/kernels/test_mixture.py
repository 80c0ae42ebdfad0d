"""Mixtures of covariances, against double loops."""

import copy

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import store_bound
from coxfield.field import LabelField
from coxfield.kernels.mixture import Mixture
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.radial import recognise
from coxfield.process import LogGaussianCoxProcess
from mixtures import by_loops, example, ladder, problem

DATA = problem()
LEARNED = example(DATA)
NEW = DATA.X[:5] + 0.01


def test_a_mixture_is_its_own_covariance():
    assert recognise(LEARNED, 3) is LEARNED
    assert LEARNED.kernel is LEARNED


@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_double_loops(weighted):
    data = problem(weighted=weighted)
    mixture = example(data)
    np.testing.assert_allclose(mixture(NEW, data.X), by_loops(mixture, NEW, data.X), rtol=1e-9)
    np.testing.assert_allclose(mixture(NEW), by_loops(mixture, NEW), rtol=1e-9)
    np.testing.assert_allclose(mixture.diag(NEW), np.diagonal(by_loops(mixture, NEW)), rtol=1e-9)


def test_a_mixture_is_positive_definite_and_never_negative():
    matrix = LEARNED(DATA.X)
    assert np.linalg.eigvalsh((matrix + matrix.T) / 2).min() > -1e-10 * np.trace(matrix)
    assert (matrix >= 0).all()
    LEARNED.check_nonnegative()


def test_reference_points_have_the_densities_of_any_points():
    bound, general = LEARNED.bind_reference(), LEARNED.bind(DATA.X)
    assert bound.whole
    assert not general.whole
    for known, computed in zip(bound.log_densities, general.log_densities, strict=True):
        np.testing.assert_allclose(known, computed, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_class_sums_in_one_pass_are_those_of_the_values(weighted):
    data = problem(weighted=weighted)
    mixture = example(data)
    shared = PerClass.shared_by(mixture, 3)
    store = store_bound([mixture.bind_reference()], data.y, shared, data.weights)
    expected = by_loops(mixture, NEW, data.X) * data.counts
    expected = np.stack([expected[:, data.y == c].sum(axis=1) for c in range(3)], axis=1)
    np.testing.assert_allclose(class_sums(store, NEW).values, expected, rtol=1e-9)


def test_far_away_nothing_counts_and_the_nearest_point_decides():
    shared = PerClass.shared_by(LEARNED, 3)
    store = store_bound([LEARNED.bind_reference()], DATA.y, shared)
    for away in (1e3, 1e8, 1e150):
        with np.errstate(over="raise"):
            sums = class_sums(store, DATA.X[:3] + away)
        assert np.isfinite(sums.values).all()
        assert sums.values.max() < 1e-6
        assert np.isfinite(sums.logs).any()


def test_single_precision():
    data = problem(dtype=np.float32)
    mixture = example(data)
    store = store_bound([mixture.bind_reference()], data.y, PerClass.shared_by(mixture, 3))
    double = example(problem())
    wide = store_bound([double.bind_reference()], data.y, PerClass.shared_by(double, 3))
    found = class_sums(store, NEW.astype(np.float32)).values
    np.testing.assert_allclose(found, class_sums(wide, NEW).values, rtol=2e-3)


def test_rescaling_lengths_changes_the_densities():
    longer = LEARNED.rescaled(length=2.0, variance=3.0)
    np.testing.assert_allclose(longer(NEW), by_loops(longer, NEW), rtol=1e-9)
    np.testing.assert_allclose(LEARNED.rescaled(variance=3.0)(NEW), 3 * LEARNED(NEW), rtol=1e-12)


def test_other_kernels_can_be_members():
    mixture = Mixture((ladder(kernel=Matern(1.0, nu=1.5)), ladder(kernel=RBF(1.0) * Matern(2.0))), DATA.X)
    np.testing.assert_allclose(mixture(NEW, DATA.X), by_loops(mixture, NEW, DATA.X), rtol=1e-8)


def test_copies_give_the_same_values():
    again = copy.deepcopy(LEARNED)
    np.testing.assert_array_equal(again(NEW), LEARNED(NEW))
    assert "_reference" not in again.__getstate__()


def test_it_reads_as_a_sum():
    shown = repr(Mixture((ladder(factors=(1.0, 0.5), weights=[[0.25, 0], [0, 2.0]]),), DATA.X))
    first, second = shown.split(" + ")
    assert first == "0.25 * RBF(length_scale=2) of raw points / density**0.5"
    assert second == "2 * RBF(length_scale=1) of raw points / density**0.75"


def test_a_mixture_serves_the_label_field():
    labels = np.where(np.arange(24) < 6, DATA.y, -1)
    field = LabelField.from_points(DATA.X, LEARNED, labels, n_classes=3)
    i, j = np.flatnonzero(labels < 0)[:2]
    labelling = DATA.y.copy()
    moved = labelling.copy()
    moved[i] = (labelling[i] + 1) % 3
    matrix = LEARNED(DATA.X)
    matrix[np.diag_indices(24)] = 0
    gain = matrix[i, labelling == labelling[i]].sum() - matrix[i, labelling == moved[i]].sum()
    unlabelled = labels < 0
    assert field.energy(moved[unlabelled]) - field.energy(labelling[unlabelled]) == pytest.approx(gain, rel=1e-8)
    assert j != i


def test_a_stationary_mixture_is_simulated():
    plain = Mixture((ladder(factors=(1.0, 0.5), alphas=(0.0,), weights=[[0.3], [0.2]], d=1),), np.zeros((1, 1)))
    assert plain.is_stationary()
    process = LogGaussianCoxProcess(plain, mean=1.0)
    h = np.array([0.0, 1.0])
    expected = np.exp((0.3 * RBF(2.0) + 0.2 * RBF(1.0))([[0.0]], h[:, None])[0])
    np.testing.assert_allclose(process.pair_correlation(h), expected, rtol=1e-12)
    counts = np.array([len(process.sample([(0, 3)], random_state=seed)) for seed in range(200)])
    error = counts.std(ddof=1) / np.sqrt(len(counts))
    assert abs(counts.mean() - 3 * np.exp(1 + 0.5 / 2)) < 4 * error


def test_a_density_is_not_stationary():
    with pytest.raises(ValueError, match="is not stationary"):
        LogGaussianCoxProcess(LEARNED)

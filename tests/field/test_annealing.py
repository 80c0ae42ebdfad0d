"""Annealed weights and weights of subgraphs against enumeration, with the errors that they report."""

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.field import Gibbs, LabelField, SwendsenWang, log_partition
from coxfield.field.edges import coupling_rows
from coxfield.field.partition import Alternation, agreement, anneal, matchings, weigh_subgraphs
from field.random_fields import couplings, random_field

REPETITIONS = 60


@pytest.mark.parametrize("shared", [True, False])
def test_agreement_is_the_energy_without_unary_terms(shared):
    field = random_field(0, 3, 11, shared)
    labels = np.random.default_rng(0).integers(3, size=(6, 11))
    expected = [field.unary[np.arange(11), y].sum() - field.energy(y) for y in labels]
    np.testing.assert_allclose(agreement(coupling_rows(field, step=4), labels), expected, rtol=1e-10)


@pytest.mark.parametrize("seed", range(50))
def test_annealing_agrees_with_enumeration(seed):
    field = random_field(seed, 2 + seed % 2, 3 + seed % 10, shared=seed % 4 < 2, n_known=seed % 7)
    exact = log_partition(field, method="enumerate")
    estimate = log_partition(field, method="annealing", n_particles=256, random_state=1000 + seed)
    assert 0 < estimate.standard_error < 0.2
    assert abs(estimate.log_z - exact.log_z) < 4 * estimate.standard_error


@pytest.mark.parametrize("sampler", ["both", "gibbs", "swendsen-wang"])
@pytest.mark.parametrize(("n_classes", "n", "shared"), [(2, 9, True), (3, 7, False)])
def test_reported_errors_are_the_errors_made(n_classes, n, shared, sampler):
    field = random_field(5, n_classes, n, shared)
    exact = log_partition(field, method="enumerate").log_z
    z = []
    for seed in range(REPETITIONS):
        estimate = log_partition(field, method="annealing", sampler=sampler, n_particles=100, random_state=seed)
        z.append((estimate.log_z - exact) / estimate.standard_error)
    assert abs(np.mean(z)) < 4 / np.sqrt(REPETITIONS)
    low, high = stats.chi2.ppf([1e-4, 1 - 1e-4], REPETITIONS - 1) / (REPETITIONS - 1)
    assert low < np.var(z, ddof=1) < high


@pytest.mark.parametrize("sampler", [Gibbs, SwendsenWang, Alternation])
@pytest.mark.parametrize("shared", [True, False])
def test_the_mean_weight_is_unbiased_however_few_the_temperatures(sampler, shared):
    field = random_field(6, 3, 6, shared)
    exact = log_partition(field, method="enumerate").log_z
    annealed = anneal(sampler(field), np.random.default_rng(0), 20000, 2)
    ratios = np.exp(annealed.log_start + annealed.log_weights - exact)
    assert ratios.std() > 0.1  # two temperatures are too few, and there is something to average
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(20000)


def test_temperatures_run_from_none_to_full_coupling():
    annealed = anneal(Gibbs(random_field(1, 2, 8, True)), np.random.default_rng(0), 4)
    assert annealed.temperatures[0] == 0
    assert annealed.temperatures[-1] == 1
    assert (np.diff(annealed.temperatures) > 0).all()


def test_temperatures_are_dense_where_the_agreement_varies():
    """Strong couplings order the labels early on the path; later nothing changes."""
    field = LabelField.from_points(np.linspace(0, 1, 30)[:, None], RBF(3.0), [-1] * 30)
    annealed = anneal(Gibbs(field), np.random.default_rng(0), 4)
    assert np.median(annealed.temperatures) < 0.25


def test_two_classes_at_one_place_are_the_curie_weiss_model():
    """All couplings are 1, so the sum over labellings becomes a sum over sizes of the first class."""
    n = 24
    field = LabelField.from_points(np.zeros((n, 1)), RBF(1.0), [-1] * n)
    k = np.arange(n + 1)
    log_count = stats.binom.logpmf(k, n, 0.5) + n * np.log(2)
    exact = np.logaddexp.reduce(log_count + (k**2 + (n - k) ** 2) / 2)
    assert couplings(field, 0).sum() == n * (n - 1)
    for sampler in ("gibbs", "swendsen-wang"):
        estimate = log_partition(field, sampler=sampler, n_particles=64, random_state=0)
        assert abs(estimate.log_z - exact) < 4 * estimate.standard_error < 1


def test_alternation_follows_when_the_weight_moves_from_one_class_to_another():
    """Labelled points favour class 1, but the longer length scale of class 0 outweighs them as couplings grow."""
    X = np.random.default_rng(0).normal(size=(13, 2)) / 2
    field = LabelField.from_points(X, [RBF(1.5), RBF(0.4)], [1, 1, *[-1] * 11])
    exact = log_partition(field, method="enumerate")
    unordered, ordered = field.relative_unary.argmin(axis=1), field.enumerate()[0][field.enumerate()[1].argmin()]
    assert (unordered == 1).all()
    assert (ordered == 0).all()
    estimate = log_partition(field, method="annealing", n_particles=256, random_state=0)
    assert abs(estimate.log_z - exact.log_z) < 4 * estimate.standard_error < 0.4


def test_two_samplers_agree_on_hundreds_of_nodes():
    rng = np.random.default_rng(0)
    X, labels = rng.uniform(size=(200, 2)), np.r_[0, 1, 0, 1, np.full(196, -1)]
    field = LabelField.from_points(X, RBF(0.04), labels)
    gibbs, clusters = (
        log_partition(field, sampler=sampler, n_particles=32, random_state=1) for sampler in ("gibbs", "swendsen-wang")
    )
    error = np.hypot(gibbs.standard_error, clusters.standard_error)
    assert abs(gibbs.log_z - clusters.log_z) < 4 * error < 2


def field_without_pull(seed, n, kernel, n_classes=2):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return LabelField.from_points(X, kernel, [-1] * n, mean=0.3, n_classes=n_classes)


@pytest.mark.parametrize("n", range(9))
def test_rounds_hold_every_pair_once_and_no_node_twice(n):
    rounds = matchings(n)
    pairs = [frozenset(pair) for i, j in rounds for pair in zip(i.tolist(), j.tolist(), strict=True)]
    assert len(pairs) == len(set(pairs)) == n * (n - 1) // 2
    assert all(len({*i, *j}) == 2 * len(i) for i, j in rounds)


@pytest.mark.parametrize("kernel", [RBF(0.5), 3.0 * RBF(1.0), Matern(1.0, nu=0.5)])
@pytest.mark.parametrize("n", [2, 5, 8, 12])
def test_subgraphs_agree_with_enumeration(n, kernel):
    field = field_without_pull(n, n, kernel)
    exact = log_partition(field, method="enumerate")
    estimate = log_partition(field, method="subgraphs", n_particles=256, random_state=n)
    assert 0 < estimate.standard_error < 0.1
    assert abs(estimate.log_z - exact.log_z) < 4 * estimate.standard_error


def test_reported_errors_of_subgraphs_are_the_errors_made():
    field = field_without_pull(0, 6, RBF(1.0))
    exact = log_partition(field, method="enumerate").log_z
    estimates = [log_partition(field, method="subgraphs", n_particles=128, random_state=k) for k in range(REPETITIONS)]
    z = [(estimate.log_z - exact) / estimate.standard_error for estimate in estimates]
    assert abs(np.mean(z)) < 4 / np.sqrt(REPETITIONS)
    low, high = stats.chi2.ppf([1e-4, 1 - 1e-4], REPETITIONS - 1) / (REPETITIONS - 1)
    assert low < np.var(z, ddof=1) < high


def test_the_mean_weight_is_unbiased_however_few_the_levels():
    field = field_without_pull(1, 7, 2.0 * RBF(1.0))
    exact = log_partition(field, method="enumerate").log_z
    weighed = weigh_subgraphs(field, np.random.default_rng(0), 10000, 3)
    ratios = np.exp(weighed.log_start + weighed.log_weights - exact)
    assert ratios.std() > 0.1
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(10000)


def test_labels_and_subgraphs_agree_beyond_enumeration():
    field = field_without_pull(2, 30, RBF(0.3))
    one, other = (
        log_partition(field, method=method, n_particles=128, random_state=0) for method in ("annealing", "subgraphs")
    )
    error = np.hypot(one.standard_error, other.standard_error)
    assert abs(one.log_z - other.log_z) < 4 * error < 1


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (field_without_pull(0, 4, RBF(1.0), n_classes=3), "two classes that share a covariance, got 3 classes: use"),
        (field_without_pull(0, 4, [RBF(1.0), RBF(2.0)]), "got 2 classes with covariances of their own: use annealing"),
        (LabelField.from_points(np.eye(3), RBF(1.0), [0, -1, -1]), "without labelled points.*differ by up to 0.368"),
        (LabelField.from_points(np.eye(3), RBF(1.0), [-1] * 3, mean=[0, 1]), "equal means.*differ by up to 1:"),
        (field_without_pull(0, 257, RBF(1.0)), "257 nodes are too many"),
    ],
)
def test_fields_without_such_an_expansion_are_refused_with_a_sentence(field, words):
    with pytest.raises(ValueError, match=words):
        log_partition(field, method="subgraphs")

"""Partition functions and predictive probabilities against enumeration and product densities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield import LGCPClassifier
from coxfield.field import (
    LabelField,
    log_joint_predictive,
    log_partition,
    log_predictive_density,
)
from coxfield.process import LogGaussianCoxProcess, log_superposition_density
from field import random_fields as reference
from field.random_fields import random_arguments, random_field


@pytest.mark.parametrize("kernels", [[RBF(0.7)] * 2, [RBF(0.7), 2.0 * Matern(1.0)], [RBF(0.4)] * 3])
def test_without_labels_it_is_the_product_density_of_the_superposition(kernels):
    X, means = np.random.default_rng(0).normal(size=(7, 2)), [0.2, -0.4, 0.5][: len(kernels)]
    processes = [LogGaussianCoxProcess(kernel, mean=mean) for kernel, mean in zip(kernels, means, strict=True)]
    field = LabelField.from_points(X, kernels, [-1] * 7, mean=means)
    assert log_partition(field).log_z == pytest.approx(log_superposition_density(processes, X), rel=1e-12)


@pytest.mark.parametrize("shared", [True, False])
def test_with_labels_it_is_a_ratio_of_sums_of_weights(shared):
    X, kernel, known, means = random_arguments(3, 2, 4, shared)
    kernels = [kernel] * 2 if shared else kernel
    weights = []
    for labels in np.ndindex(2, 2, 2, 2):
        everything = known.copy()
        everything[known < 0] = labels
        weights.append(-reference.full_energy(X, kernels, means, everything))
    alone = -reference.full_energy(X[known >= 0], kernels, means, known[known >= 0])
    field = LabelField.from_points(X, kernel, known, mean=means, n_classes=2)
    assert log_partition(field).log_z == pytest.approx(np.logaddexp.reduce(weights) - alone, rel=1e-12)


def test_small_fields_are_listed_and_large_ones_annealed():
    small = log_partition(random_field(0, 2, 16, shared=True))
    assert (small.method, small.standard_error, small.effective_particles) == ("enumerate", 0.0, np.inf)
    large = log_partition(random_field(0, 2, 17, shared=True), n_particles=32, n_temperatures=20, random_state=0)
    assert large.method == "annealing"
    assert large.n_temperatures == 20
    assert 1 <= large.effective_particles <= 32


@pytest.mark.parametrize("method", ["enumerate", "annealing", "subgraphs"])
def test_a_field_without_nodes_has_one_labelling_of_energy_zero(method):
    field = LabelField.from_points(np.zeros((0, 2)), RBF(1.0), np.zeros(0, int))
    found = log_partition(field, method=method, random_state=0)
    assert (found.log_z, found.standard_error) == pytest.approx((0.0, 0.0), abs=1e-12)


@pytest.mark.parametrize("method", ["annealing", "subgraphs"])
def test_without_couplings_every_method_is_exact(method):
    field = LabelField.from_points(np.arange(6.0)[:, None] * 100, RBF(1.0), [-1] * 6)
    found = log_partition(field, method=method, random_state=0)
    assert found.log_z == pytest.approx(6 * (0.5 + np.log(2)), rel=1e-12)
    assert found.standard_error == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("method", ["annealing", "subgraphs"])
def test_the_same_seed_gives_the_same_estimate(method):
    field = LabelField.from_points(np.arange(6.0)[:, None], RBF(1.0), [-1] * 6)
    one, same, other = (log_partition(field, method=method, n_particles=16, random_state=seed) for seed in (3, 3, 4))
    assert one == same
    assert one.log_z != other.log_z


def test_few_effective_particles_cause_a_warning():
    X = np.random.default_rng(0).normal(size=(40, 2)) / 4
    field = LabelField.from_points(X, [RBF(1.0), 2.0 * RBF(1.0)], [-1] * 40)
    with pytest.warns(UserWarning, match="effective particles of 200.*n_temperatures"):
        log_partition(field, method="annealing", n_particles=200, n_temperatures=2, random_state=0)


@given(st.integers(0, 10**6), st.sampled_from([2, 3]), st.booleans())
@settings(max_examples=10, deadline=None)
def test_joint_predictive_probabilities_sum_to_one(seed, n_classes, shared):
    field = random_field(seed, n_classes, 4, shared)
    for tested in (4, 2):  # all nodes, or two with the labels of the others summed over
        free = [-1] * (4 - tested)
        values = [log_joint_predictive(field, [*y, *free]).value for y in np.ndindex(*[n_classes] * tested)]
        assert np.exp(values).sum() == pytest.approx(1.0, rel=1e-10)


@given(st.integers(0, 10**6), st.sampled_from([2, 3]), st.booleans())
@settings(max_examples=10, deadline=None)
def test_joint_predictive_probabilities_obey_the_chain_rule(seed, n_classes, shared):
    field = random_field(seed, n_classes, 5, shared)
    y = np.random.default_rng(seed).integers(n_classes, size=5)
    product = 0.0
    for i in range(5):
        known = np.where(np.arange(5) < i, y, -1)
        first = np.full(5 - i, -1)
        first[0] = y[i]
        product += log_joint_predictive(field.condition(known), first).value
    assert log_joint_predictive(field, y).value == pytest.approx(product, rel=1e-10)


def test_one_test_point_alone_has_the_supervised_prediction():
    X, _, _, _ = random_arguments(1, 2, 9, True, n_known=1)
    y = np.array([0, 1] * 5)
    clf = LGCPClassifier(RBF(0.7), mean={1: 0.3}, selection=None).fit(X[1:], y[1:])
    field = LabelField.from_points(X, RBF(0.7), [-1, *y[1:]], mean=[0.0, 0.3])
    values = [log_joint_predictive(field, [c]).value for c in range(2)]
    np.testing.assert_allclose(np.exp(values), clf.predict_proba(X[:1])[0])


def test_an_empty_test_set_has_probability_one():
    assert log_joint_predictive(random_field(0, 2, 5, True), [-1] * 5).value == 0.0


def test_the_density_of_new_points_is_a_ratio_of_superposition_densities():
    X, kernels = np.random.default_rng(1).normal(size=(6, 2)), [RBF(0.5), Matern(0.8)]
    processes = [LogGaussianCoxProcess(kernel) for kernel in kernels]
    field = LabelField.from_points(X, kernels, [-1] * 6)
    expected = log_superposition_density(processes, X) - log_superposition_density(processes, X[[0, 2, 3, 5]])
    assert log_predictive_density(field, [4, 1]).value == pytest.approx(expected, rel=1e-12)
    assert log_predictive_density(field, []).value == 0.0


def test_predictive_estimates_are_within_their_standard_errors():
    field = random_field(11, 3, 8, shared=False)
    labels = [0, 2, -1, 1, -1, -1, -1, -1]
    how = {"method": "annealing", "n_particles": 256}
    for function, asked in ((log_joint_predictive, labels), (log_predictive_density, [0, 1, 3])):
        exact, estimate = function(field, asked), function(field, asked, random_state=0, **how)
        assert 0 < estimate.standard_error < 0.2
        assert abs(estimate.value - exact.value) < 4 * estimate.standard_error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "guess"}, "method must be one of auto, enumerate.*'guess'"),
        ({"sampler": "guess"}, "sampler must be one of both, gibbs.*'guess'"),
        ({"n_particles": 1}, "n_particles.*at least 2, got 1"),
        ({"n_temperatures": 0}, "n_temperatures.*at least 1.*got 0"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(arguments, words):
    with pytest.raises(ValueError, match=words):
        log_partition(random_field(0, 2, 3, True), **arguments)


@pytest.mark.parametrize("new", [[0, 0], [5], [-1]])
def test_new_points_that_are_not_nodes_are_refused(new):
    with pytest.raises(ValueError, match="different numbers of nodes below 5"):
        log_predictive_density(random_field(0, 2, 5, True), new)

"""Label fields on graphs that users give: what they are, and that all inferences work on them."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse
from sklearn.feature_extraction.image import grid_to_graph

from coxfield.field import (
    Gibbs,
    LabelField,
    PerturbAndMap,
    RandomisedCut,
    SwendsenWang,
    log_joint_predictive,
    log_partition,
    log_predictive_density,
    map_labels,
    sample,
)
from coxfield.kernels.called import GraphPoints
from field.random_graphs import (
    dense_field,
    graph_fields,
    random_couplings,
    random_graph_arguments,
    random_graph_field,
    size,
)
from tolerances import assert_close, rounding

SAMPLERS = [Gibbs, SwendsenWang, PerturbAndMap, RandomisedCut]


def exact_marginals(field):
    labels, energies = field.enumerate()
    weights = np.exp(energies.min() - energies)
    return np.stack([weights @ (labels == c) for c in range(field.n_classes)], axis=1) / weights.sum()


def slack(field):
    """What rounding can do to an energy."""
    return rounding(size(field), terms=len(field) ** 2)


@pytest.mark.parametrize("seed", range(4))
def test_the_energy_is_the_double_loop_of_its_definition(seed):
    couplings, known, unary, mean = random_graph_arguments(seed, 3, 7)
    field = LabelField.from_graph(couplings, known, unary=unary, mean=mean, n_classes=3)
    labels = known.copy()
    labels[known < 0] = np.random.default_rng(seed).integers(3, size=7)
    free = np.flatnonzero(known < 0)
    expected = sum(unary[i, labels[i]] - mean[labels[i]] for i in free)
    for i in free:
        others = [j for j in range(9) if labels[i] == labels[j]]
        expected -= sum(couplings[i, j] / (2 if known[j] < 0 else 1) for j in others)
    assert_close(field.energy(labels[free]), expected, terms=100, scale=size(field))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_graph_gives_the_field_of_all_pairs_with_the_same_couplings(seed, n_classes):
    couplings, known, _, mean = random_graph_arguments(seed, n_classes, 8, n_known=3)
    thin = LabelField.from_graph(sparse.coo_array(couplings), known, mean=mean, n_classes=n_classes)
    full = dense_field(couplings, known, mean, n_classes)
    labels = np.random.default_rng(seed).integers(n_classes, size=8)
    np.testing.assert_array_equal(thin.nodes, full.nodes)
    assert_close(thin.unary, full.unary, terms=11, scale=size(full))
    assert_close(thin.energy(labels), full.energy(labels), terms=100, scale=size(full))
    assert_close(thin.neighbour_sums(labels), full.neighbour_sums(labels), terms=8)
    assert_close(thin.totals, full.totals, terms=8)
    assert_close(thin.conditionals(labels), full.conditionals(labels), terms=8, condition=size(full))
    assert_close(thin.balanced_unary, full.balanced_unary, terms=11, scale=size(full))
    assert_close(thin.enumerate()[1], full.enumerate()[1], terms=100, scale=size(full))
    assert abs(map_labels(thin).energy - map_labels(full).energy) <= 2 * slack(full) + map_labels(full).gap


@pytest.mark.parametrize("make", [np.array, sparse.csr_array, sparse.coo_array, sparse.csc_matrix, sparse.lil_array])
def test_every_format_gives_the_same_field(make):
    couplings, known, unary, _ = random_graph_arguments(1, 2, 6)
    given = make(couplings)
    field = LabelField.from_graph(given, known.tolist(), unary=unary.tolist())
    np.testing.assert_array_equal(field.points[0].links().toarray(), couplings[np.ix_(field.nodes, field.nodes)])
    np.testing.assert_array_equal(given.toarray() if sparse.issparse(given) else given, couplings)


@given(graph_fields(2))
@settings(max_examples=60, deadline=None)
def test_two_classes_are_exact(field):
    result, energies = map_labels(field), field.enumerate()[1]
    assert result.energy <= energies.min() + result.gap + 2 * slack(field)
    assert result.lower_bound <= energies.min() + 2 * slack(field)
    assert result.relative_gap <= 1e-9
    assert result.certified.all()
    assert result.edges == field.points[0].links().nnz / 2


def test_two_classes_take_one_cut():
    result = map_labels(random_graph_field(0, 2, 40))
    assert result.cuts == result.rounds == 1
    assert result.certified.all()


@given(graph_fields(3, max_n=6))
@settings(max_examples=60, deadline=None)
def test_the_gap_of_more_classes_is_valid_and_expansion_keeps_its_promise(field):
    result, (labels, energies) = map_labels(field), field.enumerate()
    least, best = energies.min(), labels[energies.argmin()]
    assert result.lower_bound <= least + 2 * slack(field)
    assert least <= result.energy + 2 * slack(field)
    assert_close(result.gap, result.energy - result.lower_bound, scale=size(field))
    separated = field.points[0].links().toarray()[best[:, None] != best].sum() / 2
    assert result.energy - least <= separated + 2 * slack(field)
    good = labels[energies <= least + result.gap + 2 * slack(field)]
    assert (good[:, result.certified] == result.labels[result.certified]).all(axis=1).any()


def test_a_start_and_progress_are_those_of_map_labels():
    field, seen = random_graph_field(3, 2, 8), []
    plain = map_labels(field)
    again = map_labels(field, init=1 - plain.labels, progress=seen.append)
    assert abs(again.energy - plain.energy) <= 2 * slack(field)
    assert len(seen) == again.rounds


@pytest.mark.parametrize("n_classes", [2, 3])
def test_conditioning_changes_the_energy_of_the_rest_by_a_constant(n_classes):
    field = random_graph_field(5, n_classes, 7)
    known = np.array([-1, 1, -1, 0, -1, -1, 1])
    labels, energies = field.condition(known).enumerate()
    whole = np.tile(known, (len(labels), 1))
    whole[:, known < 0] = labels
    differences = np.array([field.energy(one) for one in whole]) - energies
    assert_close(differences, differences[0], terms=100, scale=size(field))


def test_a_part_of_the_field_has_the_couplings_among_its_nodes():
    couplings, known, unary, _ = random_graph_arguments(6, 2, 8)
    part = LabelField.from_graph(couplings, known, unary=unary).among(np.array([1, 4, 6]))
    np.testing.assert_array_equal(part.points[0].links().toarray(), couplings[np.ix_(part.nodes, part.nodes)])
    assert len(part.enumerate()[1]) == 8


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sampler", [Gibbs, SwendsenWang])
@pytest.mark.parametrize("scale", [0.1, 1.5])  # few bonds and many
def test_samplers_have_the_marginals_of_the_enumeration(sampler, n_classes, scale):
    unary = np.random.default_rng(1).normal(size=(7, n_classes))
    field = LabelField.from_graph(random_couplings(2, 7, scale=scale), [-1] * 7, unary=unary)
    draws = sample(sampler(field), 400, random_state=0)
    assert (np.abs(draws.marginals - exact_marginals(field)) <= 5 * draws.standard_errors).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_samplers_have_the_marginals_of_the_field_on_all_pairs(sampler, n_classes):
    couplings, known, _, mean = random_graph_arguments(4, n_classes, 6, n_known=3, density=1.0)
    thin = LabelField.from_graph(couplings, known, mean=mean, n_classes=n_classes)
    draws = [
        sample(sampler(one), 100, random_state=0) for one in (thin, dense_field(couplings, known, mean, n_classes))
    ]
    error = np.hypot(*(one.standard_errors for one in draws))
    assert (np.abs(draws[0].marginals - draws[1].marginals) <= 5 * error).all()


def test_perturbations_are_exact_without_couplings():
    field = LabelField.from_graph(
        sparse.csr_array((5, 5)), [-1] * 5, unary=np.random.default_rng(0).normal(size=(5, 3))
    )
    draws = sample(PerturbAndMap(field), 200, random_state=0)
    assert (np.abs(draws.marginals - exact_marginals(field)) <= 5 * draws.standard_errors).all()


@pytest.mark.parametrize("seed", range(5))
def test_randomised_cuts_without_noise_are_the_most_probable_labelling(seed):
    field = random_graph_field(seed, 2, 15)  # more nodes than neighbours: all links count
    sampler, rng = RandomisedCut(field, noise=0.0, balance=0.0), np.random.default_rng(0)
    found = sampler.step(rng, sampler.init(rng)).labels[0]
    assert abs(field.energy(found) - map_labels(field).energy) <= 2 * slack(field)


def test_the_partition_function_by_three_methods():
    field = LabelField.from_graph(random_couplings(7, 9), [-1] * 9)
    exact = log_partition(field)
    assert exact.method == "enumerate"
    for method in ("annealing", "subgraphs"):
        estimate = log_partition(field, method=method, random_state=0)
        assert abs(estimate.log_z - exact.log_z) <= 5 * estimate.standard_error
    given, rest = [0, -1, -1, -1, -1, -1, -1, -1, 0], list(range(1, 8))
    assert 0.25 < np.exp(log_joint_predictive(field, given).value) < 1  # linked or not, equal classes are favoured
    assert log_predictive_density(field, rest).value > 7 * np.log(2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_parts_without_a_link_do_not_know_of_each_other(n_classes):
    couplings, _, unary, _ = random_graph_arguments(8, n_classes, 6, n_known=0)
    one = LabelField.from_graph(couplings, [-1] * 6, unary=unary)
    both = LabelField.from_graph(sparse.block_diag([couplings] * 2), [-1] * 12, unary=np.tile(unary, (2, 1)))
    assert abs(map_labels(both).energy - 2 * map_labels(one).energy) <= 4 * slack(both) + map_labels(both).gap
    assert_close(both.conditionals([0] * 12), np.tile(one.conditionals([0] * 6), (2, 1)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_links_every_node_takes_its_cheapest_class(n_classes):
    unary = np.random.default_rng(0).permuted(np.tile(np.arange(n_classes), (9, 1)), axis=1)
    result = map_labels(LabelField.from_graph(sparse.csr_array((9, 9)), [-1] * 9, unary=unary))
    np.testing.assert_array_equal(result.labels, unary.argmin(axis=1))
    assert result.certified.all()
    assert result.gap == 0


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("labels", [[], [0, 1, 1]], ids=["no nodes", "all labelled"])
def test_a_field_without_unknown_labels(labels, n_classes):
    field = LabelField.from_graph(np.ones((len(labels),) * 2), labels, n_classes=n_classes)
    assert len(field) == 0
    assert field.energy(np.zeros(0, int)) == 0
    assert field.enumerate()[1].tolist() == [0]
    assert map_labels(field).certified.shape == (0,)
    for sampler in SAMPLERS:
        assert sample(sampler(field), 4, random_state=0).marginals.shape == (0, n_classes)


def test_without_labels_and_costs_the_means_decide():
    field = LabelField.from_graph(np.ones((4, 4)), [-1] * 4, mean=[0.0, 0.5, 0.2])
    assert field.n_classes == 3
    assert map_labels(field).labels.tolist() == [1] * 4
    np.testing.assert_array_equal(field.unary, np.tile([0, -0.5, -0.2], (4, 1)))


def test_costs_far_above_the_couplings_do_not_hide_them():
    unary = np.full((2, 2), 1e17)
    field = LabelField.from_graph([[0, 1e-3], [1e-3, 0]], [-1, 1], unary=unary)
    assert field.relative_unary.tolist() == [[0, -1e-3]]
    assert map_labels(field).labels.tolist() == [1]


def test_costs_of_labelled_nodes_are_ignored():
    couplings = np.ones((3, 3))
    plain = LabelField.from_graph(couplings, [0, -1, -1], unary=[[0, 0], [1, 0], [0, 2]])
    odd = LabelField.from_graph(couplings, [0, -1, -1], unary=[[np.nan, np.inf], [1, 0], [0, 2]])
    np.testing.assert_array_equal(plain.unary, odd.unary)


@pytest.mark.parametrize(("n_classes", "expected"), [(None, 3), (5, 5)])
def test_the_number_of_classes(n_classes, expected):
    unary = None if n_classes else np.zeros((3, 3))
    assert LabelField.from_graph(np.eye(3), [0, 1, -1], unary=unary, n_classes=n_classes).n_classes == expected


@pytest.fixture
def no_tiles(monkeypatch):
    """Whoever asks for a dense block fails."""

    def refuse(*_, **__):
        raise AssertionError("a dense block was asked for")

    for name in ("tile", "log_tile", "neighbours"):  # `walk` visits the links alone
        monkeypatch.setattr(GraphPoints, name, refuse)


@pytest.mark.usefixtures("no_tiles")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_nothing_of_the_size_of_all_pairs_is_computed(n_classes):
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(n_classes), 60 * 60 // n_classes)
    labels = np.where(rng.random(3600) < 0.1, truth, -1)
    unary = (truth[:, None] != np.arange(n_classes)) + rng.normal(size=(3600, n_classes))
    tracemalloc.start()
    field = LabelField.from_graph(grid_to_graph(60, 60), labels, unary=unary)
    result = map_labels(field)
    field.conditionals(result.labels), field.totals, field.held(), field.condition(np.where(truth[field.nodes], -1, 0))
    for sampler in SAMPLERS:
        sample(sampler(field), 4, n_chains=1, burn_in=0, random_state=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (result.labels == truth[field.nodes]).mean() > 0.9
    assert peak < len(field) ** 2 * 8 / 2  # bytes: half of a dense matrix

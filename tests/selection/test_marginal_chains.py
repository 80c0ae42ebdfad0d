import numpy as np
import pytest
from scipy.special import softmax
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.field import LabelField, samplers
from coxfield.selection import few_labels as sampling
from coxfield.selection.grid import folds

ALIKE = 2.0 * RBF(1.0)
TWO = [1.5 * RBF(1.0), Matern(1.0, nu=0.5)]
THREE = [1.5 * RBF(1.0), Matern(1.0, nu=0.5), 0.8 * RBF(2.0)]


def few_points(n_classes, n=7):
    """Points of which all but two are labelled, the classes in turn."""
    X = np.random.default_rng(n_classes).normal(size=(n, 2))
    codes = np.arange(n) % n_classes
    codes[[2, 5]] = -1
    return X, codes


def exact_marginals(X, kernels, codes, mean):
    """Marginals of the unlabelled points by enumeration, with their rows."""
    field = LabelField.from_points(X, kernels, codes, mean=mean, n_classes=len(kernels))
    labels, energies = field.enumerate()
    weights = softmax(-energies)
    return field.nodes, np.stack([weights @ (labels == c) for c in range(len(kernels))], axis=1)


def free_field(X, kernels, mean):
    return LabelField.from_points(X, kernels, [-1] * len(X), mean=mean, n_classes=len(kernels))


@pytest.mark.parametrize(
    ("kernels", "mean"),
    [([ALIKE] * 2, [0.0, 0.0]), ([ALIKE] * 3, [0.0, 0.3, -0.2]), (TWO, [0.2, 0.0]), (THREE, [0.0, 0.1, 0.2])],
    ids=["two classes", "three classes", "two kernels", "three kernels"],
)
def test_held_out_marginals_are_those_of_enumeration(kernels, mean, monkeypatch):
    monkeypatch.setattr(sampling, "DRAWS", 800)
    X, codes = few_points(len(kernels))
    hidden = folds(codes, 3)
    chains = sampling.chain_marginals(free_field(X, kernels, mean), codes, hidden, seed=1)
    found = sampling.held_out(chains, hidden).mean(axis=0)
    for rows in hidden:
        visible = codes.copy()
        visible[rows] = -1
        nodes, exact = exact_marginals(X, kernels, visible, mean)
        # A draw varies by 1/2 at most; chains this small forget within a few steps, four at the very most.
        error = 0.5 / np.sqrt(sampling.repeats(hidden) * 800 / 4)
        np.testing.assert_allclose(found[rows], exact[np.searchsorted(nodes, rows)], atol=4 * error)
    assert np.isnan(found[codes < 0]).all()


def test_chains_that_do_not_fit_into_one_step_keep_their_own_labels(monkeypatch):
    for module in (sampling, samplers):
        monkeypatch.setattr(module, "PROPOSALS", 1)
    monkeypatch.setattr(sampling, "DRAWS", 100)
    # Each hidden point has a twin of its own class, and no other fold would say so.
    X = np.array([[0.0], [0.01], [50.0], [50.01]])
    codes = np.array([0, 0, 1, 1])
    field, hidden = free_field(X, [5.0 * RBF(1.0)] * 2, 0.0), folds(codes, 4)
    found = sampling.held_out(sampling.chain_marginals(field, codes, hidden), hidden).mean(axis=0)
    np.testing.assert_allclose(found[:, 1], softmax([[5, 0], [5, 0], [0, 5], [0, 5]], axis=1)[:, 1], atol=0.02)


def test_visible_labels_are_clamped_and_hidden_ones_free():
    X, codes = few_points(3)
    field = free_field(X, [ALIKE] * 3, [0.0, 0.5, 1.0])
    hidden = folds(codes, 2)
    for unary, rows in zip(sampling.clamped_unary(field, codes, hidden), hidden, strict=True):
        for i, terms in enumerate(unary):
            free = codes[i] < 0 or i in rows
            allowed = [c for c in range(3) if free or c == codes[i]]
            assert np.flatnonzero(np.isfinite(terms)).tolist() == allowed
            np.testing.assert_array_equal(terms[allowed], field.relative_unary[i, allowed])


def test_scores_reward_right_labels_and_little_doubt():
    y = np.array([0, 1, 1, 0])

    def loss(right):
        return sampling.scores(np.where(np.eye(2)[y] > 0, right, 1 - right)[None], y, 10**6)[0]

    confidence = np.linspace(0.05, 0.95, 19)
    assert loss(0.5) == pytest.approx(np.log(2))
    # Four labels and one that is uniform: the optimum is 4/5 + 1/5 1/2.
    assert confidence[np.argmin([loss(p) for p in confidence])] == pytest.approx(0.9)
    assert np.isfinite([loss(0.0), loss(1.0)]).all()
    assert sampling.scores(np.eye(2)[[0, 1, 0, 1]][None], y, 10)[1] == 0.5


def test_chains_that_contradict_each_other_do_not_pass_for_doubt():
    y = np.array([0, 1])
    doubt = np.full((2, 2, 2), 0.5)
    contradiction = np.array([np.eye(2), 1 - np.eye(2)])
    assert sampling.scores(contradiction, y)[0] > 2 * sampling.scores(doubt, y)[0]


@pytest.mark.parametrize("n_folds", [1, 3, 10, 16, 40])
def test_each_fold_has_as_many_chains_and_all_together_enough(n_folds):
    found = sampling.repeats([np.zeros(1, int)] * n_folds)
    assert found * n_folds >= sampling.CHAINS
    assert (found - 1) * n_folds < sampling.CHAINS


def test_rows_are_read_from_the_chains_of_the_fold_that_hides_them():
    chains = np.random.default_rng(0).random((2, 3, 5, 2))
    found = sampling.held_out(chains, [np.array([0, 4]), np.array([2]), np.array([1])])
    for row, fold in ((0, 0), (4, 0), (2, 1), (1, 2)):
        np.testing.assert_array_equal(found[:, row], chains[:, fold, row])
    assert np.isnan(found[:, 3]).all()


def test_one_class_takes_all_if_it_does_so_in_most_chains():
    ordered, mixed = np.tile([0.2, 0.5, 0.3], (40, 1)), np.eye(3)[np.arange(40) % 3]
    nearly = ordered.copy()
    nearly[:2] = [0.9, 0.1, 0.0]  # 38 of 40 is not more than 95 %
    assert sampling.one_takes_all(np.array([[ordered, mixed], [ordered, ordered]]))
    assert not sampling.one_takes_all(np.array([[ordered, mixed], [mixed, ordered]]))
    assert not sampling.one_takes_all(np.array([[nearly]]))
    assert not sampling.one_takes_all(np.ones((4, 3, 1, 2)))  # one point alone is of one class


def test_the_same_seed_gives_the_same_chains():
    X, codes = few_points(2)
    field, hidden = free_field(X, [ALIKE] * 2, 0.0), folds(codes, 2)
    one, two, other = (sampling.chain_marginals(field, codes, hidden, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    assert one.shape == (sampling.repeats(hidden), 2, 7, 2)
    np.testing.assert_allclose(one.sum(axis=-1), 1, rtol=1e-12)


def test_shares_of_the_work_are_told_of(monkeypatch):
    X, codes = few_points(2)
    hidden, told = folds(codes, 3), []
    monkeypatch.setattr(sampling, "PROPOSALS", 20)
    sampling.chain_marginals(free_field(X, [RBF(1.0), RBF(1.0)], np.zeros(2)), codes, hidden, done=told.append)
    assert sum(told) == pytest.approx(1)
    assert len(told) > sampling.BURN_IN + sampling.DRAWS  # more than one part

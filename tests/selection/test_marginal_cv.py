import numpy as np
import pytest
from scipy.special import softmax
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from coxfield.datasets import make_circles
from coxfield.field import LabelField
from coxfield.field.sampling import swendsen_wang
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.recognise import recognise
from coxfield.selection import marginal_chains as sampling
from coxfield.selection import marginal_cv as validation
from coxfield.selection.folds import folds

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
    for module in (sampling, swendsen_wang):
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


def test_neighbours_are_couplings_in_units_of_the_strongest():
    X = np.random.default_rng(0).normal(size=(15, 3))
    for kernel in (RBF(0.7), 3.0 * Matern(0.5, nu=1.5), RBF(0.5) + RBF(1.0)):
        expected = []
        for factor in (2.0, 0.5):
            scaled = kernel.clone_with_theta(kernel.theta + np.log(factor) * is_length(kernel))
            values = scaled(X) - np.diag(scaled.diag(X))
            expected.append(np.median([row.sum() / row.max() for row in values]))
        found = validation.neighbours(X, kernel, np.array([2.0, 0.5]))
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def is_length(kernel):
    return np.array([parameter.name.endswith("length_scale") for parameter in kernel.hyperparameters])


def test_candidates_follow_the_units_and_give_the_median_point_a_few_neighbours():
    X, _ = make_circles(2, random_state=0)
    factors = validation.marginal_factors(X, PerClass.of([RBF(1.0)] * 2), None, bounded=False)
    count = validation.neighbours(X, RBF(1.0), factors)
    assert len(factors) >= 3
    assert (np.diff(factors) < 0).all()
    assert ((count >= validation.FEWEST_NEIGHBOURS) & (count <= validation.MOST_NEIGHBOURS)).all()
    scaled = validation.marginal_factors(1000 * X, PerClass.of([RBF(1.0)] * 2), None, bounded=False)
    np.testing.assert_allclose(scaled, 1000 * factors)


def test_candidates_may_be_given_and_fixed_length_scales_stay():
    X, _ = make_circles(2, random_state=0)
    given = validation.marginal_factors(X, PerClass.of([RBF(1.0)] * 2), [0.1, 7.0], bounded=False)
    assert given.tolist() == [7.0, 0.1]
    assert validation.marginal_factors(X, PerClass.of([RBF(1.0, "fixed")] * 2), None, bounded=True).tolist() == [1.0]
    kernels = PerClass.of([ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed")] * 2)
    with pytest.raises(ValueError, match="no length scale to choose"):
        validation.marginal_factors(X, kernels, None, bounded=True)


def test_data_without_such_a_length_scale_still_have_a_candidate():
    X = np.repeat(np.arange(2.0), 200)[:, None]  # a hundred twins are more than 64 neighbours at any length scale
    assert len(validation.marginal_factors(X, PerClass.of([RBF(1.0)] * 2), None, bounded=False)) == 1


def test_variances_set_the_total_coupling_of_the_median_point():
    X, _ = make_circles(2, random_state=0)
    for kernels in ([3.0 * RBF(0.5)] * 2, [RBF(0.5), 2.0 * Matern(0.4)]):
        of = PerClass.of(kernels).map(lambda kernel: recognise(kernel, 2))
        for variance in validation.AllFree.at(X, of, np.zeros(2), 1.0).variances():
            scaled = [variance * (kernel(X).sum(axis=1) - kernel.diag(X)) for kernel in kernels]
            assert np.abs(np.median(np.mean(scaled, axis=0)) / validation.TEMPERATURES - 1).min() < 1e-9


@pytest.mark.parametrize("kernels", [[RBF(1.0)] * 2, TWO, [ConstantKernel(1.0, "fixed") * RBF(1.0)] * 2])
def test_the_path_tries_every_cell_and_chooses_the_least_loss(kernels):
    X, truth = make_circles(2, random_state=0)
    X, truth = X[::9], truth[::9]
    codes = np.where(np.arange(len(X)) % 5 == 0, truth, -1)
    told = []
    factors = np.array([2.0, 0.8])
    kernels = PerClass.of(kernels)
    path = validation.marginal_path(X, codes, kernels, np.zeros(2), factors, n_folds=3, seed=1, done=told.append)
    columns = path.table(0.5)
    assert len(path) == len(told) == validation.n_cells(kernels, 2)
    assert columns["chosen"].sum() == 1
    assert columns["cv_log_loss"][columns["chosen"]] == columns["cv_log_loss"][~columns["trivial"]].min()
    assert set(columns["length_scale"]) == {1.0, 0.4}
    assert ((columns["cv_error"] >= 0) & (columns["cv_error"] <= 1)).all()
    again = validation.marginal_path(X, codes, kernels, np.zeros(2), factors, n_folds=3, seed=1)
    for name in path.columns:
        np.testing.assert_array_equal(again[name], path[name])


def test_a_fixed_variance_stays():
    X, truth = make_circles(2, random_state=0)
    codes = np.where(np.arange(len(X)) % 5 == 0, truth, -1)[::9]
    kernels = PerClass.of([ConstantKernel(3.0, "fixed") * RBF(0.5)] * 2)
    path = validation.marginal_path(X[::9], codes, kernels, np.zeros(2), np.ones(1), n_folds=2)
    assert path["variance"].tolist() == [1.0]


def test_strong_couplings_let_one_class_take_all():
    X, truth = make_circles(2, random_state=0)
    X, truth = X[::6], truth[::6]
    codes = np.where(np.isin(np.arange(len(X)), [0, 1, 2, len(X) - 1]), truth, -1)
    path = validation.marginal_path(X, codes, PerClass.of([RBF(1.0)] * 2), np.zeros(2), np.array([30.0]))
    trivial = path["trivial"]
    assert trivial[-1]
    assert not trivial[0]


def test_couplings_that_mislead_lose():
    # Pairs of opposite classes: at short distances a label says that the neighbour is of the other class.
    X = np.repeat(10.0 * np.arange(6), 2)[:, None] + np.tile([0.0, 0.1], 6)[:, None]
    codes = np.tile([0, 1], 6)
    codes[[4, 5]] = -1
    path = validation.marginal_path(X, codes, PerClass.of([RBF(1.0)] * 2), np.zeros(2), np.ones(1))
    losses = path["cv_log_loss"]
    assert path.best == 0
    assert losses[-1] > losses[0] + 1

"""Class sums against double loops, and decisions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from coxfield import threads
from coxfield.engine import class_sums as blocks
from coxfield.engine.class_sums import ClassSums, Scores, StatedScores, class_sums, prior_terms
from coxfield.engine.store import store_labels
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from reference import class_scores
from strategies import RECOGNISED, UNRECOGNISED, labelled_points
from tolerances import assert_same_decisions


def covariances(kernels, n_features):
    return PerClass.of(kernels).map(lambda kernel: recognise(kernel, n_features))


def training(X, y, kernels, weights=None):
    return store_labels(X, y, covariances(kernels, X.shape[1]), weights)


def naive_sums(X, y, kernels, queries, weights=None):
    means = np.zeros(len(kernels))
    nothing = class_scores(X, np.full(len(y), -1), kernels, means, queries)
    return class_scores(X, y, kernels, means, queries, weights) - nothing


@settings(max_examples=60, deadline=None)
@given(data=labelled_points(), seed=st.integers(0, 2**20), shared=st.booleans(), weighted=st.booleans())
def test_class_sums_equal_the_double_loop(data, seed, shared, weighted):
    X, y = data
    rng = np.random.default_rng(seed)
    pool = RECOGNISED + UNRECOGNISED
    q = y.max() + 1
    kernels = [pool[rng.integers(len(pool))]] * q if shared else [pool[k] for k in rng.integers(len(pool), size=q)]
    weights = rng.uniform(0.1, 3, size=len(y)) if weighted else None
    queries = rng.normal(size=(5, 3)) * X.std()
    sums = class_sums(training(X, y, kernels, weights), queries)
    expected = naive_sums(X, y, kernels, queries, weights)
    np.testing.assert_allclose(sums.values, expected, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(np.exp(sums.logs), expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("memory", [1e-5, 1e-3, 1024])
@pytest.mark.parametrize("n_jobs", [None, 1, 3])
def test_blocks_threads_and_many_classes_do_not_change_the_sums(dtype, memory, n_jobs, monkeypatch):
    rng = np.random.default_rng(3)
    n, m = (150, 20) if memory == 1e-5 else (700, 60)  # one number at a time is slow
    X, queries = rng.normal(size=(n, 4)).astype(dtype), rng.normal(size=(m, 4)).astype(dtype)
    y = np.concatenate([np.arange(90), rng.integers(90, size=n - 90)])
    monkeypatch.setattr(blocks, "ROWS", 7)
    monkeypatch.setattr(blocks, "COLUMNS", 256)
    points = training(X, y, [RBF(1.5)] * 90)
    with config_context(working_memory=memory), threads.use(n_jobs):
        sums = class_sums(points, queries)
    kernel = RBF(1.5)(queries.astype(float), X.astype(float))
    expected = np.stack([kernel[:, y == label].sum(axis=1) for label in range(90)], axis=1)
    np.testing.assert_allclose(sums.values, expected, rtol=1e-12 if dtype == np.float64 else 2e-5)


@pytest.mark.parametrize(
    "kernel", [RBF(1e-3), Matern(1e-4, nu=1.5), Matern(1e-4, nu=0.5), RBF([1e-3, 2e-3, 1e-3])], ids=str
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_sums_are_right_where_every_value_underflows(kernel, dtype):
    rng = np.random.default_rng(4)
    X, queries = rng.normal(size=(40, 3)).astype(dtype), rng.normal(size=(9, 3)).astype(dtype)
    y = rng.permutation(np.arange(40) % 3)
    sums = class_sums(training(X, y, [kernel] * 3), queries)
    assert (sums.values == 0).all()
    scaled = (queries[:, None].astype(float) - X[None].astype(float)) / kernel.length_scale
    log_kernel = recognise(kernel, 3).profile.log_of((scaled**2).sum(axis=-1))
    for label in range(3):
        expected = np.logaddexp.reduce(log_kernel[:, y == label], axis=1)
        np.testing.assert_allclose(sums.logs[:, label], expected, rtol=1e-9)


def test_the_nearest_point_is_right_far_from_the_origin_at_a_tiny_length_scale():
    # The product form of these distances is wrong by more than the length scale squared.
    X = np.array([[1e6, 0.0], [1e6 + 3e-3, 0.0], [-1e6, 0.0]])
    query = np.array([[1e6 + 1.4e-3, 0.0], [1e6 + 1.6e-3, 0.0]])
    sums = class_sums(training(X, np.array([0, 1, 2]), [RBF(1e-6)] * 3), query)
    np.testing.assert_array_equal(sums.logs.argmax(axis=1), [0, 1])
    expected = -((query[:, :1] - X[:, 0]) ** 2) / 2e-12
    np.testing.assert_allclose(sums.logs, expected, rtol=1e-6)


def test_a_large_variance_brings_faint_sums_back():
    X, y = np.array([[0.0], [77.0]]), np.array([0, 1])
    sums = class_sums(training(X, y, [1e280 * RBF(1.0)] * 2), np.array([[38.0], [39.5]]))
    distance = np.array([[38.0, 39.0], [39.5, 37.5]])
    np.testing.assert_allclose(sums.logs, np.log(1e280) - distance**2 / 2)
    np.testing.assert_allclose(sums.values, np.exp(sums.logs))
    assert (sums.values > 0).all()


@settings(max_examples=30, deadline=None)
@given(data=labelled_points(), seed=st.integers(0, 2**20), weighted=st.booleans())
def test_leaving_out_a_row_is_the_sum_without_it(data, seed, weighted):
    X, y = data
    rng = np.random.default_rng(seed)
    pool = RECOGNISED + UNRECOGNISED
    kernels = [pool[k] for k in rng.integers(len(pool), size=y.max() + 1)]
    weights = rng.choice([0.5, 1.0, 2.0, 3.5], size=len(y)) if weighted else None
    sums = class_sums(training(X, y, kernels, weights), X, leave_out=np.arange(len(y)))
    for j in range(len(y)):
        fewer = np.ones(len(y)) if weights is None else weights.copy()
        fewer[j] = 0
        expected = naive_sums(X, y, kernels, X[j : j + 1], fewer)[0]
        np.testing.assert_allclose(sums.values[j], expected, rtol=1e-9, atol=1e-12)


def test_leaving_out_where_everything_underflows_gives_the_nearest_other_point():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3
    sums = class_sums(training(X, y, [RBF(1e-4)] * 3), X, leave_out=np.arange(30))
    distance = np.linalg.norm(X[:, None] - X[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    nearest, scores = y[distance.argmin(axis=1)], -np.stack([distance[:, y == c].min(axis=1) for c in range(3)], axis=1)
    assert_same_decisions(sums.logs.argmax(axis=1), nearest, scores, terms=2)
    matern = class_sums(training(X, y, [Matern(1e-5)] * 3), X, leave_out=np.arange(30))
    assert_same_decisions(matern.logs.argmax(axis=1), nearest, scores, terms=2)


def test_sparse_points_give_the_sums_of_dense_ones():
    rng = np.random.default_rng(6)
    X = sparse.csr_array(rng.random((60, 30)) * (rng.random((60, 30)) < 0.2))
    y = np.arange(60) % 4
    scale = np.linspace(0.4, 3, 30)
    for kernel in (RBF(scale), RBF(0.001)):
        lazy = class_sums(training(X, y, [kernel] * 4), X, leave_out=np.arange(60))
        dense = class_sums(training(X.toarray(), y, [kernel] * 4), X.toarray(), leave_out=np.arange(60))
        np.testing.assert_allclose(lazy.logs, dense.logs, rtol=1e-9, atol=1e-12)


def test_negative_covariances_are_summed_unchanged():
    X, y = np.array([[1.0], [-2.0], [3.0]]), np.array([0, 1, 1])
    sums = class_sums(training(X, y, [DotProduct(0.0)] * 2), np.array([[-1.0], [2.0]]))
    np.testing.assert_allclose(sums.values, [[-1, -1], [2, 2]])
    assert np.isneginf(sums.logs[0]).all()


def test_where_one_covariance_is_imprecise_the_sums_of_the_other_stay():
    X, y = np.array([[1e8], [1e8 + 1.0], [2.0], [-3.0]]), np.array([0, 0, 1, 1])
    sums = class_sums(training(X, y, [RBF(1.0), DotProduct(0.0)]), np.array([[1e8]]))
    np.testing.assert_allclose(sums.values[0], [1 + np.exp(-0.5), -1e8])


def sums(values):
    with np.errstate(divide="ignore"):
        return ClassSums(np.asarray(values), np.log(values))


def test_small_sums_decide_beside_a_large_shared_prior():
    small = sums([[1e-20, 2e-20], [3e-20, 2e-20]])
    np.testing.assert_array_equal(Scores(np.full((1, 2), 0.5), small).decisions, [1, 0])
    assert (0.5 + small.values)[0, 0] == (0.5 + small.values)[0, 1]


def test_equal_scores_are_decided_by_the_larger_log_sum():
    faint = ClassSums(np.zeros((2, 3)), np.array([[-900.0, -1000.0, -800.0], [-1000.0, -900.0, -950.0]]))
    np.testing.assert_array_equal(Scores(np.array([[0.0, 0.0, -1.0]]), faint).decisions, [0, 1])
    np.testing.assert_array_equal(Scores(np.zeros((1, 3)), faint).decisions, [2, 1])


def test_a_class_without_points_may_win_by_its_mean():
    empty = ClassSums(np.array([[0.3, 0.0]]), np.array([[np.log(0.3), -np.inf]]))
    np.testing.assert_array_equal(Scores(np.array([[0.0, 1.0]]), empty).decisions, [1])


def test_probabilities_are_the_softmax_and_survive_enormous_scores():
    prior, big = np.array([[0.1, 0.4, 0.0]]), sums([[1e280, 3e280, 1.0], [0.5, 0.2, 0.7]])
    log_p = Scores(prior, big).log_probabilities
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1)
    exponentials = np.exp([0.6, 0.6, 0.7])
    np.testing.assert_allclose(np.exp(log_p[1]), exponentials / exponentials.sum())
    assert np.isfinite(Scores(prior, big).relative).all()


def test_prior_holds_means_and_half_the_variance_of_each_class():
    kernels = PerClass.of([RBF(), 3.0 * RBF(), DotProduct(1.0)])
    of = kernels.map(lambda kernel: recognise(kernel, 1))
    prior = prior_terms(of, np.array([[0.0], [2.0]]), np.array([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(prior, [[0.6, 1.7, 0.8], [0.6, 1.7, 2.8]])


def test_what_classes_share_is_left_out_unless_it_is_one_number():
    X, mean = np.array([[1.0], [3.0]]), np.array([0.5, 0.0])
    shared = PerClass.shared_by(recognise(DotProduct(), 1), 2)
    np.testing.assert_array_equal(prior_terms(shared, X, mean), [[0.5, 0.0]])
    own = PerClass.of([recognise(DotProduct(), 1), recognise(RBF(1.0), 1)])
    np.testing.assert_array_equal(prior_terms(own, X, mean), [[1.5, 0.5], [5.5, 0.5]])


def test_stated_scores_are_log_probabilities():
    p = np.array([[0.2, 0.5, 0.3], [0.0, 0.0, 1.0]])
    with np.errstate(divide="ignore"):
        stated = StatedScores(np.log(p))
    np.testing.assert_array_equal(stated.decisions, [1, 2])
    np.testing.assert_array_equal(stated.values, stated.log_probabilities)
    np.testing.assert_array_equal(stated.relative, stated.log_probabilities)

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, RationalQuadratic

from coxfield import LGCPClassifier
from coxfield.engine import weights as blocks
from coxfield.engine.store import Labelled
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.radial import recognise
from coxfield.selection import pseudo_likelihood as module
from coxfield.selection.pseudo_likelihood import pseudo_likelihood
from derivatives import difference
from reference import refit_scores, softmax
from strategies import RECOGNISED, UNRECOGNISED, labelled_points

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 3)), RNG.permutation(np.arange(20) % 3)
WEIGHTS = RNG.choice([0.5, 1.0, 2.5], size=20)
MEAN = np.array([0.3, -0.4, 0.1])
PER_CLASS = {
    "ARD and isotropic": [RBF([0.5, 2.0, 1.0]), 0.3 * RationalQuadratic(0.8, alpha=1.7), Matern(0.9, nu=0.5)],
    "two of three share": [2.0 * RBF(1.0), Matern([0.4, 1.0, 3.0], nu=1.5), Matern([0.4, 1.0, 3.0], nu=1.5)],
    "one of them called": [RBF([0.5, 2.0, 1.0]), UNRECOGNISED[0], Matern(0.7)],
}
PER_CLASS["two of three share"][2] = PER_CLASS["two of three share"][1]
MORE = [Matern([0.5, 2.0, 1.0], nu=nu) for nu in (0.5, 0.8, 1.5, 3.1, np.inf)] + [
    RBF(1.0, "fixed"),
    2.0 * RBF(1.0, "fixed"),
]
SHARED = {str(kernel): [kernel] * 3 for kernel in [*RECOGNISED, *MORE, *UNRECOGNISED, DotProduct(0.5) + RBF(1.0)]}


@pytest.fixture
def _small_tiles(monkeypatch):
    monkeypatch.setattr(blocks, "ROWS", 11)
    monkeypatch.setattr(module, "COLUMNS", 5)


def training(points, y, kernels, weights=None):
    """Labelled points and their covariances, as `pseudo_likelihood` takes them."""
    of = PerClass.of_objects(kernels).map(lambda kernel: recognise(kernel, points.shape[1]))
    return Labelled(points, y, len(kernels), weights), of


def moved(kernels, kernel, entry, h):
    theta = kernel.theta.copy()
    theta[entry] += h
    other = kernel.clone_with_theta(theta)
    return [other if one is kernel else one for one in kernels]


@pytest.mark.usefixtures("_small_tiles")
@pytest.mark.parametrize("kernels", [*SHARED.values(), *PER_CLASS.values()], ids=[*SHARED, *PER_CLASS])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_gradients_are_finite_differences(kernels, weighted):
    weights, smoothing = (WEIGHTS, 0.2) if weighted else (None, 0.0)

    def value(kernels, mean):
        return pseudo_likelihood(*training(X, Y, kernels, weights), mean, smoothing=smoothing).smoothed

    found = pseudo_likelihood(*training(X, Y, kernels, weights), MEAN, smoothing=smoothing)
    distinct = PerClass.of_objects(kernels).distinct
    expected = [
        difference(lambda h, kernel=kernel, entry=entry: value(moved(kernels, kernel, entry, h), MEAN))
        for kernel in distinct
        for entry in range(kernel.n_dims)
    ]
    np.testing.assert_allclose(np.concatenate(found.by_theta), expected, rtol=1e-6, atol=1e-8)
    by_mean = [difference(lambda h, i=i: value(kernels, MEAN + h * (np.arange(3) == i))) for i in range(3)]
    np.testing.assert_allclose(found.by_mean, by_mean, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernels", [*SHARED.values(), *PER_CLASS.values()], ids=[*SHARED, *PER_CLASS])
def test_pseudo_likelihood_is_the_sum_of_log_probabilities_of_refits(kernels):
    p = softmax(refit_scores(X, Y, kernels, MEAN, WEIGHTS))
    expected = WEIGHTS @ np.log(p[np.arange(len(Y)), Y])
    assert pseudo_likelihood(*training(X, Y, kernels, WEIGHTS), MEAN).value == pytest.approx(expected, rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(labelled_points(), st.sampled_from(RECOGNISED), st.sampled_from([1e-9, 1.0, 30.0]))
def test_pseudo_likelihood_is_the_sum_of_leave_one_out_log_probabilities(data, kernel, variance):
    points, y = data
    clf = LGCPClassifier(variance * kernel, selection=None).fit(points, y)
    p = clf.loo_predict_proba()[np.arange(len(y)), y]
    found = pseudo_likelihood(Labelled(points, y, len(clf.classes_)), clf._covariances, clf.mean_).value
    if p.min() > 1e-300:
        assert found == pytest.approx(np.log(p).sum(), rel=1e-9, abs=1e-12)
    else:
        assert found < -600


@pytest.mark.parametrize("kernel", [RBF([0.5, 2.0, 1.0]), Matern(1.0)], ids=str)
def test_sparse_and_single_precision_points_give_the_same(kernel):
    exact = pseudo_likelihood(*training(X, Y, [kernel] * 3, WEIGHTS), MEAN)
    for points, tolerance in ((sparse.csr_array(X), 1e-10), (X.astype(np.float32), 1e-4)):
        found = pseudo_likelihood(*training(points, Y, [kernel] * 3, WEIGHTS.astype(points.dtype)), MEAN)
        assert found.value == pytest.approx(exact.value, rel=tolerance)
        np.testing.assert_allclose(found.by_theta[0], exact.by_theta[0], rtol=tolerance, atol=tolerance)


def test_single_precision_far_from_the_origin_in_units_of_the_length_scale_is_not_trusted():
    points = np.concatenate([X, X + 1e-4]).astype(np.float32)  # in pairs
    points[0] = 1e3
    y = np.tile(Y, 2)
    kernel = RBF([1e-4] * 3)
    found = pseudo_likelihood(*training(points, y, [kernel] * 3), np.zeros(3))
    exact = pseudo_likelihood(*training(points.astype(np.float64), y, [kernel] * 3), np.zeros(3))
    np.testing.assert_allclose(found.value, exact.value, rtol=1e-5)
    np.testing.assert_allclose(found.by_theta[0], exact.by_theta[0], rtol=1e-4)


def test_a_huge_variance_makes_up_for_sums_that_underflow():
    """At unit variance all kernel values are below 1e-300; what counts is variance times kernel."""
    points, y = np.array([[0.0], [1.0], [10.0], [11.0]]), np.array([0, 0, 1, 1])
    length_scale = 1 / np.sqrt(2 * 710)  # so that neighbours have covariance exp(-710) times the variance
    kernel = ConstantKernel(np.exp(600.0)) * RBF(length_scale)
    small = pseudo_likelihood(*training(points, y, [kernel] * 2), np.zeros(2))
    assert small.value == pytest.approx(-4 * np.log(2), abs=1e-12)
    assert np.isfinite(small.by_theta[0]).all()
    kernel = ConstantKernel(np.exp(600.0)) * RBF(1 / np.sqrt(2 * 600))
    found = pseudo_likelihood(*training(points, y, [kernel] * 2), np.zeros(2))
    assert found.value == pytest.approx(-4 * np.log1p(np.exp(-1)), rel=1e-9)
    assert found.by_theta[0] == pytest.approx([4 / (1 + np.e), 4 * 1200 / (1 + np.e)], rel=1e-9)


def test_rows_chosen_at_random_stand_for_all():
    points = training(X, Y, [RBF([0.5, 2.0, 1.0])] * 3, WEIGHTS)
    whole = pseudo_likelihood(*points, MEAN)
    halves = [pseudo_likelihood(*points, MEAN, rows=rows) for rows in (np.arange(0, 20, 2), np.arange(1, 20, 2))]
    assert halves[0].value + halves[1].value == pytest.approx(whole.value)
    np.testing.assert_allclose(halves[0].by_theta[0] + halves[1].by_theta[0], whole.by_theta[0])


@pytest.mark.parametrize("kernel", [RBF(1.0), UNRECOGNISED[0]], ids=["radial", "called"])
def test_little_memory_means_more_blocks_and_the_same_result(kernel):
    heard = []
    with config_context(working_memory=0.01):
        found = pseudo_likelihood(*training(X, Y, [kernel] * 3), MEAN, done=heard.append)
    assert sum(heard) == 20
    assert found.value == pytest.approx(pseudo_likelihood(*training(X, Y, [kernel] * 3), MEAN).value)

"""Maximum pseudo-likelihood: values, gradients against differences, priors, and where the search starts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, RationalQuadratic

from coxfield import LGCPClassifier
from coxfield.datasets import make_circles
from coxfield.engine import class_sums as blocks
from coxfield.engine.store import Labelled
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from coxfield.selection import pseudo_likelihood as learning
from coxfield.selection import pseudo_likelihood as module
from coxfield.selection.loo import Search
from coxfield.selection.pseudo_likelihood import (
    DEVIATION,
    NormalPrior,
    default_prior,
    pseudo_likelihood,
    starting_points,
)
from derivatives import difference
from reference import refit_scores, softmax
from strategies import RECOGNISED, UNRECOGNISED, labelled_points
from tolerances import assert_close


def noisy(n=120, seed=0):
    """Two classes along the first feature; the second says nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 2)) + 1.5 * y[:, None] * [1, 0], y


@pytest.mark.parametrize(
    "kernel",
    [None, RBF([1.0, 1.0]), {0: RBF(1.0), 1: Matern([1.0, 1.0])}, 0.5 * RBF(0.5) + 0.1 * RBF(2.0)],
    ids=["isotropic", "ARD", "a kernel per class", "called"],
)
def test_learning_ends_at_a_maximum(kernel, monkeypatch):
    monkeypatch.setattr(learning, "TOLERANCE", 1e-9)
    X, y = noisy()
    clf = LGCPClassifier(kernel, selection="pseudo_likelihood").fit(X, y)
    path = clf.learning_path_
    assert (np.diff(path["log_posterior"]) > 0).all()
    found = pseudo_likelihood(Labelled(X, y, 2), clf._covariances, clf.mean_, smoothing=1 / len(y))
    assert found.value == pytest.approx(path["log_pseudo_likelihood"][-1], rel=1e-9)
    p = clf.loo_predict_proba()[np.arange(len(y)), y]
    assert np.log(p).sum() == pytest.approx(found.value, rel=1e-9)
    assert clf.mean_.sum() == pytest.approx(0, abs=1e-9)
    assert found.by_mean - clf.mean_ == pytest.approx(0, abs=0.01)  # derivative of the posterior, in nats


def test_means_stay_unless_they_are_learned():
    X, y = noisy()
    clf = LGCPClassifier(mean={1: 0.7}, selection="pseudo_likelihood", learn_mean=False).fit(X, y)
    assert clf.mean_.tolist() == [0, 0.7]
    free = LGCPClassifier(mean={1: 0.7}, selection="pseudo_likelihood").fit(X, y)
    assert free.mean_.sum() == pytest.approx(0.7)
    assert free.mean_[1] != 0.7


def test_fixed_parameters_stay_and_bounds_hold():
    X, y = noisy()
    bounded = RBF([1.0, 1.0], [(0.5, 5.0), (0.1, 1.2)])
    first, second = LGCPClassifier(bounded, selection="pseudo_likelihood").fit(X, y).kernel_.k2.length_scale
    assert 0.5 <= first < 5
    assert second == pytest.approx(1.2)  # it would be longer
    learned = LGCPClassifier(ConstantKernel(0.3, "fixed") * bounded, selection="pseudo_likelihood").fit(X, y).kernel_
    assert learned.k1.constant_value == 0.3
    assert learned.k2.length_scale[0] != 1.0
    fixed = LGCPClassifier(2.0 * RBF(0.8, "fixed"), selection="pseudo_likelihood").fit(X, y).kernel_
    assert fixed.k2.length_scale == 0.8
    assert fixed.k1.constant_value != 2.0
    nothing = ConstantKernel(0.3, "fixed") * RBF(1.0, "fixed")
    with pytest.raises(ValueError, match="nothing to learn"):
        LGCPClassifier(nothing, selection="pseudo_likelihood", learn_mean=False).fit(X, y)


def test_separable_classes_have_finite_parameters():
    X, y = make_circles(2, 40, random_state=0)
    clf = LGCPClassifier(selection="pseudo_likelihood").fit(X, y)
    assert clf.loo_error_ == 0
    assert clf.kernel_.k1.constant_value < 1e4
    assert np.isfinite(clf.predict_log_proba(X)).all()


def test_pure_noise_is_not_fitted_by_a_hundred_length_scales():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 40)), np.arange(80) % 2
    clf = LGCPClassifier(RBF(np.ones(40)), selection="pseudo_likelihood").fit(X, y)
    new, truth = rng.normal(size=(400, 40)), rng.integers(2, size=400)
    loss = -np.mean(clf.predict_log_proba(new)[np.arange(400), truth])
    assert loss < np.log(2) + 0.1


def test_units_of_a_feature_do_not_matter_to_length_scales_per_feature():
    X, y = noisy()
    p, q = (
        LGCPClassifier(RBF([1.0, 1.0]), selection="pseudo_likelihood").fit(X * units, y).loo_predict_proba()
        for units in (np.array([1.0, 1.0]), np.array([1e-3, 1e3]))
    )
    np.testing.assert_allclose(p, q, atol=0.02)


def test_a_sample_of_rows_learns_nearly_the_same(monkeypatch):
    X, y = noisy(600)
    whole = LGCPClassifier(selection="pseudo_likelihood").fit(X, y)
    monkeypatch.setattr(learning, "MOST_ROWS", 300)
    part = LGCPClassifier(selection="pseudo_likelihood").fit(X, y)
    assert 0 < np.abs(part.predict_proba(X) - whole.predict_proba(X)).max() < 0.1


def test_progress_is_shown(capsys):
    X, y = noisy(40)
    LGCPClassifier(selection="pseudo_likelihood", verbose=1).fit(X, y)
    assert "learning, 100 steps at most" in capsys.readouterr().err


def test_classes_share_what_is_learned_if_they_share_a_kernel():
    X, y = noisy()
    own = LGCPClassifier({0: RBF(1.0), 1: RBF(1.0)}, selection="pseudo_likelihood").fit(X, y).kernel_
    assert own[0] != own[1]
    kernel = RBF(1.0)
    shared = LGCPClassifier({0: kernel, 1: kernel}, selection="pseudo_likelihood").fit(X, y).kernel_
    assert shared[0] == shared[1]


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


def test_prior_is_normal_and_its_gradient_the_difference():
    prior = NormalPrior(np.array([1.0, 2.0]), np.array([0.5, 3.0]))
    at = np.array([0.3, 4.0])
    assert prior.log_density(at) == pytest.approx(-0.5 * ((0.7 / 0.5) ** 2 + (2 / 3) ** 2))
    expected = [difference(lambda h, k=k: prior.log_density(at + h * (np.arange(2) == k))) for k in range(2)]
    np.testing.assert_allclose(prior.gradient(at), expected)


def test_length_scales_per_feature_share_the_freedom_of_one():
    kinds = [("constant_value", 1), ("length_scale", 16), ("mean", 2)]
    prior = default_prior(np.arange(19.0), kinds)
    together = np.sqrt(np.sum(prior.deviation[1:17] ** 2))
    assert together == pytest.approx(default_prior(np.arange(3.0), [("length_scale", 1), ("mean", 2)]).deviation[0])
    assert prior.centre.tolist() == [0, *range(1, 19)]


def test_at_the_centre_nothing_pulls_and_a_deviation_away_costs_half_a_nat():
    prior = default_prior(np.array([0.0, 2.0, 0.5, -0.5]), [("constant_value", 1), ("length_scale", 1), ("mean", 2)])
    assert prior.log_density(prior.centre) == 0
    np.testing.assert_array_equal(prior.gradient(prior.centre), 0)
    for k in range(4):
        away = prior.centre + prior.deviation * (np.arange(4) == k)
        assert_close(prior.log_density(away), -0.5, terms=4)


def test_constants_are_centred_at_one_wherever_learning_starts():
    for start in (-20.0, 0.0, 30.0):
        prior = default_prior(np.array([start, start]), [("constant_value", 1), ("alpha", 1)])
        assert prior.centre.tolist() == [0.0, start]
        assert prior.deviation.tolist() == [DEVIATION["constant_value"], DEVIATION[None]]


def test_means_do_not_share_their_freedom():
    deviation = default_prior(np.zeros(5), [("mean", 5)]).deviation
    assert deviation.tolist() == [DEVIATION["mean"]] * 5


def test_an_infinite_deviation_says_nothing():
    prior = NormalPrior(np.zeros(2), np.array([1.0, np.inf]))
    assert prior.log_density(np.array([0.0, 1e6])) == 0
    assert prior.gradient(np.array([0.0, 1e6]))[1] == 0


SIDES = np.arange(30) % 2
STRETCHED = RNG.normal(size=(30, 2)) * [1.0, 5.0] + 1.5 * SIDES[:, None] * [1, 0]
LABELLED = Labelled(STRETCHED, SIDES, 2)


def search(*, bounded=False, refine=False):
    return Search(np.zeros(2), "loo_log_loss", bounded=bounded, refine=refine, set_variance=True)


def shared(kernel):
    return PerClass.shared_by(kernel, 2)


def test_one_length_scale_has_one_start_on_the_path():
    (start,) = starting_points(LABELLED, shared(RBF(1.0)), search(), [4.0, 1.0, 0.3])
    table = start.table
    assert table["length_scale"].tolist() == [4.0, 1.0, 0.3]
    assert set(table) == {"length_scale", "variance", "loo_error", "loo_log_loss", "chosen"}
    kernel = start.kernels[0]
    assert_close(kernel.k2.length_scale, table["length_scale"][table["chosen"]].item())
    assert_close(kernel.k1.constant_value, table["variance"][table["chosen"]].item())


def test_the_start_has_the_least_loss_with_what_the_prior_says_of_the_variance():
    (start,) = starting_points(LABELLED, shared(0.5 * RBF(1.0)), search(), [4.0, 1.0, 0.5])
    log_variances = np.log(0.5 * start.table["variance"])
    penalty = (log_variances / DEVIATION["constant_value"]) ** 2 / 2
    assert start.table["chosen"].argmax() == (30 * start.table["loo_log_loss"] + penalty).argmin()
    # The path reports the losses of refits.
    for k, (length_scale, log_v) in enumerate(zip(start.table["length_scale"], log_variances, strict=True)):
        p = softmax(refit_scores(STRETCHED, SIDES, [np.exp(log_v) * RBF(length_scale)] * 2, [0.0, 0.0]))
        assert start.table["loo_log_loss"][k] == pytest.approx(-np.log(p[np.arange(30), SIDES]).mean(), rel=1e-9)


def test_length_scales_per_feature_start_from_those_given_and_from_the_deviations():
    given, standardised = starting_points(LABELLED, shared(RBF([1.0, 1.0])), search(), [1.0, 0.5])
    assert np.ptp(given.kernels[0].k2.length_scale) == 0
    one, two = standardised.kernels[0].k2.length_scale
    assert_close(two / one, STRETCHED[:, 1].std() / STRETCHED[:, 0].std(), terms=30)


def test_weights_count_in_the_deviations():
    weights = RNG.integers(1, 4, size=30).astype(float)
    weighted = starting_points(Labelled(STRETCHED, SIDES, 2, weights), shared(RBF([1.0, 1.0])), search(), [1.0])[1]
    one, two = weighted.kernels[0].k2.length_scale
    repeated = np.repeat(STRETCHED, weights.astype(int), axis=0)
    assert_close(two / one, repeated[:, 1].std() / repeated[:, 0].std(), terms=90)


def test_a_kernel_without_a_variance_of_its_own_starts_as_it_is():
    kernels = shared(RBF(1.0) + Matern(2.0))
    (start,) = starting_points(LABELLED, kernels, search(), None)
    assert start.kernels is kernels
    assert start.table == {}


def test_where_no_length_scale_is_free_only_the_variance_is_sought():
    (start,) = starting_points(LABELLED, shared(2.0 * RBF(0.7, "fixed")), search(), None)
    assert start.table["length_scale"].tolist() == [0.7]
    assert start.kernels[0].k2.length_scale == 0.7
    assert start.kernels[0].k1.constant_value != 2.0


def test_the_start_is_within_the_bounds_of_the_kernel():
    kernel = ConstantKernel(1.0, (0.9, 1.1)) * RBF(1.0, (0.5, 2.0))
    (start,) = starting_points(LABELLED, shared(kernel), search(bounded=True), [100.0])
    assert_close(start.kernels[0].k2.length_scale, 2.0)
    assert 0.9 <= start.kernels[0].k1.constant_value <= 1.1


def test_narrow_bounds_start_as_given():
    clf = LGCPClassifier(RBF(1.0, (0.99, 1.01)), selection="pseudo_likelihood").fit(STRETCHED, SIDES)
    assert clf.selection_path_["length_scale"].tolist() == [1.0]
    assert 0.99 <= clf.kernel_.k2.length_scale <= 1.01

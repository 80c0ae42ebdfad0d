"""The variational GP classifier against quadrature, finite differences and a Laplace approximation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit, log_expit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern
from sklearn.multiclass import OneVsRestClassifier

from coxfield.baselines import VariationalGPClassifier
from coxfield.baselines.variational_gp import (
    best_scores,
    bound_gradient,
    climb,
    curvature,
    log_cosh_half,
    posterior,
    settle,
)
from coxfield.datasets import load_banana, load_synth
from tolerances import assert_close


def settled(K, signs):
    return settle(K, signs, np.sqrt(np.diag(K)), np.zeros(len(K)))


def random_problem(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)


def quadrature(K, signs):
    """Log marginal likelihood and posterior mean of f by a tensor grid of Gauss-Hermite nodes."""
    n = len(K)
    z = np.stack(np.meshgrid(*[NODES] * n, indexing="ij"), axis=-1).reshape(-1, n)
    weights = np.prod(np.meshgrid(*[WEIGHTS / WEIGHTS.sum()] * n, indexing="ij"), axis=0).ravel()
    f = z @ np.linalg.cholesky(K).T
    likelihood = weights * np.prod(expit(signs * f), axis=1)
    return np.log(likelihood.sum()), likelihood @ f / likelihood.sum()


def kernel_matrix(correlation, variance):
    return variance * np.array([[1.0, correlation], [correlation, 1.0]])


@given(st.floats(-30, 30), st.floats(0.0, 30))
def test_each_factor_is_bounded_from_below_and_touched(f, xi):
    def lower(f):
        return log_expit(xi) + (f - xi) / 2 - curvature(np.array(xi)) * (f**2 - xi**2)

    assert lower(f) <= log_expit(f) + 1e-9
    assert lower(xi) == pytest.approx(log_expit(xi))
    assert lower(-xi) == pytest.approx(log_expit(-xi))


@pytest.mark.parametrize("variance", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("signs", [(1.0, 1.0), (1.0, -1.0)])
@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_bound_is_below_the_marginal_likelihood_and_tight_for_small_variances(variance, signs, correlation):
    K, signs = kernel_matrix(correlation, variance), np.array(signs)
    evidence, mean = quadrature(K, signs)
    found, _ = settled(K, signs)
    gap = evidence - found.bound
    assert gap >= 0
    # Both contacts are fixed by the second moment, so what is lost is of fourth order in f.
    assert gap <= variance**2 / 20
    # The mean errs by the same order, and no more than the posterior is wide.
    np.testing.assert_allclose(found.mean, mean, atol=min(0.1 * variance**2, 0.3 * np.sqrt(variance)))


@pytest.mark.parametrize("variance", [0.1, 2.0])
def test_bound_and_mean_against_draws_from_the_prior(variance):
    X, signs = random_problem(8)
    K = (variance * RBF(1.0))(X)
    draws = np.random.default_rng(0).multivariate_normal(np.zeros(8), K, size=400_000, method="cholesky")
    likelihood = np.prod(expit(signs * draws), axis=1)
    evidence, error = likelihood.mean(), likelihood.std() / np.sqrt(len(draws))
    found, _ = settled(K, signs)
    assert np.exp(found.bound) <= evidence + 4 * error
    mean = likelihood @ draws / likelihood.sum()
    spread = np.sqrt((likelihood @ (draws - mean) ** 2) / likelihood.sum())
    assert (np.abs(found.mean - mean) < 0.1 * spread).all()


def test_one_point_without_correlation_to_others_has_an_even_chance():
    # E sigma(f) = 1/2 for any symmetric prior.
    found, _ = settled(np.array([[4.0]]), np.array([1.0]))
    evidence, _ = quadrature(np.array([[4.0]]), np.array([1.0]))
    assert evidence == pytest.approx(np.log(0.5))
    assert found.bound < np.log(0.5)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.2, 3.0), st.floats(0.1, 100.0), st.integers(0, 1000))
def test_no_contacts_beat_the_settled_ones(length_scale, variance, seed):
    X, signs = random_problem(12, seed)
    K = (variance * RBF(length_scale))(X)
    found, xi = settled(K, signs)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 1e-1, 1.0):
        assert posterior(K, signs, xi * np.exp(size * rng.normal(size=12))).bound <= found.bound + 1e-5
    # They are a fixed point, and mean and variance are those of the Gaussian of the bound.
    S = np.linalg.inv(np.linalg.inv(K + 1e-12 * np.eye(12)) + 2 * np.diag(curvature(xi)))
    np.testing.assert_allclose(found.variance, np.diag(S), rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(found.mean, S @ signs / 2, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(K @ found.scores, found.mean, rtol=1e-6, atol=1e-8)


def test_newton_finds_the_fixed_point_of_the_mean():
    X, signs = random_problem(25)
    K, variance = (30.0 * RBF(0.7))(X), np.linspace(0.1, 3.0, 25)
    mean = K @ best_scores(K, signs, variance, np.zeros(25))
    lam = curvature(np.sqrt(variance + mean**2))
    np.testing.assert_allclose((np.eye(25) + 2 * K * lam) @ mean, K @ signs / 2, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", [2.0 * RBF(0.8), 0.5 * Matern([0.5, 2.0], nu=1.5), 1.0 * RBF(1.0) + 0.3 * RBF(3.0)])
def test_the_gradient_is_that_of_finite_differences(kernel):
    X, signs = random_problem(30)

    def bound(theta):
        K = kernel.clone_with_theta(theta)(X)
        found, xi = settled(K, signs)
        for _ in range(5):  # beyond the usual precision: differences of the bound are divided by a small step
            found, xi = settle(K, signs, xi, found.scores)
        return found.bound

    K, K_gradient = kernel(X, eval_gradient=True)
    found, _ = settled(K, signs)
    wanted = approx_fprime(kernel.theta, bound, 1e-4)
    np.testing.assert_allclose(bound_gradient(found, K_gradient), wanted, rtol=1e-3, atol=2e-3)


def test_curvature_is_an_eighth_at_zero_and_falls():
    xi = np.array([0.0, 1e-9, 1e-3, 1.0, 50.0, 1e4])
    found = curvature(xi)
    # lambda = 1/8 - xi^2 / 96 + ..., and no contact is taken below 1e-6
    np.testing.assert_allclose(found[:2], 1 / 8, rtol=0, atol=2e-12 / 96)
    assert (np.diff(found) <= 0).all()
    assert_close(found[-1], 1 / (4 * 1e4))


@pytest.mark.parametrize("n", [1, 4])
def test_without_a_signal_every_label_is_a_coin(n):
    found, xi = settled(np.zeros((n, n)), np.ones(n))
    assert_close(found.bound, n * np.log(0.5), terms=n)
    np.testing.assert_array_equal(found.mean, 0)
    np.testing.assert_array_equal(xi, 0)


def test_flipping_all_labels_flips_the_mean_and_keeps_the_bound():
    X, signs = random_problem(12)
    K = RBF(1.0)(X)
    here, there = settled(K, signs)[0], settled(K, -signs)[0]
    assert_close(there.bound, here.bound, terms=12**3)
    assert_close(there.mean, -here.mean, terms=12**3, scale=np.abs(here.mean).max())
    assert_close(there.variance, here.variance, terms=12**3)


def test_the_precision_of_the_data_lowers_the_variance():
    X, signs = random_problem(12)
    K = (2.0 * RBF(1.0))(X)
    found, xi = settled(K, signs)
    R = np.linalg.inv(K + np.diag(1 / (2 * curvature(xi))))
    condition = np.linalg.cond(K + np.diag(1 / (2 * curvature(xi))))
    size = np.abs(R).max()
    assert_close(found.precision_of_data(), R, terms=12**3, scale=size, condition=condition)
    assert_close(found.variance, np.diag(K - K @ R @ K), terms=12**3, scale=2.0, condition=condition)


@given(st.floats(0, 700))
def test_log_cosh_is_that_of_numpy_where_it_does_not_overflow(xi):
    assert_close(log_cosh_half(np.array(xi)), np.log(2 * np.cosh(xi / 2)), condition=1 + xi)


def test_the_maximum_is_no_lower_than_anything_around_it():
    data = load_synth()
    X, y = data.X_train[::3], data.y_train[::3]
    clf = VariationalGPClassifier(n_restarts=2, random_state=0).fit(X, y)
    assert len(clf.restarts_) == 3
    assert clf.bound_ == max(start.bound for start in clf.restarts_)
    signs = 2.0 * y - 1
    for step in ([0.1, 0], [-0.1, 0], [0, 0.1], [0, -0.1]):
        around = clf.kernel_.clone_with_theta(clf.kernel_.theta + step)
        assert settled(around(X), signs)[0].bound < clf.bound_


def test_predictions_are_near_those_of_the_laplace_approximation():
    """Same prior and likelihood, and so the same posterior; the two approximate it by Gaussians.

    The mode, which Laplace takes for the mean, and the mean of the bound differ where the posterior is skewed: far from
    the decision boundary, where probabilities near 0 and 1 differ by up to a few hundredths and decisions do not.
    """
    data = load_synth()
    X, y = data.X_train, data.y_train
    for variance in (0.1, 1.0, 10.0):
        kernel = ConstantKernel(variance, "fixed") * RBF(0.5, "fixed")
        ours = VariationalGPClassifier(kernel).fit(X, y)
        laplace = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
        difference = np.abs(ours.predict_proba(data.X_test) - laplace.predict_proba(data.X_test))
        assert difference.max() < 0.08
        assert difference.mean() < 0.02
        assert np.mean(ours.predict(data.X_test) != laplace.predict(data.X_test)) < 0.01


def test_probabilities_are_the_logistic_function_averaged_over_the_posterior():
    data = load_synth()
    clf = VariationalGPClassifier(4.0 * RBF(0.4), n_restarts=0).fit(data.X_train[::4], data.y_train[::4])
    mean, variance = clf.latent(data.X_test[:3])
    draws = np.random.default_rng(0).normal(mean, np.sqrt(variance), size=(200_000, 3))
    sigma = expit(draws)
    error = 4 * sigma.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(clf.predict_proba(data.X_test[:3])[:, 1] - sigma.mean(axis=0)) < error).all()
    np.testing.assert_allclose(clf.predict_proba(data.X_test[:3]).sum(axis=1), 1)


def test_latent_function_at_training_points_is_the_posterior_and_far_away_the_prior():
    X, signs = random_problem(20)
    kernel = ConstantKernel(3.0, "fixed") * RBF(0.9, "fixed")
    clf = VariationalGPClassifier(kernel).fit(X, signs)
    found, _ = settled(kernel(X), signs)
    np.testing.assert_allclose(clf.latent(X), [found.mean, found.variance], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(clf.latent(X[:1] + 1e3), [[0.0], [3.0]])
    np.testing.assert_allclose(clf.predict_proba(X[:1] + 1e3), [[0.5, 0.5]])


def test_more_features_than_points_change_nothing_but_the_time():
    X, signs = random_problem(15)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(40, 2)))[0]
    narrow = VariationalGPClassifier(n_restarts=1, random_state=0).fit(X, signs)
    wide = VariationalGPClassifier(n_restarts=1, random_state=0).fit(X @ turn.T + 5.0, signs)
    assert wide.bound_ == pytest.approx(narrow.bound_, abs=1e-5)
    np.testing.assert_allclose(wide.predict_proba(X @ turn.T + 5.0), narrow.predict_proba(X), atol=1e-3)
    each = VariationalGPClassifier(RBF(np.ones(40), "fixed")).fit(X @ turn.T, signs)
    assert each.bound_ == pytest.approx(settled(RBF(1.0)(X), signs)[0].bound, abs=1e-5)


def test_random_starts_are_repeatable_and_within_bounds():
    data = load_banana()
    kernel = ConstantKernel(1.0, (0.5, 2.0)) * RBF(1.0, (0.5, 1.5))
    fits = [VariationalGPClassifier(kernel, n_restarts=2, random_state=3).fit(data.X[:40], data.y[:40]) for _ in "ab"]
    assert [start.bound for start in fits[0].restarts_] == [start.bound for start in fits[1].restarts_]
    for start in fits[0].restarts_:
        assert (start.kernel.theta >= kernel.bounds[:, 0]).all()
        assert (start.kernel.theta <= kernel.bounds[:, 1]).all()


def test_the_random_state_may_be_of_any_kind():
    X, _ = random_problem(10)

    def starts(random_state):
        kernels = VariationalGPClassifier(n_restarts=2, random_state=random_state)._starts(X)
        return [kernel.theta.tolist() for kernel in kernels]

    assert starts(5) == starts(np.random.RandomState(5))
    assert starts(np.random.default_rng(5)) == starts(np.random.default_rng(5))
    generator = np.random.default_rng(5)
    assert starts(generator) != starts(generator)
    assert starts(None) != starts(None)
    with pytest.raises(ValueError, match="'dice' cannot be used to seed"):
        starts("dice")


def test_labels_may_be_words_and_more_classes_need_one_against_the_rest():
    data = load_synth()
    words = np.array(["no", "yes"])[data.y_train]
    clf = VariationalGPClassifier(n_restarts=0).fit(data.X_train[::5], words[::5])
    assert set(clf.predict(data.X_test)) == {"no", "yes"}
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(45, 2)) + 4 * np.repeat(np.eye(3, 2), 15, axis=0), np.repeat([0, 1, 2], 15)
    with pytest.raises(ValueError, match=r"3 classes: wrap the estimator in sklearn\.multiclass\.OneVsRestClassifier"):
        VariationalGPClassifier().fit(X, y)
    assert OneVsRestClassifier(VariationalGPClassifier(n_restarts=0)).fit(X, y).score(X, y) > 0.9


def test_wrong_arguments_are_named():
    X, signs = random_problem(6)
    with pytest.raises(ValueError, match=r"only one class: 1\.0"):
        VariationalGPClassifier().fit(X, np.ones(6))
    with pytest.raises(ValueError, match="n_restarts must be an integer of at least 0, got -1"):
        VariationalGPClassifier(n_restarts=-1).fit(X, signs)


def test_evaluations_are_told_of():
    steps = []
    climb(1.0 * RBF(1.0), *random_problem(20), lambda: steps.append(1))
    assert len(steps) > 1


def test_a_parameter_of_zero_starts_at_its_lower_bound():
    X, signs = random_problem(20)
    found = VariationalGPClassifier(DotProduct(0.0, (1e-3, 1e3)), n_restarts=0).fit(X, signs)
    assert 1e-3 * (1 - 1e-9) <= found.kernel_.sigma_0 <= 1e3


def test_kernels_that_are_wrong_are_refused_before_any_work():
    X, signs = random_problem(20)
    with pytest.raises(ValueError, match="constant_value of the covariance must be positive and finite, got 0"):
        VariationalGPClassifier(ConstantKernel(0.0) * RBF(1.0)).fit(X, signs)

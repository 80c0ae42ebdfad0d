"""The variational GP classifier against its bound and scikit-learn's Laplace approximation."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from sklearn.multiclass import OneVsRestClassifier

from baselines.two_classes import random_problem, settled
from coxfield.baselines import VariationalGPClassifier
from coxfield.baselines.variational_gp import climb
from coxfield.datasets import load_banana, load_synth


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

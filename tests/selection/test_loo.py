import numpy as np
import pytest
from coxfield.kernels.covariance import recognise
from sklearn.gaussian_process.kernels import RBF

from coxfield.engine.class_sums import arrange
from coxfield.selection.loo import LooPath, loo_path
from reference import refit_scores, softmax
from tolerances import assert_close, assert_same_error


@pytest.mark.parametrize("means", [[0.0, 0.0], [0.4, -0.1]])
@pytest.mark.parametrize("weighted", [False, True])
def test_path_reports_the_losses_of_refits(means, weighted):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 2)), rng.permutation(np.arange(25) % 2)
    weights = rng.choice([1.0, 2.0], size=25) if weighted else None
    factors = np.array([2.0, 0.7, 0.2])
    covariance = recognise(RBF(1.0), 2)
    path = loo_path(arrange(X, y, [covariance] * 2, weights), np.array(means), factors, free_variance=False)
    for k, factor in enumerate(factors):
        scores = refit_scores(X, y, [RBF(factor)] * 2, means, weights)
        log_p = np.log(softmax(scores))[np.arange(25), y]
        assert path.loo_log_loss[k] == pytest.approx(-np.average(log_p, weights=weights))
        assert_same_error(path.loo_error[k], scores.argmax(axis=1), y, scores, weights=weights, terms=25)
    np.testing.assert_array_equal(path.variance, 1)


def test_free_variance_lowers_the_log_loss_and_leaves_the_errors():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 2)), rng.permutation(np.arange(40) % 2)
    points, factors = arrange(X, y, [recognise(RBF(1.0), 2)] * 2), np.array([1.0, 0.3])
    fixed = loo_path(points, np.zeros(2), factors, free_variance=False)
    free = loo_path(points, np.zeros(2), factors, free_variance=True)
    assert (free.loo_log_loss < fixed.loo_log_loss).all()
    assert_close(free.loo_error, fixed.loo_error, terms=40)


def test_least_error_wins_and_log_loss_breaks_ties():
    path = LooPath(
        factor=np.arange(4.0),
        variance=np.ones(4),
        loo_error=np.array([0.3, 0.1, 0.1 + 1e-15, 0.1]),
        loo_log_loss=np.array([0.1, 0.5, 0.4, 0.6]),
    )
    assert path.best("loo_error") == 2
    assert path.best("loo_log_loss") == 0

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.engine.store import Labelled
from coxfield.kernels.per_class import PerClass
from coxfield.selection.loo import Search
from reference import refit_scores, softmax
from tolerances import assert_close, assert_same_error

KERNELS = PerClass.shared_by(RBF(1.0), 2)


@pytest.mark.parametrize("means", [[0.0, 0.0], [0.4, -0.1]])
@pytest.mark.parametrize("weighted", [False, True])
def test_path_reports_the_losses_of_refits(means, weighted):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 2)), rng.permutation(np.arange(25) % 2)
    weights = rng.choice([1.0, 2.0], size=25) if weighted else None
    factors = np.array([2.0, 0.7, 0.2])
    search = Search(np.array(means), "loo_error", bounded=False, refine=False, set_variance=False)
    path = search.path(Labelled(X, y, 2, weights), KERNELS, factors)
    for k, factor in enumerate(factors):
        scores = refit_scores(X, y, [RBF(factor)] * 2, means, weights)
        log_p = np.log(softmax(scores))[np.arange(25), y]
        assert path["loo_log_loss"][k] == pytest.approx(-np.average(log_p, weights=weights))
        assert_same_error(path["loo_error"][k], scores.argmax(axis=1), y, scores, weights=weights, terms=25)
    np.testing.assert_array_equal(path["variance"], 1)


def test_free_variance_lowers_the_log_loss_and_leaves_the_errors():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 2)), rng.permutation(np.arange(40) % 2)
    fixed, free = (
        Search(np.zeros(2), "loo_error", bounded=False, refine=False, set_variance=set_variance).path(
            Labelled(X, y, 2), KERNELS, np.array([1.0, 0.3])
        )
        for set_variance in (False, True)
    )
    assert (free["loo_log_loss"] < fixed["loo_log_loss"]).all()
    assert_close(free["loo_error"], fixed["loo_error"], terms=40)


def test_finer_length_scales_are_tried_around_the_best():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 2)), rng.permutation(np.arange(40) % 2)
    search = Search(np.zeros(2), "loo_log_loss", bounded=False, refine=True, set_variance=False)
    path = search.path(Labelled(X, y, 2), KERNELS, np.array([4.0, 2.0, 1.0]))
    assert len(path) == 3 + 6
    assert (np.diff(path["factor"]) < 0).all()

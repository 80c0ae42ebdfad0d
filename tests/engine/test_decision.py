import numpy as np
from sklearn.gaussian_process.kernels import RBF, DotProduct

from coxfield.engine.class_sums import ClassSums, Scores, StatedScores, prior_terms
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.radial import recognise


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

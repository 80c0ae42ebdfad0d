import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from coxfield import LGCPClassifier
from coxfield.engine.store import Labelled
from coxfield.kernels.per_class import PerClass
from coxfield.selection.loo import Search
from coxfield.selection.pseudo_likelihood import DEVIATION, starting_points
from reference import refit_scores, softmax
from tolerances import assert_close

RNG = np.random.default_rng(0)
Y = np.arange(30) % 2
X = RNG.normal(size=(30, 2)) * [1.0, 5.0] + 1.5 * Y[:, None] * [1, 0]
LABELLED = Labelled(X, Y, 2)


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
        p = softmax(refit_scores(X, Y, [np.exp(log_v) * RBF(length_scale)] * 2, [0.0, 0.0]))
        assert start.table["loo_log_loss"][k] == pytest.approx(-np.log(p[np.arange(30), Y]).mean(), rel=1e-9)


def test_length_scales_per_feature_start_from_those_given_and_from_the_deviations():
    given, standardised = starting_points(LABELLED, shared(RBF([1.0, 1.0])), search(), [1.0, 0.5])
    assert np.ptp(given.kernels[0].k2.length_scale) == 0
    one, two = standardised.kernels[0].k2.length_scale
    assert_close(two / one, X[:, 1].std() / X[:, 0].std(), terms=30)


def test_weights_count_in_the_deviations():
    weights = RNG.integers(1, 4, size=30).astype(float)
    weighted = starting_points(Labelled(X, Y, 2, weights), shared(RBF([1.0, 1.0])), search(), [1.0])[1]
    one, two = weighted.kernels[0].k2.length_scale
    repeated = np.repeat(X, weights.astype(int), axis=0)
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
    clf = LGCPClassifier(RBF(1.0, (0.99, 1.01)), selection="pseudo_likelihood").fit(X, Y)
    assert clf.selection_path_["length_scale"].tolist() == [1.0]
    assert 0.99 <= clf.kernel_.k2.length_scale <= 1.01

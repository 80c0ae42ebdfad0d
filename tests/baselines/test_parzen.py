"""The Parzen classifier against a double loop, scikit-learn's density estimates, refits and LGCPClassifier."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.neighbors import KernelDensity

from coxfield import LGCPClassifier
from coxfield.baselines import ParzenClassifier
from coxfield.datasets import load_banana, load_pima, load_synth
from coxfield.kernels.radial import log_floor
from strategies import labelled_points
from tolerances import assert_close, assert_same_decisions, assert_same_error, rounding


def log_sums(X, y, queries, length_scale, leave_out=False):
    """Logarithms of the kernel sums by class, from distances without cancellation."""
    log_kernel = -cdist(queries, X, "sqeuclidean") / (2 * length_scale**2)
    if leave_out:
        np.fill_diagonal(log_kernel, -np.inf)
    return np.stack([logsumexp(log_kernel[:, y == label], axis=1) for label in np.unique(y)], axis=1)


def size_of_exponents(X, length_scale):
    """The scale of rounding in exponents if distances are computed by products: |x|^2 + |z|^2."""
    return 1 + np.square(X - X.mean(axis=0)).sum(axis=1).max() * 2 / length_scale**2


@settings(max_examples=40, deadline=None)
@given(labelled_points(), st.floats(0.3, 5.0))
def test_probabilities_are_shares_of_the_kernel_sums(points, length_scale):
    X, y = points
    clf = ParzenClassifier(length_scale).fit(X, y)
    query = X.mean(axis=0) + 0.1
    exponents = np.array([-np.sum((query - x) ** 2) / (2 * length_scale**2) for x in X])
    # The sums themselves may underflow; and next to the nearest, no value falls below a normal number.
    exponents = np.maximum(exponents, exponents.max() + log_floor(float))
    logs = np.full(y.max() + 1, -np.inf)
    for exponent, label in zip(exponents, y, strict=True):
        logs[label] = np.logaddexp(logs[label], exponent)
    size = size_of_exponents(np.vstack([X, query]), length_scale)
    shares = np.exp(logs - np.logaddexp.reduce(logs))
    assert_close(clf.predict_proba([query])[0], shares, terms=len(X), condition=size)


def test_probabilities_are_those_of_weighed_density_estimates():
    X, y, queries, _ = load_synth(return_X_y=True)
    clf = ParzenClassifier(0.2).fit(X, y)
    logs = [
        KernelDensity(bandwidth=0.2, rtol=1e-12).fit(X[y == label]).score_samples(queries) + np.log(prior)
        for label, prior in enumerate(clf.class_prior_)
    ]
    wanted = np.exp(logs) / np.exp(logs).sum(axis=0)
    # scikit-learn's own tolerance is larger than rounding.
    np.testing.assert_allclose(clf.predict_proba(queries), wanted.T, rtol=1e-7)


@pytest.mark.parametrize("load", [load_synth, load_pima])
def test_it_sees_the_errors_that_lgcp_sees_and_decides_alike(load):
    X, y, queries, _ = load(return_X_y=True)
    parzen, lgcp = ParzenClassifier().fit(X, y), LGCPClassifier(selection="loo_error").fit(X, y)
    # The first 24 length scales are the same up to rounding; those around the best may differ where errors tie.
    ours, theirs = parzen.selection_path_, lgcp.selection_path_
    apart = np.abs(np.log(ours["length_scale"][:, None] / theirs["length_scale"]))
    common, also = np.nonzero(apart <= rounding(1.0, terms=X.size))
    assert len(common) >= 24
    for k, j in zip(common, also, strict=True):
        length_scale = ours["length_scale"][k]
        scores = log_sums(X, y, X, length_scale, leave_out=True)
        for error in (ours["loo_error"][k], theirs["loo_error"][j]):
            margin = rounding(size_of_exponents(X, length_scale), terms=len(X))
            assert_same_error(error, scores.argmax(axis=1), y, scores, margin, at_least=0.99)
    length_scale = lgcp.kernel_.k2.length_scale
    same = LGCPClassifier(lgcp.kernel_.k2, selection=None).fit(X, y)
    same_parzen = ParzenClassifier(length_scale).fit(X, y)
    margin = rounding(size_of_exponents(np.vstack([X, queries]), length_scale), terms=len(X))
    scores = log_sums(X, y, queries, length_scale)
    assert_same_decisions(same.predict(queries), same_parzen.predict(queries), scores, margin, at_least=0.99)


def test_leave_one_out_is_that_of_refits():
    data = load_banana()
    X, y = data.X[:60], data.y[:60]
    clf = ParzenClassifier().fit(X, y)
    path = clf.selection_path_
    for k in (2, 8, 14):
        logs = np.array(
            [
                ParzenClassifier(path["length_scale"][k])
                .fit(np.delete(X, j, 0), np.delete(y, j))
                .predict_log_proba(X[j : j + 1])[0]
                for j in range(60)
            ]
        )
        size = size_of_exponents(X, path["length_scale"][k])
        assert_same_error(path["loo_error"][k], logs.argmax(axis=1), y, logs, rounding(size, terms=60))
        assert_close(path["loo_log_loss"][k], -logs[np.arange(60), y].mean(), terms=120, scale=size)
    best = path["loo_error"] <= path["loo_error"].min() + rounding(1.0, terms=60)
    assert path["loo_log_loss"][path["chosen"]].item() == path["loo_log_loss"][best].min()


def test_a_point_alone_in_its_class_does_not_spoil_the_choice():
    X, y, _, _ = load_synth(return_X_y=True)
    clf = ParzenClassifier().fit(np.vstack([X, [[5.0, 5.0]]]), [*y, 2])
    assert np.isfinite(clf.selection_path_["loo_log_loss"][clf.selection_path_["chosen"]])
    assert clf.predict([[5.0, 5.1]]).item() == 2


def test_far_from_all_data_the_nearest_point_decides():
    clf = ParzenClassifier(0.1).fit([[0.0], [1.0], [1.2]], ["a", "b", "b"])
    assert_close(clf.predict_proba([[-1e4]]), [[1, 0]])
    assert clf.predict([[1e4]]).tolist() == ["b"]


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="only one class: 'a'"):
        ParzenClassifier().fit([[0.0], [1.0]], ["a", "a"])
    with pytest.raises(ValueError, match=r"length_scale must be a positive finite number.*got 0"):
        ParzenClassifier(0).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match=r"all points are the same.*give length_scale"):
        ParzenClassifier().fit([[1.0], [1.0]], [0, 1])

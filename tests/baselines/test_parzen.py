"""The Parzen classifier against a double loop, scikit-learn's density estimates, refits and LGCPClassifier."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KernelDensity

from coxfield import LGCPClassifier
from coxfield.baselines import ParzenClassifier
from coxfield.datasets import load_banana, load_pima, load_synth
from strategies import labelled_points


@settings(max_examples=40, deadline=None)
@given(labelled_points(), st.floats(0.3, 5.0))
def test_probabilities_are_shares_of_the_kernel_sums(points, length_scale):
    X, y = points
    clf = ParzenClassifier(length_scale).fit(X, y)
    query = X.mean(axis=0) + 0.1
    sums = np.zeros(y.max() + 1)
    for x, label in zip(X, y, strict=True):
        sums[label] += np.exp(-np.sum((query - x) ** 2) / (2 * length_scale**2))
    np.testing.assert_allclose(clf.predict_proba([query])[0], sums / sums.sum(), rtol=1e-9, atol=1e-300)


def test_probabilities_are_those_of_weighed_density_estimates():
    X, y, queries, _ = load_synth(return_X_y=True)
    clf = ParzenClassifier(0.2).fit(X, y)
    logs = [
        KernelDensity(bandwidth=0.2, rtol=1e-12).fit(X[y == label]).score_samples(queries) + np.log(prior)
        for label, prior in enumerate(clf.class_prior_)
    ]
    wanted = np.exp(logs) / np.exp(logs).sum(axis=0)
    np.testing.assert_allclose(clf.predict_proba(queries), wanted.T, rtol=1e-7)


@pytest.mark.parametrize("load", [load_synth, load_pima])
def test_it_sees_the_errors_that_lgcp_sees_and_decides_alike(load):
    X, y, queries, _ = load(return_X_y=True)
    parzen, lgcp = ParzenClassifier().fit(X, y), LGCPClassifier().fit(X, y)
    # The first 24 length scales are the same; those around the best may differ where errors tie.
    common = np.isin(parzen.selection_path_["length_scale"], lgcp.selection_path_["length_scale"])
    also = np.isin(lgcp.selection_path_["length_scale"], parzen.selection_path_["length_scale"])
    assert common.sum() >= 24
    np.testing.assert_array_equal(parzen.selection_path_["loo_error"][common], lgcp.selection_path_["loo_error"][also])
    same = LGCPClassifier(lgcp.kernel_.k2, selection=None).fit(X, y)
    same_parzen = ParzenClassifier(lgcp.kernel_.k2.length_scale).fit(X, y)
    np.testing.assert_array_equal(same.predict(queries), same_parzen.predict(queries))


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
        assert path["loo_error"][k] == pytest.approx(np.mean(logs.argmax(axis=1) != y))
        assert path["loo_log_loss"][k] == pytest.approx(-logs[np.arange(60), y].mean())
    best = path["loo_error"] == path["loo_error"].min()
    assert path["loo_log_loss"][path["chosen"]].item() == path["loo_log_loss"][best].min()


def test_a_point_alone_in_its_class_does_not_spoil_the_choice():
    X, y, _, _ = load_synth(return_X_y=True)
    clf = ParzenClassifier().fit(np.vstack([X, [[5.0, 5.0]]]), [*y, 2])
    assert np.isfinite(clf.selection_path_["loo_log_loss"][clf.selection_path_["chosen"]])
    assert clf.predict([[5.0, 5.1]]).item() == 2


def test_far_from_all_data_the_nearest_point_decides():
    clf = ParzenClassifier(0.1).fit([[0.0], [1.0], [1.2]], ["a", "b", "b"])
    np.testing.assert_allclose(clf.predict_proba([[-1e4]]), [[1, 0]])
    assert clf.predict([[1e4]]).tolist() == ["b"]


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="only one class: 'a'"):
        ParzenClassifier().fit([[0.0], [1.0]], ["a", "a"])
    with pytest.raises(ValueError, match=r"length_scale must be a positive finite number.*got 0"):
        ParzenClassifier(0).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match=r"all points are the same.*give length_scale"):
        ParzenClassifier().fit([[1.0], [1.0]], [0, 1])

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coxfield import LGCPClassifier
from coxfield.datasets import load_pima, load_synth, make_circles
from reference import class_scores, refit_scores, softmax
from strategies import RECOGNISED, labelled_points
from tolerances import assert_close, assert_same_decisions, assert_same_error, rounding

# Largest (|x|^2 + |z|^2) / l^2 of these data. Rounding of distances computed by products is relative to it.
EXPONENTS = 1500


@settings(max_examples=40, deadline=None)
@given(data=labelled_points(), seed=st.integers(0, 2**20), weighted=st.booleans())
def test_scores_and_probabilities_are_the_papers_equations(data, seed, weighted):
    X, y = data
    rng = np.random.default_rng(seed)
    names = np.array(["ant", "bee", "cat", "dog"])[: y.max() + 1]
    kernels = [RECOGNISED[k] for k in rng.integers(len(RECOGNISED), size=len(names))]
    means = rng.normal(size=len(names))
    weights = rng.uniform(0.1, 3, size=len(y)) if weighted else None
    clf = LGCPClassifier(
        dict(zip(names.tolist(), kernels, strict=True)),
        mean=dict(zip(names.tolist(), means, strict=True)),
        selection=None,
    ).fit(X, names[y], sample_weight=weights)
    queries = rng.normal(size=(6, 3)) * X.std()
    expected = class_scores(X, y, kernels, means, queries, weights)
    np.testing.assert_allclose(clf.class_scores(queries), expected, rtol=1e-9)
    np.testing.assert_allclose(clf.predict_proba(queries), softmax(expected), rtol=1e-8, atol=1e-300)
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(queries)), clf.predict_proba(queries))
    # Rounding of distances computed by products is relative to |x|^2 + |z|^2. The shortest length scale is 0.3.
    exponents = 1 + 2 * np.square(np.vstack([X, queries])).sum(axis=1).max() / 0.3**2
    assert_same_decisions(
        clf.predict(queries), names[expected.argmax(axis=1)], expected, terms=len(y), condition=exponents, at_least=0.5
    )
    decision = clf.decision_function(queries)
    rounded = {"terms": len(y), "scale": np.abs(expected).max(), "condition": exponents}
    if len(names) == 2:
        assert_close(decision, expected[:, 1] - expected[:, 0], **rounded)
    else:
        assert_close(decision - decision[:, :1], expected - expected[:, :1], **rounded)


CASES = {
    "shared": ([RBF(0.8)] * 3, False),
    "a kernel per class": ([RBF(0.4), 2.0 * Matern(1.0), RBF(2.0) + RBF(0.1)], False),
    "ARD": ([RBF([0.3, 1.0, 2.0, 0.7])] * 3, False),
    "sparse ARD": ([RBF([0.3, 1.0, 2.0, 0.7])] * 3, True),
}


@pytest.mark.parametrize(("kernels", "as_sparse"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_equals_refits(kernels, as_sparse, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 4)) * rng.integers(0, 2, size=(24, 4))
    y = rng.permutation(np.arange(24) % 3)
    weights = rng.choice([0.4, 1.0, 2.0, 3.5], size=24) if weighted else None
    means = np.array([0.2, -0.1, 0.0])
    clf = LGCPClassifier(dict(enumerate(kernels)), mean=dict(enumerate(means)), selection=None)
    clf.fit(sparse.csr_array(X) if as_sparse else X, y, sample_weight=weights)
    expected = refit_scores(X, y, kernels, means, weights)
    np.testing.assert_allclose(clf.loo_class_scores(), expected, rtol=1e-12)
    np.testing.assert_allclose(clf.loo_predict_proba(), softmax(expected), rtol=1e-12)
    assert_same_decisions(clf.loo_predict(), expected.argmax(axis=1), expected, terms=24, condition=EXPONENTS)


def test_a_weighted_point_counts_as_that_many_points():
    rng = np.random.default_rng(1)
    X, y, weights = rng.normal(size=(40, 2)), np.arange(40) % 3, rng.integers(0, 4, size=40)
    weighted = LGCPClassifier(RBF(0.7), selection=None).fit(X, y, sample_weight=weights)
    repeated = LGCPClassifier(RBF(0.7), selection=None).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    queries = rng.normal(size=(20, 2))
    np.testing.assert_allclose(weighted.predict_proba(queries), repeated.predict_proba(queries), rtol=1e-9)
    assert len(weighted.X_fit_) == (weights > 0).sum()


def test_doubling_all_weights_keeps_the_chosen_length_scale():
    synth = load_synth()
    once = LGCPClassifier(selection="loo_error").fit(synth.X_train, synth.y_train)
    twice = LGCPClassifier(selection="loo_error").fit(synth.X_train, synth.y_train, sample_weight=np.full(250, 2.0))
    np.testing.assert_allclose(twice.selection_path_["loo_error"], once.selection_path_["loo_error"])
    assert_close(twice.kernel_.k2.length_scale, once.kernel_.k2.length_scale, terms=500)


@pytest.mark.parametrize(
    "container", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array, pd.DataFrame, pl.DataFrame]
)
def test_containers_give_the_same_answers(container):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(50, 3)) * rng.integers(0, 2, size=(50, 3)), np.arange(50) % 3
    X[:, 0] = rng.normal(size=50)  # no two rows are the same, so that no decision is a tie
    given_X = container(dict(zip("abc", X.T, strict=True))) if "DataFrame" in container.__name__ else container(X)
    plain, other = (LGCPClassifier(selection="loo_error").fit(points, y) for points in (X, given_X))
    np.testing.assert_allclose(other.predict_proba(given_X), plain.predict_proba(X), rtol=1e-7)
    if container in (pd.DataFrame, pl.DataFrame):
        assert other.feature_names_in_.tolist() == ["a", "b", "c"]
    else:
        # Training points and queries may have different containers.
        np.testing.assert_allclose(other.predict_proba(X), plain.predict_proba(given_X), rtol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(dtype):
    X, y = make_circles(3, 40, random_state=0)
    clf = LGCPClassifier().fit(X.astype(dtype), y)
    for values in (clf.predict_proba(X), clf.class_scores(X), clf.loo_class_scores(), clf.decision_function(X)):
        assert values.dtype == dtype
    assert clf._store.groups[0].parts[0].points.dtype == dtype
    assert_close(clf.predict_proba(X).sum(axis=1), 1, terms=3)


@pytest.mark.parametrize("labels", [["no", "yes"], [True, False], [-1, 1], [3, 7], [0.0, 1.0]], ids=str)
def test_labels_of_any_type_come_back(labels):
    rng = np.random.default_rng(3)
    y = np.array(labels)[np.arange(30) % 2]
    clf = LGCPClassifier().fit(rng.normal(size=(30, 2)) + (y == labels[1])[:, None] * 5, y)
    assert clf.predict([[5.0, 5.0]])[0] == labels[1]
    assert clf.classes_.tolist() == sorted(labels)


# Selection


def test_the_papers_rule_and_then_the_temperature():
    synth = load_synth()
    clf = LGCPClassifier(selection="loo_error").fit(synth.X_train, synth.y_train)
    path = clf.selection_path_
    tied = path["loo_error"] <= path["loo_error"].min() + rounding(1.0, terms=250)
    assert tied[path["chosen"]].all()
    scores = clf.loo_class_scores()
    for error in (clf.loo_error_, path["loo_error"][path["chosen"]].item()):
        assert_same_error(error, clf.loo_predict(), synth.y_train, scores, terms=250, condition=EXPONENTS)
    assert path["loo_log_loss"][path["chosen"]] == path["loo_log_loss"][tied].min()
    unit = LGCPClassifier(RBF(path["length_scale"][path["chosen"]].item()), selection=None)
    unit.fit(synth.X_train, synth.y_train)
    scores = unit.class_scores(synth.X_test)
    assert_same_decisions(clf.predict(synth.X_test), unit.predict(synth.X_test), scores, terms=250, condition=EXPONENTS)
    tempered, plain = (log_loss(synth.y_test, c.predict_proba(synth.X_test)) for c in (clf, unit))
    assert tempered < plain
    assert -np.log(clf.loo_predict_proba()[np.arange(250), synth.y_train]).mean() == pytest.approx(
        path["loo_log_loss"][path["chosen"]].item()
    )


def test_log_loss_selection_is_best_on_the_path_and_among_neighbours():
    synth = load_synth()
    clf = LGCPClassifier(selection="loo_log_loss").fit(synth.X_train, synth.y_train)
    path = clf.selection_path_
    assert path["loo_log_loss"][path["chosen"]] == path["loo_log_loss"].min()

    def loo_loss(kernel):
        fitted = LGCPClassifier(kernel, selection=None).fit(synth.X_train, synth.y_train)
        return -np.log(fitted.loo_predict_proba()[np.arange(250), synth.y_train]).mean()

    best = loo_loss(clf.kernel_)
    assert best == pytest.approx(path["loo_log_loss"].min())
    for factor in (0.9, 1.1):
        assert loo_loss(ConstantKernel(factor) * clf.kernel_) > best


def test_a_given_kernel_keeps_what_is_not_selected():
    synth = load_synth()
    clf = LGCPClassifier(0.25 * RBF([1.0, 2.0]), selection="loo_error").fit(synth.X_train, synth.y_train)
    assert clf.kernel_.k1.constant_value == 0.25
    np.testing.assert_allclose(clf.kernel_.k2.length_scale[1], 2 * clf.kernel_.k2.length_scale[0])
    fixed = LGCPClassifier(ConstantKernel(0.3, "fixed") * RBF(), selection="loo_log_loss").fit(
        synth.X_train, synth.y_train
    )
    assert fixed.kernel_.k1.constant_value == 0.3
    as_given = LGCPClassifier(0.5 * RBF(0.3), selection=None).fit(synth.X_train, synth.y_train)
    assert as_given.kernel_ == 0.5 * RBF(0.3)
    assert not hasattr(as_given, "selection_path_")


def test_a_second_fit_forgets_the_first():
    X, y = make_circles(2, 20, random_state=0)
    clf = LGCPClassifier(selection="loo_error").fit(X, y)
    assert hasattr(clf, "selection_path_")
    clf.set_params(selection="mixture").fit(X, y)
    assert not hasattr(clf, "selection_path_")
    assert hasattr(clf, "mixture_")
    clf.set_params(kernel=RBF(1.0), selection=None).fit(X, y)
    assert not hasattr(clf, "mixture_")


def test_kernels_of_several_classes_are_scaled_together():
    X, y = make_circles(2, 30, random_state=0)
    clf = LGCPClassifier({0: RBF(1.0), 1: 2.0 * Matern(3.0)}, selection="loo_log_loss").fit(X, y)
    assert clf.kernel_[1].k2.length_scale == pytest.approx(3 * clf.kernel_[0].k2.length_scale)
    assert clf.kernel_[1].k1.constant_value == pytest.approx(2 * clf.kernel_[0].k1.constant_value)


def test_unequal_means_are_judged_at_the_variance_in_use():
    synth = load_synth()
    clf = LGCPClassifier(selection="loo_error", mean={1: 0.7}).fit(synth.X_train, synth.y_train)
    fresh = LGCPClassifier(clf.kernel_, mean={1: 0.7}, selection=None).fit(synth.X_train, synth.y_train)
    scores = fresh.loo_class_scores()
    assert_same_error(clf.loo_error_, fresh.loo_predict(), synth.y_train, scores, terms=250, condition=EXPONENTS)


def test_the_leave_one_out_error_of_a_mixture_is_of_weights_that_were_chosen_without_the_row():
    """On labels without meaning, weights that were chosen by the same rows would promise too much."""
    rng = np.random.default_rng(0)
    labels = [rng.permutation(np.arange(60) % 2) for _ in range(15)] + [rng.integers(2, size=60) for _ in range(15)]
    fits = [LGCPClassifier().fit(rng.normal(size=(60, 5)), y) for y in labels]
    figures = np.array([(clf.loo_error_, clf.loo_log_loss_) for clf in fits])
    spread = figures.std(axis=0, ddof=1) / np.sqrt(len(fits))
    assert abs(figures[:, 0].mean() - 0.5) < 3 * spread[0]
    assert figures[:, 1].mean() > np.log(2) - 2 * spread[1]  # no probabilities do better
    hopeful = [np.mean(clf.loo_predict() != y) for clf, y in zip(fits, labels, strict=True)]
    assert np.mean(hopeful) < 0.5 - 3 * spread[0]  # which the test could not show if it were not so


@pytest.mark.parametrize("selection", ["loo_error", "loo_log_loss", "pseudo_likelihood"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_leave_one_out_error_is_that_of_the_fitted_model(selection, weighted):
    synth = load_synth()
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], size=250) if weighted else None
    clf = LGCPClassifier(selection=selection).fit(synth.X_train, synth.y_train, weights)
    scores = clf.loo_class_scores()
    how = {"weights": weights, "terms": 250, "condition": EXPONENTS}
    assert_same_error(clf.loo_error_, clf.loo_predict(), synth.y_train, scores, **how)


def test_without_selection_no_leave_one_out_error_is_computed():
    clf = LGCPClassifier().fit([[0.0], [1.0], [3.0]], [0, 0, 1])
    assert hasattr(clf, "loo_error_")
    assert not hasattr(clf.set_params(kernel=RBF(1.0), selection=None).fit([[0.0], [1.0]], [0, 1]), "loo_error_")


def test_labels_and_probabilities_in_one_pass():
    synth = load_synth()
    clf = LGCPClassifier().fit(synth.X_train, synth.y_train)
    labels, probabilities = clf.predict_with_proba(synth.X_test)
    np.testing.assert_array_equal(labels, clf.predict(synth.X_test))
    np.testing.assert_array_equal(probabilities, clf.predict_proba(synth.X_test))


def test_chosen_length_scales_may_be_given():
    X, y = make_circles(2, 30, random_state=0)
    clf = LGCPClassifier(selection="loo_error", length_scales=[0.5, 2.0, 1.0]).fit(X, y)
    assert clf.selection_path_["length_scale"].tolist() == [2.0, 1.0, 0.5]


# Limits


def test_far_from_all_data_probabilities_tend_to_the_prior():
    X, y = make_circles(3, 30, random_state=0)
    kernels = {0: RBF(1.0), 1: 4.0 * RBF(1.0), 2: Matern(1.0)}
    clf = LGCPClassifier(kernels, mean={0: 0.5}, selection=None).fit(X, y)
    expected = softmax(np.array([[0.5 + 0.5, 2.0, 0.5]]))
    for distance in (1e6, 1e100, 1e160):
        far = clf.predict_proba([[distance, -distance]])
        np.testing.assert_allclose(far, expected, rtol=1e-12)


def test_a_far_point_of_a_shared_kernel_is_decided_by_its_nearest_neighbour():
    X, y = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array(["left", "right"])
    clf = LGCPClassifier(RBF(1.0), selection=None).fit(X, y)
    assert clf.predict([[1e6, 0.0], [-1e6, 0.0]]).tolist() == ["right", "left"]
    assert_close(clf.predict_proba([[1e6, 0.0]]), [[0.5, 0.5]])


def test_duplicates_of_two_classes_are_a_tie_and_not_an_error():
    X, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
    clf = LGCPClassifier(RBF(1.0), selection=None).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba([[0.0, 0.0]]), [[0.5, 0.5]])


# scikit-learn manners


def test_pickle_and_clone_and_n_jobs_change_nothing():
    pima = load_pima()
    clf = LGCPClassifier(selection="loo_log_loss", n_jobs=2).fit(pima.X_train, pima.y_train)
    expected = clf.predict_proba(pima.X_test)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clf)).predict_proba(pima.X_test), expected)
    again = clone(clf).set_params(n_jobs=1).fit(pima.X_train, pima.y_train)
    np.testing.assert_allclose(again.predict_proba(pima.X_test), expected, rtol=1e-9)


def test_works_in_pipelines_cross_validation_and_routing():
    pima = load_pima()
    pipeline = make_pipeline(StandardScaler(), LGCPClassifier())
    assert cross_val_score(pipeline, pima.X_train, pima.y_train, cv=3).mean() > 0.65
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), LGCPClassifier().set_fit_request(sample_weight=True)
        )
        routed.fit(pima.X_train, pima.y_train, sample_weight=np.ones(200))


def test_html_repr_names_the_estimator():
    assert "LGCPClassifier" in LGCPClassifier()._repr_html_()


def test_verbose_says_how_long_it_took(capsys):
    X, y = make_circles(2, 20, random_state=0)
    LGCPClassifier(selection="loo_error", verbose=1).fit(X, y)
    assert "leave-one-out, 24 length scales: " in capsys.readouterr().err
    LGCPClassifier().fit(X, y)
    assert capsys.readouterr().err == ""


# Bad input


@pytest.mark.parametrize(
    ("params", "y", "weights", "words"),
    [
        (
            {"selection": "loo"},
            None,
            None,
            "selection must be one of 'mixture', 'loo_error', 'loo_log_loss', 'pseudo_likelihood', None; got 'loo'",
        ),
        ({}, ["a"] * 6, None, "at least two classes.*'a'"),
        ({"kernel": RBF(0.0)}, None, None, "length_scale of the covariance must be positive and finite, got 0.0"),
        ({"kernel": RBF([1.0, 2.0, 3.0])}, None, None, "3 entries but the data have 2 features"),
        ({"kernel": {"a": RBF()}}, None, None, "kernel has no entry for the class 'b'"),
        ({"kernel": {"a": RBF(), "b": RBF(), "c": RBF()}}, None, None, "kernel names the class 'c'"),
        ({"mean": {"z": 1.0}}, None, None, "mean names the class 'z'"),
        ({"mean": np.inf}, None, None, "mean must be finite, got inf"),
        ({"length_scales": []}, None, None, "length_scales must be a list of positive finite numbers"),
        ({}, None, [1, 1, -1, 1, 1, 1], "sample_weight must not be negative, got -1"),
        ({}, None, [0] * 6, "sample_weight is zero everywhere"),
        ({}, None, [1, 2], "inconsistent numbers of samples"),
        ({}, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], None, "Unknown label type"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_input_gets_one_clear_sentence(params, y, weights, words):
    X = np.random.default_rng(0).normal(size=(6, 2))
    with pytest.raises(ValueError, match=words):
        LGCPClassifier(**params).fit(X, y or ["a", "b"] * 3, sample_weight=weights)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[np.nan, 1.0]] * 4, "all points are the same"),  # an empty column and a constant one
        ([[np.inf, 1.0]] * 4, "infinity"),
        (np.empty((0, 2)), "0 sample"),
        ([1.0, 2.0, 3.0, 4.0], "Expected 2D array"),
        ([[1.0, 1.0]] * 4, "all points are the same"),
    ],
)
def test_bad_points_get_one_clear_sentence(X, words):
    with pytest.raises(ValueError, match=words):
        LGCPClassifier().fit(X, [0, 1, 0, 1][: len(X)])


def test_predicting_before_fitting_is_refused():
    for ask in (lambda c: c.predict([[0.0]]), lambda c: c.loo_class_scores()):
        with pytest.raises(NotFittedError):
            ask(LGCPClassifier())


def test_given_arrays_are_not_changed():
    X, y = make_circles(2, 20, random_state=0)
    weights = np.linspace(0, 2, len(y))
    before = X.copy(), y.copy(), weights.copy()
    LGCPClassifier().fit(X, y, sample_weight=weights).predict_proba(X)
    for now, then in zip((X, y, weights), before, strict=True):
        np.testing.assert_array_equal(now, then)

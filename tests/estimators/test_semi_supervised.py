import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, RationalQuadratic

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.datasets import make_circles
from coxfield.estimators.trivial import ChainsDisagreeWarning, TrivialLabellingWarning
from coxfield.field import LabelField, map_labels
from tolerances import assert_close, assert_same_decisions, assert_same_minimum

# Largest (|x|^2 + |z|^2) / l^2 of these data. Rounding of distances computed by products is relative to it.
EXPONENTS = 160
KERNEL = 0.25 * RBF(1.0)


def rings(n_rings=2, every=15):
    X, truth = make_circles(n_rings, random_state=3)
    return X, truth, np.where(np.arange(len(truth)) % every == 0, truth, -1)


def test_transduction_is_the_map_of_the_field():
    X, _, y = rings()
    clf = SLGCPClassifier(KERNEL, mean={1: 0.1}, selection=None).fit(X, y)
    field = LabelField.from_points(X, KERNEL, y, mean=[0.0, 0.1])
    result = map_labels(field)
    assert_same_minimum(field.energy, clf.transduction_[field.nodes], result.labels, terms=len(X) ** 2)
    np.testing.assert_array_equal(clf.transduction_[y >= 0], y[y >= 0])
    assert clf.energy_ == pytest.approx(field.energy(clf.transduction_[field.nodes]))
    assert clf.lower_bound_ <= clf.energy_
    assert clf.gap_ == pytest.approx(clf.energy_ - clf.lower_bound_, abs=1e-6)
    assert clf.certified_.all()


def test_new_points_are_classified_with_the_transduction_as_data():
    X, _, y = rings()
    clf = SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    supervised = LGCPClassifier(KERNEL, selection=None).fit(X, clf.transduction_)
    new = np.random.default_rng(0).uniform(-7, 7, size=(50, 2))
    scores = supervised.class_scores(new)
    assert_same_decisions(clf.predict(new), supervised.predict(new), scores, terms=len(X), condition=EXPONENTS)
    rounded = {"terms": len(X), "scale": np.abs(scores).max(), "condition": EXPONENTS}
    for method in ("predict_proba", "predict_log_proba", "decision_function", "class_scores"):
        assert_close(getattr(clf, method)(new), getattr(supervised, method)(new), **rounded)


def test_unlabelled_points_help():
    X, truth, y = rings(every=30)
    clf = SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    supervised = LGCPClassifier().fit(X[y >= 0], y[y >= 0])
    wrong, wrong_supervised = (np.mean(labels != truth) for labels in (clf.transduction_, supervised.predict(X)))
    assert wrong < wrong_supervised / 3


def test_fully_labelled_input_is_the_supervised_classifier():
    X, truth, _ = rings()
    new = np.random.default_rng(0).uniform(-7, 7, size=(50, 2))
    for params in ({}, {"kernel": KERNEL, "selection": None}):
        ours = SLGCPClassifier(inference="map", **params).fit(X, truth)
        supervised = LGCPClassifier(**{"selection": "loo_error"} | params).fit(X, truth)
        assert_close(ours.predict_proba(new), supervised.predict_proba(new), terms=len(X), condition=EXPONENTS)
        np.testing.assert_array_equal(ours.transduction_, truth)
        assert ours.certified_.all()
        assert ours.gap_ == 0


def test_three_rings_are_recovered_by_expansion():
    X, truth, y = rings(3)
    clf = SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    assert np.mean(clf.transduction_ != truth) < 0.02
    assert clf.lower_bound_ <= clf.energy_
    field = LabelField.from_points(X, KERNEL, y)
    other = field.energy(truth[field.nodes])  # of the same labels, maybe, but added up in another order
    assert clf.energy_ <= other + len(X) * np.finfo(float).eps * abs(other)


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["in", "out"], ""),
        (["in", "out"], None),
        ([1.0, 2.0], np.nan),
        ([True, False], None),
        ([0, 1], -1),
        ([-1, 1], 0),
    ],
)
def test_labels_and_blanks_of_many_kinds(names, missing):
    X, _, y = rings()
    spoken = np.array([*names, missing], dtype=object)[y]
    expected = SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    field = LabelField.from_points(X, KERNEL, y)
    clf = SLGCPClassifier(KERNEL, selection=None, missing_label=missing)
    for container in (spoken, spoken.tolist(), pd.Series(spoken)):
        clf.fit(X, container)
        numbers = (clf.transduction_ == names[1]).astype(int)[field.nodes]
        assert_same_minimum(field.energy, numbers, expected.transduction_[field.nodes], terms=len(X) ** 2)
        np.testing.assert_array_equal(clf.transduction_[y >= 0], np.array(names)[y[y >= 0]])
        assert clf.classes_.tolist() == sorted(names)


def test_data_frames_and_sparse_rows_give_the_same_labels():
    X, _, y = rings()
    expected = SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    for container in (pd.DataFrame(X, columns=["a", "b"]), sparse.csr_array(X)):
        clf = SLGCPClassifier(KERNEL, selection=None).fit(container, y)
        field = LabelField.from_points(X, KERNEL, y)
        found, wanted = clf.transduction_[field.nodes], expected.transduction_[field.nodes]
        assert_same_minimum(field.energy, found, wanted, terms=len(X) ** 2)
        np.testing.assert_allclose(clf.predict_proba(container), expected.predict_proba(X), rtol=1e-7)


def test_selection_keeps_what_was_tried_and_the_temperature_changes_no_label():
    X, truth, y = rings()
    clf = SLGCPClassifier(mean=0.3, inference="map").fit(X, y)
    path = clf.selection_path_
    assert path["chosen"].sum() == 1
    assert_close(clf.kernel_.k2.length_scale, path["length_scale"][path["chosen"]].item())
    tempered = LabelField.from_points(X, clf.kernel_, y, mean=0.3)
    assert clf.energy_ == pytest.approx(tempered.energy(clf.transduction_[y < 0]))
    assert clf.gap_ == pytest.approx(clf.energy_ - clf.lower_bound_, abs=1e-6)
    unit = SLGCPClassifier(clf.kernel_.k2, selection=None).fit(X, y)
    found, wanted = clf.transduction_[y < 0], unit.transduction_[y < 0]
    assert_same_minimum(tempered.energy, found, wanted, terms=len(X) ** 2)
    assert np.mean(clf.transduction_ != truth) < 0.05
    probability = clf.predict_proba(X)[y >= 0, y[y >= 0]]
    assert -np.log(probability).mean() < np.log(2)


def test_candidates_and_folds_may_be_given(capsys):
    X, _, y = rings()
    clf = SLGCPClassifier(Matern(2.0, nu=0.5), length_scales=[1.0, 0.25], n_folds=3, verbose=1).fit(X, y)
    assert clf.selection_path_["length_scale"].tolist() == [2.0, 0.5]
    assert "cross validation, 2 length scales" in capsys.readouterr().err
    assert clf.kernel_.nu == 0.5


def test_a_labelling_of_one_class_causes_a_warning_with_advice():
    X, _, y = rings(every=60)
    with pytest.warns(
        TrivialLabellingWarning, match="all .* unlabelled points to class .*shorter length scale"
    ) as caught:
        clf = SLGCPClassifier(RBF(30.0), selection=None).fit(X, y)
    assert caught[0].filename == __file__
    assert len(np.unique(clf.transduction_[y < 0])) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SLGCPClassifier(KERNEL, selection=None).fit(*rings()[::2])


def test_duplicates_follow_their_labelled_twin_and_far_points_the_mean():
    X = np.array([[0.0], [0.0], [1.0], [1.0], [1e6]])
    y = np.array([0, -1, 1, -1, -1])
    clf = SLGCPClassifier(RBF(0.1), mean={1: 0.3}, selection=None).fit(X, y)
    assert clf.transduction_.tolist() == [0, 0, 1, 1, 1]
    assert clf.certified_.all()


def test_pickle_and_clone_keep_the_model():
    X, _, y = rings()
    clf = SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert clone(clf).missing_label == -1


@pytest.mark.parametrize(
    ("params", "y", "words"),
    [
        ({}, [-1] * 6, "no point is labelled: every entry of y is missing_label=-1"),
        ({}, [1, -1, -1, 1, -1, -1], "at least two classes, got only one class: .*1"),
        ({"selection": "loo_error"}, None, "selection must be one of 'cv_error', None; got 'loo_error'"),
        ({"n_folds": 1}, None, "n_folds must be an integer of at least 2, got 1"),
        ({"inference": "mode"}, None, "inference must be one of 'auto', 'mixture', 'map', .*; got 'mode'"),
        ({"inference": "marginals", "n_draws": 15}, None, "n_draws must be None or an integer of at least 16, got 15"),
        ({"inference": "perturb_and_map", "n_draws": 2.5}, None, "integer of at least 4, got 2.5"),
        ({"kernel": DotProduct(), "selection": None}, None, "negative"),
        ({"kernel": RBF(0.0)}, None, "length_scale of the covariance must be positive and finite, got 0.0"),
        ({"mean": {7: 1.0}}, None, "mean names the class 7"),
        ({}, [0, 1, np.nan, -1, -1, -1], "y holds NaN in row 2, but missing_label is -1"),
        ({}, [0, 1, -1], "inconsistent numbers of samples"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_input_gets_one_clear_sentence(params, y, words):
    X = np.random.default_rng(0).normal(size=(6, 2))
    with pytest.raises(ValueError, match=words):
        SLGCPClassifier(**params).fit(X, [0, 1, -1, -1, 0, 1] if y is None else y)


def test_predicting_before_fitting_is_refused():
    with pytest.raises(NotFittedError):
        SLGCPClassifier().predict([[0.0]])


def test_given_arrays_are_not_changed():
    X, _, y = rings()
    before = X.copy(), y.copy()
    SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


SAMPLED = ("marginals", "perturb_and_map")
MAP_ONLY = ("certified_", "energy_", "lower_bound_", "gap_", "result_")


def clouds():
    """Two clouds that touch, two labels in each."""
    X, truth = make_blobs(200, centers=[[0, 0], [4, 0]], random_state=0)
    known = np.concatenate([np.flatnonzero(truth == label)[:2] for label in (0, 1)])
    y = np.full(len(truth), -1)
    y[known] = truth[known]
    return X, truth, y


def tiny(n_classes):
    X = np.random.default_rng(n_classes).normal(size=(10, 2))
    y = np.full(10, -1)
    y[:n_classes] = np.arange(n_classes)
    return X, y


@pytest.mark.filterwarnings("ignore::coxfield.estimators.trivial.TrivialLabellingWarning")
@pytest.mark.parametrize("kernel", [1.5 * RBF(1.0), {0: RBF(1.0), 1: 0.8 * Matern(2.0), 2: 0.5 * RBF(0.5)}])
def test_label_distributions_are_marginals_of_the_field(kernel):
    X, y = tiny(3)
    clf = SLGCPClassifier(
        kernel, mean={1: 0.2}, selection=None, inference="marginals", n_draws=2000, random_state=0
    ).fit(X, y)
    field = LabelField.from_points(X, kernel, y, mean=[0.0, 0.2, 0.0])
    labels, energies = field.enumerate()
    exact = np.stack([softmax(-energies) @ (labels == c) for c in range(3)], axis=1)
    off = clf.label_distributions_[field.nodes] - exact
    assert (np.abs(off) < 4.5 * clf.marginal_errors_[field.nodes]).all()
    assert (clf.marginal_errors_[field.nodes] < 0.05).all()


def test_perturb_and_map_is_exact_for_points_far_from_each_other():
    X = np.array([[0.0], [100.0], [0.5], [100.3]])
    clf = SLGCPClassifier(
        2.0 * RBF(0.5), selection=None, inference="perturb_and_map", n_draws=2000, random_state=0
    ).fit(X, [0, 1, -1, -1])
    exact = softmax(2 * np.exp([[-0.5, -np.inf], [-np.inf, -0.18]]), axis=1)
    off = clf.label_distributions_[2:] - exact
    assert (np.abs(off) < 4 * clf.marginal_errors_[2:]).all()


@pytest.mark.filterwarnings("ignore::coxfield.estimators.trivial.TrivialLabellingWarning")
@pytest.mark.parametrize("inference", ["map", *SAMPLED])
def test_labels_are_the_most_probable_ones_and_given_labels_are_certain(inference):
    X, _, y = clouds()
    n_draws = 20 if inference == "perturb_and_map" else 400
    clf = SLGCPClassifier(0.1 * RBF(0.7), selection=None, inference=inference, n_draws=n_draws, random_state=0)
    clf.fit(X, y)
    np.testing.assert_allclose(clf.label_distributions_.sum(axis=1), 1)
    np.testing.assert_array_equal(clf.label_distributions_[y >= 0], np.eye(2)[y[y >= 0]])
    np.testing.assert_array_equal(clf.transduction_, clf.label_distributions_.argmax(axis=1))
    if inference == "map":
        assert set(np.unique(clf.label_distributions_)) == {0, 1}
        return
    assert (clf.marginal_errors_[y >= 0] == 0).all()


def test_marginals_help_where_one_class_takes_all():
    X, truth, y = clouds()
    kernel = 0.1 * RBF(0.7)
    with pytest.warns(TrivialLabellingWarning):
        most_probable = SLGCPClassifier(kernel, selection=None).fit(X, y)
    marginals = SLGCPClassifier(kernel, selection=None, inference="marginals", random_state=0).fit(X, y)
    assert np.mean(most_probable.transduction_ != truth) > 0.4
    assert np.mean(marginals.transduction_ != truth) < 0.1


@pytest.mark.filterwarnings("ignore::coxfield.estimators.trivial.TrivialLabellingWarning")
def test_attributes_of_one_inference_are_absent_with_the_others():
    X, y = tiny(2)
    clf = SLGCPClassifier(0.5 * RBF(1.0), selection=None, n_draws=400, random_state=0)
    for inference in ("map", "marginals", "perturb_and_map", "map"):
        clf.set_params(inference=inference).fit(X, y)
        for name in MAP_ONLY:
            assert hasattr(clf, name) == (inference == "map")
        assert hasattr(clf, "marginal_errors_") == (inference != "map")
        assert hasattr(clf, "r_hat_") == (inference == "marginals")


@pytest.mark.filterwarnings("ignore::coxfield.estimators.trivial.TrivialLabellingWarning")
@pytest.mark.parametrize("inference", SAMPLED)
def test_the_seed_makes_draws_repeatable(inference):
    X, y = tiny(2)
    clf = SLGCPClassifier(0.5 * RBF(1.0), selection=None, inference=inference, n_draws=400)
    one, two, other = (clone(clf).set_params(random_state=seed).fit(X, y).label_distributions_ for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


@pytest.mark.filterwarnings("ignore::coxfield.estimators.trivial.TrivialLabellingWarning")
def test_new_points_are_classified_with_expected_class_sums():
    X, y = tiny(3)
    kernel = {0: RBF(1.0), 1: 0.8 * Matern(2.0), 2: 0.5 * RBF(0.5)}
    clf = SLGCPClassifier(kernel, mean={2: 0.4}, selection=None, inference="marginals", random_state=0).fit(X, y)
    new = np.random.default_rng(1).normal(size=(6, 2))
    sums = np.stack([kernel[c](new, X) @ clf.label_distributions_[:, c] for c in range(3)], axis=1)
    expected = sums + np.array([0.5, 0.4, 0.25 + 0.4])
    np.testing.assert_allclose(clf.class_scores(new), expected, rtol=1e-6)
    np.testing.assert_allclose(clf.predict_proba(new), softmax(expected, axis=1), rtol=1e-6)


def test_length_scale_and_temperature_are_chosen_together(capsys):
    X, truth, y = clouds()
    clf = SLGCPClassifier(inference="marginals", length_scales=[0.7, 0.4], n_draws=400, random_state=0, verbose=1).fit(
        X, y
    )
    path = clf.selection_path_
    assert set(path) == {"length_scale", "variance", "cv_log_loss", "cv_error", "trivial", "chosen"}
    assert path["cv_log_loss"][path["chosen"]] == path["cv_log_loss"][~path["trivial"]].min()
    assert_close(clf.kernel_.k1.constant_value, path["variance"][path["chosen"]].item())
    assert_close(clf.kernel_.k2.length_scale, path["length_scale"][path["chosen"]].item())
    assert np.mean(clf.transduction_ != truth) < 0.25
    assert "cross validation of marginals, 2 length scales" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::coxfield.estimators.trivial.TrivialLabellingWarning")
def test_kernels_per_class_are_scaled_together():
    X, _, y = clouds()
    kernel = {0: RBF(0.5), 1: 2.0 * RBF(1.0)}
    clf = SLGCPClassifier(kernel, inference="marginals", length_scales=[0.6], n_draws=400, random_state=0).fit(X, y)
    (factor,) = clf.selection_path_["variance"][clf.selection_path_["chosen"]]
    assert clf.kernel_[0].k1.constant_value == pytest.approx(factor)
    assert clf.kernel_[1].k1.constant_value == pytest.approx(2 * factor)
    assert [clf.kernel_[c].k2.length_scale for c in (0, 1)] == pytest.approx([0.3, 0.6])


def test_chains_that_disagree_cause_a_warning():
    X, truth, _ = rings()
    y = np.full(len(truth), -1)
    known = [np.flatnonzero(truth == label)[0] for label in (0, 1)]
    y[known] = truth[known]
    clf = SLGCPClassifier(3.0 * RBF(1.0), selection=None, inference="marginals", n_draws=400, random_state=0)
    with pytest.warns(ChainsDisagreeWarning, match="chains disagree on the labels of .* larger n_draws") as caught:
        clf.fit(X, y)
    assert caught[0].filename == __file__
    assert clf.r_hat_.max() > 1.1


@pytest.mark.parametrize("inference", SAMPLED)
def test_nothing_is_drawn_when_all_labels_are_given(inference):
    X, truth, _ = rings()
    clf = SLGCPClassifier(KERNEL, selection=None, inference=inference).fit(X, truth)
    np.testing.assert_array_equal(clf.label_distributions_, np.eye(2)[truth])
    assert (clf.marginal_errors_ == 0).all()
    assert not hasattr(clf, "certified_")


def test_marginals_that_give_all_to_one_class_cause_a_warning():
    X, _, y = rings(every=60)
    clf = SLGCPClassifier(RBF(30.0), selection=None, inference="marginals", n_draws=400, random_state=0)
    with pytest.warns(TrivialLabellingWarning, match="the label distributions give all .* unlabelled points to class"):
        clf.fit(X, y)


@pytest.mark.parametrize("tolerance", ["wrong", -1.0, np.nan, np.inf, None])
def test_a_tolerance_that_is_no_number_is_refused(tolerance):
    with pytest.raises(ValueError, match="tolerance must be a finite number of at least 0, got"):
        SLGCPClassifier(RBF(1.0), tolerance=tolerance).fit([[0.0], [1.0], [2.0]], [0, -1, 1])


def test_nothing_to_label_under_kernels_of_different_kinds():
    # One variance stands for all points of a stationary covariance; the product of two has one for each of no points.
    kernels = {0: RationalQuadratic(2.0) * RationalQuadratic(3.0), 1: RBF(2.0)}
    fitted = SLGCPClassifier(kernels, selection=None).fit([[0.0], [1.0]], [0, 1])
    supervised = LGCPClassifier(kernels, selection=None).fit([[0.0], [1.0]], [0, 1])
    np.testing.assert_allclose(fitted.predict_proba([[0.3]]), supervised.predict_proba([[0.3]]), rtol=1e-12)

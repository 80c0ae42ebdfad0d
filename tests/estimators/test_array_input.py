"""`LGCPClassifier` on arrays of other libraries: the answers of NumPy, in the library and on the device."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

from backends import BANK
from coxfield import LGCPClassifier, PermanentalClassifier, SLGCPClassifier
from coxfield.datasets import load_synth
from coxfield.io.model_file import load, save
from coxfield.kernels.namespace import Library, to_numpy
from tolerances import assert_close, assert_same_decisions

X, Y, NEW, _ = (np.asarray(part) for part in load_synth(return_X_y=True))
X, Y, NEW = X[::2], Y[::2], NEW[::10]
CASES = {
    "paper": LGCPClassifier(selection="loo_error"),
    "log loss": LGCPClassifier(selection="loo_log_loss"),
    "length scales": LGCPClassifier(selection="loo_error", length_scales=[0.1, 0.2, 0.4]),
    "part": LGCPClassifier(selection="loo_error", selection_part=0.7, random_state=0),
    "kernel": LGCPClassifier(0.5 * RBF(0.2), selection=None, mean={1: 0.3}),
    "per feature": LGCPClassifier(Matern([0.2, 0.4], nu=2.5), selection=None),
    "rational": LGCPClassifier(RationalQuadratic(0.3, alpha=0.5), selection="loo_log_loss"),
    "per class": LGCPClassifier({0: 2.0 * RBF(0.2), 1: Matern(0.3, nu=1.5)}, selection="loo_log_loss"),
}
METHODS = ("class_scores", "decision_function", "predict_log_proba", "predict_proba")
CONDITION = 500.0  # squared distances up to 100, in the length scales that are chosen, come from |x|^2 + |z|^2
SENTENCE = "must use the same namespace and the same device as those passed to fit"

pytestmark = pytest.mark.usefixtures("dispatch")


def assert_same_answers(found, expected, new, given, library):
    """All methods answer in the library, and as NumPy does up to rounding."""
    for method in METHODS:
        actual, desired = getattr(found, method)(given(new)), getattr(expected, method)(new)
        assert Library.of(actual) == library
        assert to_numpy(actual).dtype == desired.dtype
        size = 1 + np.abs(expected.class_scores(new)).max()
        assert_close(to_numpy(actual), desired, terms=len(X), scale=size, condition=CONDITION)
    scores = expected.class_scores(new)
    labels = found.predict(given(new))
    assert_same_decisions(to_numpy(labels), expected.predict(new), scores, terms=len(X), condition=CONDITION)
    both = found.predict_with_proba(given(new))
    np.testing.assert_array_equal(to_numpy(both[0]), to_numpy(labels))
    np.testing.assert_array_equal(to_numpy(both[1]), to_numpy(found.predict_proba(given(new))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_fits_and_answers_are_those_of_numpy(name, dtype, given, library):
    points, new = X.astype(dtype), NEW.astype(dtype)
    expected = clone(CASES[name]).fit(points, Y)
    found = clone(CASES[name]).fit(given(points), given(Y))
    assert_same_answers(found, expected, new, given, library)
    for method in ("loo_class_scores", "loo_predict_proba"):
        actual, desired = getattr(found, method)(), getattr(expected, method)()
        assert Library.of(actual) == library
        size = 1 + np.abs(expected.loo_class_scores()).max()
        assert_close(to_numpy(actual), desired, terms=len(X), scale=size, condition=CONDITION)
    scores = expected.loo_class_scores()
    assert_same_decisions(
        to_numpy(found.loo_predict()), expected.loo_predict(), scores, terms=len(X), condition=CONDITION
    )
    for attribute in ("classes_", "mean_", "X_fit_", "y_fit_"):
        assert Library.of(getattr(found, attribute)) == library
        np.testing.assert_array_equal(to_numpy(getattr(found, attribute)), getattr(expected, attribute))


@pytest.mark.parametrize("name", ["paper", "log loss", "rational", "per class"])
def test_selections_are_those_of_numpy(name, given):
    expected = clone(CASES[name]).fit(X, Y).selection_path_
    found = clone(CASES[name]).fit(given(X), given(Y)).selection_path_
    assert (found["chosen"] == expected["chosen"]).all()
    np.testing.assert_allclose(found["length_scale"], expected["length_scale"], rtol=1e-12)
    np.testing.assert_allclose(found["loo_error"], expected["loo_error"], atol=1e-12)
    # The variance is the zero of a slope, found to 1e-4 in its logarithm.
    np.testing.assert_allclose(np.log(found["variance"]), np.log(expected["variance"]), atol=2e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [RBF(1e-4), Matern(1e-6, nu=0.5)], ids=str)
def test_the_nearest_neighbour_decides_where_everything_underflows(kernel, dtype, given):
    points, new = X.astype(dtype), NEW.astype(dtype)
    found = LGCPClassifier(kernel, selection=None).fit(given(points), given(Y))
    nearest = np.square(new[:, None].astype(float) - points[None].astype(float)).sum(axis=-1)
    assert to_numpy(found.predict(given(new))).tolist() == Y[nearest.argmin(axis=1)].tolist()
    np.fill_diagonal(own := np.square(points[:, None].astype(float) - points[None].astype(float)).sum(axis=-1), np.inf)
    assert to_numpy(found.loo_predict()).tolist() == Y[own.argmin(axis=1)].tolist()


@pytest.mark.parametrize("kernel", [None, RBF(1e-4)], ids=["chosen", "underflow"])
def test_devices_without_double_precision_use_single_precision(kernel):
    strict = pytest.importorskip("array_api_strict")
    devices = [each for each in strict.__array_namespace_info__().devices() if "no_float64" in str(each)]
    if not devices:
        pytest.skip("this version of array-api-strict has no device without double precision")
    points, new = X.astype(np.float32), NEW.astype(np.float32)
    model = LGCPClassifier(kernel, selection="loo_error" if kernel is None else None)
    expected = clone(model).fit(points, Y)
    found = model.fit(strict.asarray(points, device=devices[0]), Y)
    assert found.mean_.dtype == strict.float32
    labels = to_numpy(found.predict(strict.asarray(new, device=devices[0])))
    scores = expected.class_scores(new)
    if kernel is not None:  # the nearest point decides, where rounding can tell it from the next one
        d2 = np.square(new[:, None].astype(float) - points[None]).sum(axis=-1)
        scores = -np.stack([d2[:, c == Y].min(axis=1) for c in (0, 1)], axis=1).astype(np.float32)
    assert_same_decisions(labels, expected.predict(new), scores, terms=len(X), condition=CONDITION)


@pytest.mark.parametrize("exponent", [-900, -300, 300, 900])
@pytest.mark.parametrize("selection", ["loo_error", "loo_log_loss"])
def test_units_change_nothing(selection, exponent, given, library):
    unit = 2.0**exponent
    expected = LGCPClassifier(selection=selection).fit(X, Y)
    found = LGCPClassifier(selection=selection).fit(given(unit * X), given(Y))
    np.testing.assert_allclose(
        to_numpy(found.predict_proba(given(unit * NEW))), expected.predict_proba(NEW), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("form", ["library", "NumPy", "list"])
def test_weights_count_and_rows_of_weight_zero_are_dropped(form, given, library):
    weights = np.random.default_rng(0).uniform(0.5, 3.0, size=len(Y))
    weights[::7] = 0
    shaped = {"library": given, "NumPy": np.asarray, "list": list}[form](weights)
    expected = clone(CASES["paper"]).fit(X, Y, weights)
    found = clone(CASES["paper"]).fit(given(X), given(Y), shaped)
    assert found.X_fit_.shape == expected.X_fit_.shape
    assert_same_answers(found, expected, NEW, given, library)


def test_many_classes(given, library):
    rng = np.random.default_rng(1)
    y = np.concatenate([np.arange(40), rng.integers(40, size=160)])
    points, new = rng.normal(size=(200, 3)) + y[:, None], rng.normal(size=(30, 3)) + 20
    expected = LGCPClassifier(RBF(1.0), selection=None).fit(points, y)
    found = LGCPClassifier(RBF(1.0), selection=None).fit(given(points), given(y))
    np.testing.assert_allclose(to_numpy(found.predict_proba(given(new))), expected.predict_proba(new), rtol=1e-9)


def test_integers_are_points_too(given):
    points = np.arange(12).reshape(6, 2)
    found = LGCPClassifier(RBF(3.0), selection=None).fit(given(points), given(np.arange(6) % 2))
    assert to_numpy(found.predict_proba(given(points))).dtype == np.float64


@pytest.mark.parametrize(
    "labels",
    [Y.astype(bool), Y.astype(np.uint8), Y.astype(np.uint32), Y.astype(float), Y - 5],
    ids=lambda y: str(y.dtype),
)
def test_labels_come_back_in_the_library(labels, given, library):
    for y in (given(labels), labels, labels.tolist()):
        found = clone(CASES["kernel"]).set_params(mean=0.0).fit(given(X), y)
        predicted = found.predict(given(X))
        assert Library.of(predicted) == library
        assert np.mean(to_numpy(predicted) == labels) > 0.8


def test_the_score_is_that_of_numpy(given):
    found, expected = clone(CASES["kernel"]).fit(given(X), given(Y)), clone(CASES["kernel"]).fit(X, Y)
    assert found.score(given(X), given(Y)) == pytest.approx(expected.score(X, Y), abs=1e-6)  # a mean in float32


def test_text_labels_come_back_as_numpy(given):
    names = np.array(["no", "yes"])[Y]
    found = LGCPClassifier(RBF(0.2), selection=None).fit(given(X), names)
    expected = LGCPClassifier(RBF(0.2), selection=None).fit(X, names)
    assert isinstance(found.predict(given(NEW)), np.ndarray)
    assert found.predict(given(NEW)).tolist() == expected.predict(NEW).tolist()
    assert found.loo_predict().tolist() == expected.loo_predict().tolist()


def test_labels_and_weights_of_another_library_than_numpy_points(given):
    found = clone(CASES["kernel"]).fit(X, given(Y), given(np.ones(len(Y))))
    assert isinstance(found.predict(NEW), np.ndarray)
    np.testing.assert_array_equal(found.predict(NEW), clone(CASES["kernel"]).fit(X, Y).predict(NEW))


def test_the_points_are_not_changed_and_no_history_is_kept(given):
    array = given(X)
    if hasattr(array, "requires_grad_"):
        array = array.requires_grad_()
    found = clone(CASES["paper"]).fit(array, given(Y))
    assert not getattr(found.predict_proba(array), "requires_grad", False)
    np.testing.assert_array_equal(to_numpy(array), X)


@pytest.mark.parametrize("method", [*METHODS, "predict", "predict_with_proba"])
def test_points_of_another_library_are_refused(method, given, library):
    arrays, plain = clone(CASES["kernel"]).fit(given(X), given(Y)), clone(CASES["kernel"]).fit(X, Y)
    with pytest.raises(ValueError, match=rf"LGCPClassifier.{method}\(\) {SENTENCE}.* got NumPy arrays: convert them"):
        getattr(arrays, method)(NEW)
    with pytest.raises(ValueError, match=rf"LGCPClassifier.{method}\(\) {SENTENCE}.*NumPy arrays; got {library.name}"):
        getattr(plain, method)(given(NEW))
    with config_context(array_api_dispatch=False), pytest.raises(ValueError, match="array_api_dispatch=True"):
        getattr(arrays, method)(given(NEW))


def test_points_on_another_device_are_refused():
    strict = pytest.importorskip("array_api_strict")
    found = clone(CASES["kernel"]).fit(strict.asarray(X), strict.asarray(Y))
    with pytest.raises(ValueError, match=SENTENCE):
        found.predict(strict.asarray(NEW, device=strict.Device("device1")))


def test_nothing_is_predicted_before_fit(given):
    with pytest.raises(NotFittedError):
        LGCPClassifier(selection=None).predict(given(NEW))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_part_chooses_the_mixture(dtype, given):
    """Other selections and all other methods are in tests/test_backends.py."""
    model = LGCPClassifier(BANK, selection_part=0.6, random_state=0)
    points, y, new = X[::2].astype(dtype), Y[::2], NEW[:12].astype(dtype)
    there, here = clone(model).fit(given(points), given(y)), clone(model).fit(points, y)
    tolerance = 1e-6 if dtype == np.float64 else 2e-4
    for method in ("predict_proba", "set_p_values"):
        found, expected = to_numpy(getattr(there, method)(given(new))), getattr(here, method)(new)
        np.testing.assert_allclose(found, expected, atol=tolerance, rtol=0)


@pytest.mark.parametrize("estimator", [SLGCPClassifier(), PermanentalClassifier()], ids=str)
def test_other_estimators_say_that_they_need_numpy(estimator, given):
    with pytest.raises(TypeError, match=r"needs NumPy arrays, but X holds .* convert X to NumPy, or leave"):
        estimator.fit(given(X), given(Y))


def test_a_model_of_numpy_refuses_other_arrays(given):
    plain = clone(CASES["kernel"]).fit(X, Y)
    for call in (plain.contributions, plain.predict_set, plain.set_p_values):
        with pytest.raises(ValueError, match=SENTENCE):
            call(given(NEW))


def test_bad_points_are_refused_as_in_numpy(given):
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clone(CASES["kernel"]).fit(given(bad), given(Y))
    with pytest.raises(ValueError, match="only one class"):
        clone(CASES["kernel"]).fit(given(X), given(np.zeros_like(Y)))
    with pytest.raises(ValueError, match="features"):
        clone(CASES["kernel"]).fit(given(X), given(Y)).predict(given(NEW[:, :1]))


def test_another_fit_leaves_nothing_of_the_first(given):
    model = clone(CASES["paper"])
    first = model.fit(given(X), given(Y)).predict_proba(given(NEW))
    assert isinstance(model.fit(X, Y).predict_proba(NEW), np.ndarray)
    assert isinstance(model.X_fit_, np.ndarray)
    np.testing.assert_array_equal(to_numpy(model.fit(given(X), given(Y)).predict_proba(given(NEW))), to_numpy(first))


@pytest.mark.parametrize("copied", [deepcopy, lambda model: pickle.loads(pickle.dumps(model))], ids=["copy", "pickle"])
def test_copies_and_pickles_stay_in_the_library(copied, given, library):
    model = clone(CASES["paper"]).fit(given(X), given(Y))
    found = copied(model).predict_proba(given(NEW))
    assert Library.of(found) == library
    np.testing.assert_array_equal(to_numpy(found), to_numpy(model.predict_proba(given(NEW))))


def test_model_files_hold_numpy_arrays(given, tmp_path):
    model = clone(CASES["paper"]).fit(given(X), given(Y))
    save(model, tmp_path / "model.skops", target="y", features=["a", "b"])
    loaded = load(tmp_path / "model.skops").model
    expected = clone(CASES["paper"]).fit(X, Y)
    assert loaded.classes_.tolist() == expected.classes_.tolist()
    size = 1 + np.abs(expected.class_scores(NEW)).max()
    assert_close(loaded.class_scores(NEW), expected.class_scores(NEW), terms=len(X), scale=size, condition=CONDITION)


def test_the_tag_says_that_every_selection_takes_arrays():
    for selection in ("mixture", "loo_error", "loo_log_loss", "pseudo_likelihood", None):
        assert LGCPClassifier(selection=selection).__sklearn_tags__().array_api_support

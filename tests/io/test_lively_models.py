"""Models whose rows have come and gone: they come back from a file, and go on as before."""

import functools

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield import LGCPClassifier
from coxfield.io import model_file
from tolerances import assert_close

RNG = np.random.default_rng(7)
X = RNG.normal(size=(60, 2))
NAMES = np.array(["cat", "dog"])[(X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)]
WEIGHTS = RNG.integers(0, 4, size=60).astype(float)
QUERIES = RNG.normal(size=(40, 2), scale=3)
OPTIONS = {
    "mixture": {},
    "part": {"selection_part": 0.6, "random_state": 0},
    "one": {"selection": "loo_error"},
    "by class": {"kernel": {"cat": RBF(1.0), "dog": 2.0 * Matern(2.0, nu=1.5)}, "selection": None},
}
STEPS = {
    "grown": lambda clf: clf.partial_fit(X[30:], NAMES[30:]),
    "shrunk": lambda clf: clf.forget([0, 5, 29]),
    "both": lambda clf: clf.partial_fit(X[30:], NAMES[30:], sample_weight=WEIGHTS[30:]).forget([0, 5, 31]),
    "announced": lambda clf: clf.partial_fit(X[30:], NAMES[30:], classes=["ant", "cow"]),
    "came": lambda clf: clf.partial_fit(X[:3] + 5, ["cow"] * 3, classes=["cow"]),
    "left": lambda clf: clf.partial_fit(X[:3] + 5, ["cow"] * 3, classes=["cow"]).forget([30, 31, 32]),
}
LIVES = [
    (name, step) for name in OPTIONS for step in STEPS if name != "by class" or step in ("grown", "shrunk", "both")
]

every_life = pytest.mark.parametrize(("name", "step"), LIVES, ids=[" ".join(life) for life in LIVES])


@functools.cache
def model_of(name, step):
    return STEPS[step](LGCPClassifier(**OPTIONS[name]).fit(X[:30], NAMES[:30]))


def back(model, path):
    """The model as it comes back from a file."""
    model_file.save(model, path / "model.skops", target="species", features=["a", "b"])
    return model_file.load(path / "model.skops").model


def assert_same_scores(found, wanted):
    """Equal up to rounding: rows are arranged anew, so sums are taken in another order."""
    assert_close(found, wanted, terms=50 * 60, scale=np.abs(wanted).max())


@every_life
def test_models_come_back(tmp_path, name, step):
    model = model_of(name, step)
    loaded = back(model, tmp_path)
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.y_fit_.tolist() == model.y_fit_.tolist()
    np.testing.assert_array_equal(loaded.X_fit_, model.X_fit_)
    for mask in ("_announced", "_arrived"):
        assert getattr(loaded, mask).tolist() == getattr(model, mask).tolist()
    assert loaded._training.rows.chosen_from.tolist() == model._training.rows.chosen_from.tolist()
    assert_same_scores(loaded.class_scores(QUERIES), model.class_scores(QUERIES))
    assert_same_scores(loaded.loo_class_scores(), model.loo_class_scores())


@every_life
def test_loaded_models_go_on_as_before(tmp_path, name, step):
    one, other = (back(model_of(name, step), tmp_path) for _ in range(2))
    one.partial_fit(QUERIES[:5], NAMES[:5])
    other = back(other.partial_fit(QUERIES[:5], NAMES[:5]), tmp_path)
    one.forget([1, 3, len(one.y_fit_) - 1])
    other = back(other.forget([1, 3, len(other.y_fit_) - 1]), tmp_path)
    assert one.classes_.tolist() == other.classes_.tolist()
    assert_same_scores(other.class_scores(QUERIES), one.class_scores(QUERIES))


def test_a_covariance_that_was_chosen_again_comes_back(tmp_path):
    model = back(model_of("mixture", "left"), tmp_path).reselect()
    assert model.classes_.tolist() == ["cat", "dog"]  # no row is left of the third
    loaded = back(model, tmp_path)
    assert loaded.loo_error_ == model.loo_error_
    np.testing.assert_array_equal(loaded.predict_proba(QUERIES), model.predict_proba(QUERIES))

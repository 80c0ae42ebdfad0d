"""The trial: a model that works passes, and one that fails or predicts nonsense does not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import FunctionTransformer

from coxfield import LGCPClassifier
from coxfield.io import model_file
from coxfield.io.model_data import Unsound
from coxfield.io.model_file import revived, try_out
from coxfield.kernels.mixture_ladder import Member

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)


def test_a_model_of_a_state_is_the_model():
    model = LGCPClassifier().fit(X, Y)
    np.testing.assert_array_equal(revived(model.__getstate__()).predict_proba(X), model.predict_proba(X))


def test_a_trial_does_not_warn_of_names_that_its_points_do_not_have():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try_out(LGCPClassifier(selection=None).fit(pd.DataFrame(X, columns=["a", "b"]), Y))


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        ({"mean_": np.array([np.nan, 0.0])}, "the probabilities that it predicts are not finite"),
        ({"kernel_": {}}, "it cannot predict its own points"),
        ({"kernel": RBF.__new__(RBF)}, "it cannot predict its own points"),
    ],
)
def test_a_state_that_does_not_work_is_refused(change, clause):
    state = LGCPClassifier(selection=None).fit(X, Y).__getstate__()
    with pytest.raises(Unsound, match=clause):
        revived({**state, **change})


def test_scores_that_would_overflow_elsewhere_are_refused():
    model = LGCPClassifier([Member()]).fit(X, Y)
    model.kernel_.ladders[0].weights[:] = 1e300
    with pytest.raises(Unsound, match="its scores are too large to be added"):
        try_out(model)


def test_a_transformer_that_fails_is_found():
    model = LGCPClassifier([Member(transform=FunctionTransformer(np.arctan))]).fit(X, Y)
    model.kernel_.ladders[0].transform.fitted.func = np.atleast_3d
    with pytest.raises(Unsound, match="it cannot predict its own points"):
        try_out(model)


def test_a_trial_does_not_compute_the_densities_of_many_points(monkeypatch):
    mixture = LGCPClassifier().fit(X, Y).kernel_
    model = LGCPClassifier(mixture, selection=None).fit(X, Y)
    monkeypatch.setattr(LGCPClassifier, "_scores_of", None)
    with pytest.raises(Unsound, match="it cannot predict its own points"):
        try_out(model)
    monkeypatch.setattr(model_file, "VALUES", 1)
    try_out(model)

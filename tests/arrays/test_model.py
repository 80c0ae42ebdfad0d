"""A fitted classifier on an array library: scored in parts, and arranged again after pickling."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.arrays import model as models
from coxfield.arrays.library import Library, to_numpy
from coxfield.arrays.model import ArrayModel
from coxfield.engine.store import Labelled
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.recognise import recognise

RNG = np.random.default_rng(3)
Y = np.arange(30) % 2
X, NEW = RNG.normal(size=(30, 2)) + Y[:, None], RNG.normal(size=(11, 2))
MEAN = np.array([0.3, -0.2])


@pytest.fixture
def model(given):
    return ArrayModel.of(Labelled(given(X), Y, 2), PerClass.shared_by(recognise(2.0 * RBF(0.5), 2), 2))


def test_scores_do_not_depend_on_the_parts(model, given, monkeypatch):
    whole = model.scores(given(NEW), MEAN, np.arange(11))
    monkeypatch.setattr(models, "ROWS", 4)
    parts = model.scores(given(NEW), MEAN, np.arange(11))
    np.testing.assert_allclose(to_numpy(parts.values), to_numpy(whole.values), rtol=1e-12)
    assert whole.values.shape == (11, 2)


def test_the_prior_is_the_mean_and_half_the_variance(model, given):
    far = model.scores(given(np.full((1, 2), 1e3)), MEAN)
    np.testing.assert_allclose(to_numpy(far.values), [MEAN + 1.0], rtol=1e-15)


@pytest.mark.parametrize("copied", [deepcopy, lambda model: pickle.loads(pickle.dumps(model))], ids=["copy", "pickle"])
def test_copies_score_alike(model, copied, given, library):
    again = copied(model)
    assert Library.of(again.labelled.X) == library
    assert to_numpy(again.y).tolist() == Y.tolist()
    np.testing.assert_array_equal(
        to_numpy(again.scores(given(NEW), MEAN).values), to_numpy(model.scores(given(NEW), MEAN).values)
    )

"""Files of formats 2 and 3 are still read, and checked like the others. Older ones are refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
import skops.io
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression

from coxfield import LGCPClassifier
from coxfield.io import model_file, schema
from coxfield.io.model_file import ModelFileError
from coxfield.kernels.mixture_ladder import Member
from model_archives import put_together, structure_of, taken_apart

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 2))
NAMES = np.array(["cat", "dog"])[(X[:, 0] > 0).astype(int)]
MODELS = {
    "mixture": LGCPClassifier([Member(transform=name, alphas=(0.5, 0.75)) for name in ("raw", "whitened")]).fit(
        X, NAMES
    ),
    "one kernel": LGCPClassifier(selection="loo_error").fit(X, NAMES),
    "by class": LGCPClassifier({"cat": RBF(1.0), "dog": RBF(2.0)}, selection=None).fit(X, NAMES),
    "sparse": LGCPClassifier([Member(alphas=(0.5, 0.75))]).fit(sparse.csr_array(X), NAMES),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


def save(model, path, **entries):
    """What `save` wrote before there were checksums."""
    names = {"target": "species", "features": ["a", "b"], "id_column": "name", "version": "0.0.9"}
    skops.io.dump({"format": schema.FORMAT_2, **names, "model": model, **entries}, path)


@pytest.mark.parametrize("name", MODELS)
def test_models_of_format_2_come_back(path, name):
    save(MODELS[name], path)
    saved = model_file.load(path)
    np.testing.assert_array_equal(saved.model.predict_proba(X), MODELS[name].predict_proba(X))
    assert (saved.target, saved.features, saved.id_column, saved.version) == ("species", ("a", "b"), "name", "0.0.9")
    model_file.save(saved.model, path, target="species", features=["a", "b"])
    np.testing.assert_array_equal(model_file.load(path).model.predict_proba(X), MODELS[name].predict_proba(X))


def test_models_of_format_1_are_refused(path):
    save(MODELS["one kernel"], path, format=schema.UNREADABLE)
    with pytest.raises(ModelFileError, match=r"written by an older version of coxfield, .* fit the model again"):
        model_file.load(path)


def test_other_models_are_refused(path):
    save(LogisticRegression(), path)
    with pytest.raises(ModelFileError, match="it holds a LogisticRegression, not a model"):
        model_file.load(path)
    save(3, path)
    with pytest.raises(ModelFileError, match="it holds a str, not a model"):
        model_file.load(path)


def test_the_content_is_checked(path):
    save(MODELS["one kernel"], path, features=None)
    with pytest.raises(ModelFileError, match="the features in it are no list of names"):
        model_file.load(path)
    wrong = LGCPClassifier(selection=None).fit(X, NAMES)
    wrong.mean_ = np.array([0.0, np.nan])
    save(wrong, path)
    with pytest.raises(ModelFileError, match="mean_ holds numbers that are not finite"):
        model_file.load(path)


def test_nothing_is_computed_before_the_content_is_checked(path, monkeypatch):
    wrong = LGCPClassifier(selection=None).fit(X, NAMES)
    rows = wrong._training.rows
    wrong._training = replace(wrong._training, rows=replace(rows, y=rows.y + 1))
    save(wrong, path)
    monkeypatch.setattr(LGCPClassifier, "_hold", lambda *arguments: pytest.fail("too early"))
    with pytest.raises(ModelFileError, match="y_fit_ holds numbers outside of 0 to 1"):
        model_file.load(path)


@pytest.mark.parametrize("structure", [None, [], {}, {"content": []}, {"content": {"format": {"content": "["}}}])
def test_a_structure_without_a_format_has_none(structure):
    assert schema.format_of(structure) is None


def test_the_state_takes_the_place_of_the_model(path):
    save(MODELS["by class"], path)
    structure = structure_of(taken_apart(path))
    assert schema.format_of(structure) == schema.FORMAT_2
    found = schema.with_state(structure, LGCPClassifier)["content"]["model"]
    assert found["__loader__"] == "DictNode"
    assert "X_fit_" in found["content"]


def without_later_parameters(state):
    return {name: value for name, value in state.items() if name not in schema.ADDED}


def save_format_3(model, path):
    """What `save` wrote before there were ids, and before some parameters."""
    names = {"version": "0.1.0", "target": "species", "features": ["a", "b"], "id_column": "name"}
    skops.io.dump(without_later_parameters(model.__getstate__()), path)
    description = json.dumps({"format": schema.WITHOUT_IDS, **names}).encode()
    put_together({**taken_apart(path), model_file.DESCRIPTION: description}, path)


@pytest.mark.parametrize("name", MODELS)
def test_models_of_format_3_come_back(path, name):
    save_format_3(MODELS[name], path)
    saved = model_file.load(path)
    np.testing.assert_array_equal(saved.model.predict_proba(X), MODELS[name].predict_proba(X))
    assert saved.model.get_params() == MODELS[name].get_params() or name == "by class"
    assert (saved.id_column, saved.ids) == ("name", None)


def test_models_of_format_2_without_later_parameters_come_back(path, monkeypatch):
    whole = LGCPClassifier.__getstate__
    monkeypatch.setattr(LGCPClassifier, "__getstate__", lambda self: without_later_parameters(whole(self)))
    save(MODELS["mixture"], path)
    monkeypatch.undo()
    saved = model_file.load(path)
    assert saved.model.selection_part == LGCPClassifier().selection_part
    assert saved.ids is None


def test_later_parameters_have_their_defaults():
    assert schema.ADDED.items() <= LGCPClassifier().get_params().items()
    assert schema.completed({"random_state": 3}) == {"selection_part": 1.0, "random_state": 3, "bank": "simple"}
    assert schema.completed(None) is None

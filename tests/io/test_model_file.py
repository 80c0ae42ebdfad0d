"""Models in files: what comes back is what was saved, and what is no model is refused before anything is built."""

import re
import shutil
import string
import zipfile

import numpy as np
import pytest
import skops.io
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, RationalQuadratic
from sklearn.linear_model import LogisticRegression

from coxfield import LGCPClassifier, __version__
from coxfield.io import model_file
from coxfield.io.model_file import ModelFileError

RNG = np.random.default_rng(7)
X = RNG.normal(size=(60, 2))
CODES = (X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)
NAMES = np.array(["cat", "dog"])[CODES]
WEIGHTS = RNG.integers(0, 4, size=60).astype(float)
QUERIES = RNG.normal(size=(40, 2), scale=3)


class OwnKernel(RBF):
    """A kernel that another program knows nothing of."""


def kernels_by_name():
    return {"cat": RBF(1.0), "dog": 2.0 * Matern(2.0, nu=1.5)}


MODELS = {
    "default": (LGCPClassifier(), X, NAMES, None),
    "integers": (LGCPClassifier(selection="loo_log_loss"), X, CODES, None),
    "booleans": (LGCPClassifier(), X, CODES == 1, None),
    "objects": (LGCPClassifier(), X, NAMES.astype(object), None),
    "weights": (LGCPClassifier(), X, NAMES, WEIGHTS),
    "single precision": (LGCPClassifier(), X.astype(np.float32), NAMES, None),
    "sparse": (LGCPClassifier(), sparse.csr_array(X), NAMES, WEIGHTS),
    "sparse matrix": (LGCPClassifier(), sparse.csr_matrix(X), NAMES, None),
    "by class": (LGCPClassifier(kernels_by_name(), mean={"cat": 0.3}, selection=None), X, NAMES, WEIGHTS),
    "by class, integers": (LGCPClassifier({0: RBF(1.0), 1: RBF(0.5)}), X, CODES, None),
    "a length scale per feature": (LGCPClassifier(ConstantKernel(2.0) * RBF(np.array([1.0, 2.0]))), X, NAMES, None),
    "rational quadratic": (LGCPClassifier(RationalQuadratic(), length_scales=[1.0, 0.5]), X, NAMES, None),
    "kernel that is called": (LGCPClassifier(RBF(1.0) + DotProduct(), selection=None), X, NAMES, None),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


def save(model, path, **table):
    model_file.save(model, path, **{"target": "species", "features": ["a", "b"], "id_column": "name", **table})


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_as_it_was_saved(path, name):
    model, rows, y, weights = MODELS[name]
    model.fit(rows, y, sample_weight=weights)
    save(model, path)
    loaded = model_file.load(path).model
    np.testing.assert_array_equal(loaded.predict_proba(QUERIES), model.predict_proba(QUERIES))
    np.testing.assert_array_equal(loaded.predict(QUERIES), model.predict(QUERIES))
    np.testing.assert_array_equal(loaded.loo_predict(), model.loo_predict())
    assert getattr(loaded, "loo_error_", None) == getattr(model, "loo_error_", None)
    assert loaded.kernel_ == model.kernel_
    assert loaded.classes_.dtype == model.classes_.dtype


def test_the_table_is_remembered(path):
    model = LGCPClassifier().fit(X, NAMES)
    save(model, path)
    saved = model_file.load(path)
    assert (saved.target, saved.features, saved.id_column) == ("species", ("a", "b"), "name")
    assert saved.version == __version__
    save(model, path, id_column=None)
    assert model_file.load(path).id_column is None


def test_failing_save_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    path.write_bytes(b"old")

    def fail(part, path):
        assert part.stat().st_size > 0
        raise OSError("disk full")

    monkeypatch.setattr(type(path), "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save(LGCPClassifier().fit(X, NAMES), path)
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_boolean_keys_which_skops_confuses_are_refused(path):
    model = LGCPClassifier({False: RBF(1.0), True: RBF(2.0)}, selection=None).fit(X, CODES == 1)
    with pytest.raises(ModelFileError, match="kernel is given for the classes False and True cannot be saved"):
        save(model, path)
    assert not path.exists()


def test_models_go_into_skops_files_in_folders_that_exist(tmp_path):
    with pytest.raises(ModelFileError, match=r"a file that ends in \.skops, and .*train\.csv does not"):
        model_file.check_output(tmp_path / "train.csv")
    with pytest.raises(ModelFileError, match="There is no folder"):
        model_file.check_output(tmp_path / "absent" / "model.skops")


@pytest.mark.parametrize(
    ("stranger", "name"),
    [
        (shutil.which, "shutil.which"),
        (model_file.load, "coxfield.io.model_file.load"),
        (string.Template("x"), "string.Template"),
    ],
)
def test_types_that_a_model_has_no_need_of_are_named_and_refused(path, stranger, name):
    skops.io.dump({"format": model_file.FORMAT, "model": stranger}, path)
    with pytest.raises(
        ModelFileError,
        match=f"is refused as unsafe: it contains {re.escape(name)}, which is no part of a model",
    ):
        model_file.load(path)


def test_a_model_that_could_not_be_loaded_is_not_saved(path):
    model = LGCPClassifier(OwnKernel(1.0), selection=None).fit(X, NAMES)
    with pytest.raises(ModelFileError, match=r"A model that contains .*OwnKernel cannot be saved"):
        save(model, path)
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PK\x03\x04 and then nothing"])
def test_other_files_are_no_models(path, content):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="is not a model that coxfield fit wrote"):
        model_file.load(path)


def test_other_archives_are_no_models(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(ModelFileError, match="is not a model that coxfield fit wrote"):
        model_file.load(path)


def test_absent_files_and_folders_are_no_models(path):
    with pytest.raises(ModelFileError, match=r"There is no file .*model\.skops"):
        model_file.load(path)
    with pytest.raises(ModelFileError, match="There is no file"):
        model_file.load(path.parent)


def test_skops_files_of_others_are_no_models(path):
    skops.io.dump(LogisticRegression(), path)
    with pytest.raises(ModelFileError, match="is a skops file, but not a model"):
        model_file.load(path)
    skops.io.dump({"format": model_file.FORMAT, "model": LogisticRegression()}, path)
    with pytest.raises(ModelFileError, match="holds a LogisticRegression, not an LGCPClassifier"):
        model_file.load(path)


def test_a_damaged_model_is_refused(path):
    save(LGCPClassifier().fit(X, NAMES), path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content if name == "schema.json" else content[:60])
    with pytest.raises(
        ModelFileError,
        match=f"cannot be loaded by coxfield {__version__}, because it is damaged or from another version",
    ):
        model_file.load(path)

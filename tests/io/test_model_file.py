"""Models in files: what comes back is what was saved, and what is no model is refused before anything is built."""

import itertools
import os
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, RationalQuadratic, Sum
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from coxfield import LGCPClassifier, __version__
from coxfield.io import model_file
from coxfield.io.model_file import ModelFileError
from coxfield.kernels.transforms import Member, NormalScores
from coxfield.utils.whole_files import FileNotWrittenError
from full_disk import SENTENCE, fill
from model_archives import change_description, taken_apart

RNG = np.random.default_rng(7)
X = RNG.normal(size=(60, 2))
CODES = (X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)
NAMES = np.array(["cat", "dog"])[CODES]
WEIGHTS = RNG.integers(0, 4, size=60).astype(float)
QUERIES = RNG.normal(size=(40, 2), scale=3)


class OwnKernel(RBF):
    """A kernel that another program knows nothing of."""


class OwnTransformer(TransformerMixin, BaseEstimator):
    """A transformer that another program knows nothing of."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return 2 * X


def kernels_by_name():
    return {"cat": RBF(1.0), "dog": 2.0 * Matern(2.0, nu=1.5)}


def bank(*transforms):
    return [Member(transform=transform) for transform in transforms]


MODELS = {
    "default": (LGCPClassifier(), X, NAMES, None),
    "integers": (LGCPClassifier(), X, CODES, None),
    "booleans": (LGCPClassifier(), X, CODES == 1, None),
    "objects": (LGCPClassifier(), X, NAMES.astype(object), None),
    "weights": (LGCPClassifier(), X, NAMES, WEIGHTS),
    "single precision": (LGCPClassifier(), X.astype(np.float32), NAMES, None),
    "sparse": (LGCPClassifier(bank("raw", "standardised")), sparse.csr_array(X), NAMES, WEIGHTS),
    "standardised": (LGCPClassifier(Member(transform="standardised")), X, NAMES, WEIGHTS),
    "whitened": (LGCPClassifier(Member(transform="whitened")), X, NAMES, WEIGHTS),
    "transformers": (LGCPClassifier(bank(PCA(1), PCA(2))), X, NAMES, None),
    "steps": (LGCPClassifier(Member(transform=make_pipeline(StandardScaler(), PCA(2)))), X, NAMES, None),
    "function": (LGCPClassifier(Member(transform=FunctionTransformer(np.arctan))), X, NAMES, None),
    "member that is called": (LGCPClassifier([Member(RBF(0.5) + RBF(2.0))]), X, NAMES, None),
    "path of Matern": (LGCPClassifier(Matern(1.0, nu=1.5)), X, NAMES, None),
    "path of rational quadratic": (LGCPClassifier(RationalQuadratic(), length_scales=[1.0, 0.5]), X, NAMES, None),
    "path of two length scales": (LGCPClassifier(ConstantKernel(2.0) * RBF(np.array([1.0, 2.0]))), X, NAMES, None),
    "least error": (LGCPClassifier(selection="loo_error"), X, NAMES, None),
    "log loss": (LGCPClassifier(selection="loo_log_loss"), X, CODES, WEIGHTS),
    "sparse, least error": (LGCPClassifier(selection="loo_error"), sparse.csr_matrix(X), NAMES, None),
    "pseudo-likelihood": (LGCPClassifier(selection="pseudo_likelihood"), X, NAMES, None),
    "by class": (LGCPClassifier(kernels_by_name(), mean={"cat": 0.3}, selection=None), X, NAMES, WEIGHTS),
    "by class, integers": (LGCPClassifier({0: RBF(1.0), 1: RBF(0.5)}, selection="loo_error"), X, CODES, None),
    "by class, booleans": (LGCPClassifier({False: RBF(1.0), True: RBF(0.5)}, selection=None), X, CODES == 1, None),
    "ranked": (LGCPClassifier(Member(transform=NormalScores())), X, NAMES, None),
    "random state": (LGCPClassifier(Member(transform=PCA(1, random_state=np.random.RandomState(3)))), X, NAMES, None),
    "columns of a frame": (LGCPClassifier(categorical_features=pd.Index([])), X, NAMES, None),
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
    np.testing.assert_array_equal(loaded.loo_predict_proba(), model.loo_predict_proba())
    assert getattr(loaded, "loo_error_", None) == getattr(model, "loo_error_", None)
    np.testing.assert_equal(getattr(loaded, "mixture_", None), getattr(model, "mixture_", None))
    assert str(loaded.kernel_) == str(model.kernel_)
    assert loaded.classes_.dtype == model.classes_.dtype


def test_a_loaded_mixture_is_saved_as_it_was(path):
    model = LGCPClassifier().fit(X, NAMES)
    save(model, path)
    save(model_file.load(path).model, path)
    np.testing.assert_array_equal(model_file.load(path).model.predict_proba(QUERIES), model.predict_proba(QUERIES))


def test_a_mixture_can_be_the_kernel_of_another_model(path):
    mixture = LGCPClassifier().fit(X, NAMES).kernel_
    model = LGCPClassifier(mixture, selection=None).fit(X[:20], NAMES[:20])
    save(model, path)
    np.testing.assert_array_equal(model_file.load(path).model.predict_proba(X[20:]), model.predict_proba(X[20:]))


@pytest.mark.parametrize("weights", [None, RNG.uniform(size=2000)], ids=["no weights", "weights"])
def test_points_are_in_the_file_once(path, weights):
    many = RNG.normal(size=(2000, 40))
    names = [f"f{number}" for number in range(40)]
    model = LGCPClassifier(length_scales=[8.0, 6.0, 4.0]).fit(many, many[:, 0] > 0, sample_weight=weights)
    model.predict_proba(1e6 * many[:1])  # far from all points, where more is held to compute with care
    save(model, path, features=names)
    assert path.stat().st_size < 1.5 * many.nbytes
    with zipfile.ZipFile(path) as archive:
        assert sum(part.file_size >= many.nbytes for part in archive.infolist()) == 1
    loaded = model_file.load(path).model
    assert loaded.kernel_.X is loaded.X_fit_


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


def test_a_full_disk_is_a_sentence_and_the_old_file_stays(path, monkeypatch):
    path.write_bytes(b"old")
    fill(monkeypatch)
    with pytest.raises(FileNotWrittenError) as caught:
        save(LGCPClassifier(selection=None).fit(X, NAMES), path)
    assert str(caught.value) == f"{path} {SENTENCE}"
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_classes_that_share_a_kernel_learn_it_together_after_loading(path):
    one = RBF(1.0)
    model = LGCPClassifier({"cat": one, "dog": one}, selection="pseudo_likelihood").fit(X, NAMES)
    save(model, path)
    kernel = model_file.load(path).model.kernel
    assert kernel["cat"] is kernel["dog"]
    save(LGCPClassifier({"cat": RBF(1.0), "dog": RBF(1.0)}, selection=None).fit(X, NAMES), path)
    kernel = model_file.load(path).model.kernel
    assert kernel["cat"] is not kernel["dog"]


def test_models_go_into_skops_files_in_folders_that_exist(tmp_path):
    with pytest.raises(ModelFileError, match=r"a file that ends in \.skops, and .*train\.csv does not"):
        model_file.check_output(tmp_path / "train.csv")
    with pytest.raises(ModelFileError, match="There is no folder"):
        model_file.check_output(tmp_path / "absent" / "model.skops")


def test_a_model_that_could_not_be_loaded_is_not_saved(path):
    model = LGCPClassifier(OwnKernel(1.0), selection=None).fit(X, NAMES)
    with pytest.raises(ModelFileError, match=r"cannot be saved, because it contains .*OwnKernel, which a model file"):
        save(model, path)
    assert not path.exists()


def test_a_transformer_of_the_user_is_named_and_not_saved(path):
    model = LGCPClassifier([Member(), Member(transform=OwnTransformer())]).fit(X, NAMES)
    with pytest.raises(ModelFileError, match=r"OwnTransformer, which .* of the transformers .*, PCA, "):
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


def test_the_same_model_is_the_same_bytes(path):
    model = LGCPClassifier().fit(X, NAMES)
    save(model, path)
    first = path.read_bytes()
    save(model_file.load(path).model, path)
    assert path.read_bytes() == first


def test_a_file_holds_no_names_of_modules(path):
    """It is data: nothing in it says what to import."""
    save(MODELS["steps"][0].fit(X, NAMES), path)
    for name in (b"sklearn", b"coxfield.", b"numpy", b"__"):
        assert name not in taken_apart(path)[model_file.MEMBER]


def test_models_of_newer_versions_are_refused(path):
    save(LGCPClassifier(selection=None).fit(X, NAMES), path)
    change_description(path, format="coxfield model 99")
    with pytest.raises(ModelFileError, match="was written by another version of coxfield, whose models cannot be read"):
        model_file.load(path)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="nothing is forbidden to the administrator")
def test_a_file_that_may_not_be_read_is_said_to_be_so(path):
    path.touch(0o000)
    with pytest.raises(ModelFileError, match="cannot be read: change its permissions"):
        model_file.load(path)


def test_a_damaged_model_is_refused(path):
    save(LGCPClassifier(selection=None).fit(X, NAMES), path)
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content[:60] if name.endswith(".npy") else content)
    with pytest.raises(ModelFileError, match="because it is damaged, and no longer as it was written: fit the model"):
        model_file.load(path)
    path.write_bytes(whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 1]) + whole[len(whole) // 2 + 1 :])
    with pytest.raises(
        ModelFileError,
        match=f"cannot be loaded by coxfield {__version__}, because it is damaged or from another version",
    ):
        model_file.load(path)


def test_a_model_that_is_not_fitted_is_not_saved(path):
    with pytest.raises(NotFittedError):
        save(LGCPClassifier(), path)
    assert not path.exists()


def test_names_of_other_features_are_not_saved(path):
    with pytest.raises(ModelFileError, match="The model cannot be saved, because it has 1 names for 2 features"):
        save(LGCPClassifier(selection=None).fit(X, NAMES), path, features=["a"])
    assert not path.exists()


def test_a_model_of_a_data_frame_comes_back(path):
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = LGCPClassifier().fit(frame, NAMES)
    save(model, path)
    loaded = model_file.load(path).model
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded.feature_names_in_.dtype == object
    assert loaded.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize("selection", ["mixture", "loo_error", "pseudo_likelihood", None])
def test_a_model_of_an_ordinary_table_comes_back(path, selection):
    frame = pd.DataFrame(
        {
            "number": np.where(np.arange(60) % 9, X[:, 0], np.nan),
            "animal": np.array(["ant", "bee", "cow"])[np.arange(60) % 3],
            "size": pd.Categorical(np.array(["low", "high"])[CODES], ["low", "high"], ordered=True),
            "day": pd.date_range("2020-01-01", periods=60, freq="40D"),
            "agreed": np.array(["yes", "no"])[CODES],
        }
    )
    model = LGCPClassifier(selection=selection).fit(frame, NAMES)
    save(model, path, features=list(frame))
    loaded = model_file.load(path).model
    assert loaded.columns_ == model.columns_
    assert loaded.n_features_in_ == 5
    np.testing.assert_array_equal(loaded.predict_proba(frame[::-1]), model.predict_proba(frame[::-1]))
    odd = frame.assign(animal="dodo", number=np.nan)
    np.testing.assert_array_equal(loaded.predict_proba(odd), model.predict_proba(odd))
    loaded.partial_fit(frame[:5], NAMES[:5])
    assert len(loaded.y_fit_) == 65


KERNELS = st.recursive(
    st.builds(RBF, st.floats(0.1, 10))
    | st.builds(Matern, st.floats(0.1, 10), nu=st.sampled_from([0.5, 1.5, 2.5, np.inf]))
    | st.builds(RationalQuadratic, st.floats(0.1, 10), st.floats(0.1, 10))
    | st.builds(RBF, st.lists(st.floats(0.1, 10), min_size=2, max_size=2)),
    lambda inner: (
        st.builds(lambda k, c: ConstantKernel(c) * k, inner, st.floats(0.1, 10)) | st.builds(Sum, inner, inner)
    ),
    max_leaves=4,
)
TRANSFORMS = st.sampled_from(
    ["raw", "standardised", "whitened", "compressed", "compressed, whitened", PCA(2), StandardScaler()]
)
BANKS = st.lists(st.builds(Member, KERNELS | st.none(), TRANSFORMS), min_size=1, max_size=2)
FITS = st.builds(LGCPClassifier, BANKS, mean=st.floats(-1, 1), learn_mean=st.booleans()) | st.builds(
    LGCPClassifier, KERNELS, selection=st.sampled_from(["loo_error", "loo_log_loss", None])
)


@settings(max_examples=30, deadline=None)
@given(
    model=FITS,
    n=st.integers(8, 30),
    dtype=st.sampled_from([np.float32, np.float64]),
    labels=st.sampled_from([np.array(["a", "b", "c"]), np.array([-3, 0, 9]), np.array([0.0, 2.0, 5.0])]),
    weighted=st.booleans(),
    seed=st.integers(0, 999),
)
def test_predictions_are_equal_to_the_last_bit(tmp_path_factory, model, n, dtype, labels, weighted, seed):
    rng = np.random.default_rng(seed)
    rows, y = rng.normal(size=(n, 2)).astype(dtype), labels[np.arange(n) % 3 % 2 + (np.arange(n) % 5 == 0)]
    path = tmp_path_factory.mktemp("models") / "model.skops"
    model.fit(rows, y, sample_weight=rng.uniform(0.5, 2, n) if weighted else None)
    save(model, path)
    loaded = model_file.load(path).model
    queries = (3 * rng.normal(size=(9, 2))).astype(dtype)
    np.testing.assert_array_equal(loaded.class_scores(queries), model.class_scores(queries))
    np.testing.assert_array_equal(loaded.loo_class_scores(), model.loo_class_scores())
    assert loaded.predict(queries).tolist() == model.predict(queries).tolist()
    assert repr(loaded) == repr(model)


def test_a_file_that_is_replaced_all_the_time_is_read_as_one_or_the_other(path):
    """Names, rows and ids come from the same file, which `load` reads once."""
    contents = []
    for rows, letter in ((40, "a"), (60, "b")):
        ids = [f"{letter}{row}" for row in range(rows)]
        model = LGCPClassifier(selection="loo_error").fit(X[:rows], NAMES[:rows])
        save(model, path, features=[f"{letter}1", f"{letter}2"], ids=ids)
        contents.append(path.read_bytes())
    stop = threading.Event()

    def replace():
        for content in itertools.cycle(contents):
            part = path.with_name("part")
            part.write_bytes(content)
            part.replace(path)
            if stop.is_set():
                return

    found = set()
    with ThreadPoolExecutor(1) as pool:
        replacing = pool.submit(replace)
        try:
            for _ in range(100):
                saved = model_file.load(path)
                found.add((saved.features, len(saved.model.y_fit_), saved.ids.texts[0], len(saved.ids)))
        finally:
            stop.set()
        replacing.result()
    assert found == {(("a1", "a2"), 40, "a0", 40), (("b1", "b2"), 60, "b0", 60)}

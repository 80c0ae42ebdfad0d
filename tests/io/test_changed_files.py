"""Model files that were changed on purpose, with a checksum that is right: refused in one sentence, or sound."""

import io
import tracemalloc
import zipfile
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse
from sklearn.kernel_approximation import AdditiveChi2Sampler

from coxfield import LGCPClassifier
from coxfield.io import model_file
from coxfield.io.model_file import ModelFileError
from coxfield.kernels.transforms import Member
from model_archives import change, change_array, change_description, data_of, entry, put_together, saved, taken_apart

RNG = np.random.default_rng(7)
X = RNG.normal(size=(60, 2))
NAMES = np.array(["cat", "dog"])[(X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)]
WEIGHTS = RNG.uniform(0.5, 2, size=60)
QUERIES = RNG.normal(size=(40, 2), scale=3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


def save(model, path):
    model_file.save(model, path, target="species", features=["a", "b"])


@pytest.fixture(scope="module")
def mixture_file(tmp_path_factory):
    """The bytes of a file with a mixture."""
    path = tmp_path_factory.mktemp("mixture") / "model.skops"
    save(LGCPClassifier([Member(transform="whitened")]).fit(X, NAMES, sample_weight=WEIGHTS), path)
    return path.read_bytes()


@pytest.fixture
def mixture(path, mixture_file):
    """A file with a mixture, for changes with a checksum that is right."""
    path.write_bytes(mixture_file)
    return path


def test_a_file_that_was_changed_to_a_sound_one_is_another_model(mixture):
    before = model_file.load(mixture).model
    change_array(mixture, ["mean_"], lambda mean: mean + np.arange(2.0))
    after = model_file.load(mixture).model
    assert (after.predict_proba(QUERIES)[:, 1] > before.predict_proba(QUERIES)[:, 1]).all()


@pytest.mark.parametrize("name", ["os.system", "eval", "LGCPClassifier", "LogisticRegression", "a\n\ud800" * 99])
@pytest.mark.parametrize("where", [["verbose"], ["kernel_", "ladders", 0, "transform"], ["kernel_"]])
def test_types_that_a_model_has_no_need_of_are_named_and_refused(mixture, name, where):
    change(mixture, where, {"type": name, "parts": {}})
    with pytest.raises(ModelFileError, match=r"because it contains .*, which a model file does not hold for") as caught:
        model_file.load(mixture)
    assert str(caught.value).isascii()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "node",
    [
        {},
        {"call": "os.system"},
        {"type": "RBF"},
        {"type": "RBF", "parts": []},
        {"type": ["RBF"], "parts": {}},
        {"type": "RBF", "parts": {"length_scale": 1.0, "diag": 2}},
        {"type": "PCA", "parts": {"transform": 3}},
        {"type": "Transformer", "parts": {"fitted": None, "transform": 3}},
        {"function": "add"},
        {"function": "system"},
        {"tuple": 3},
        {"mapping": [1]},
        {"mapping": [[[1], 2]]},
        {"mapping": [["a", {"same": 0}]]},
        {"mapping": [["a", 1], ["b", {"same": 0}]]},
        {"array": "absent.npy"},
        {"array": "model.json"},
        {"texts": ["\ud800"]},
        {"texts": [3]},
        {"random": [1, 2, 3, 4, 5]},
        {"random": []},
        {"sparse": "coo_array"},
        {"sparse": "csr_array"},
        "\ud800",
        [[[{"list": 1}]]],
    ],
    ids=str,
)
@pytest.mark.parametrize("where", [["verbose"], ["kernel_", "ladders", 0, "transform"]])
def test_nodes_that_no_model_has_are_refused(mixture, node, where):
    change(mixture, where, node)
    with pytest.raises(ModelFileError) as caught:
        model_file.load(mixture)
    assert str(caught.value).isascii()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("where", [("kernel_", "ladders", 0, "transform", "fitted"), ("kernel", 0, "transform")])
def test_a_transformer_that_would_fill_the_memory_is_refused_before_it_is_called(path, where, monkeypatch):
    """A small file may ask for any amount of coordinates. It has a checksum that is right."""
    features = AdditiveChi2Sampler(sample_steps=2, sample_interval=0.5)
    model = LGCPClassifier([Member(transform=features)]).fit(np.abs(X), NAMES)
    save(model, path)
    assert model_file.load(path).model.kernel_.ladders[0].transform.fitted.sample_steps == 2
    change(path, (*where, "sample_steps"), 10**9)
    assert path.stat().st_size < 50_000
    called = AdditiveChi2Sampler.transform

    def transform(self, X):
        assert self.sample_steps == 2
        return called(self, X)

    monkeypatch.setattr(AdditiveChi2Sampler, "transform", transform)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="sample_steps of a AdditiveChi2Sampler is 1000000000, and 1000 is"):
            model_file.load(path)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


LADDER = ("kernel_", "ladders", 0)


@pytest.mark.parametrize(
    ("names", "edit", "clause"),
    [
        (["X_fit_"], lambda a: np.where(a > 1, np.nan, a), "X_fit_ holds numbers that are not finite"),
        (["X_fit_"], lambda a: a[:-1], r"y_fit_ has the shape \(60,\), not \(59\)"),
        (["X_fit_"], lambda a: a.astype(">f8"), "X_fit_ is an array of type '>f8'"),
        (["y_fit_"], lambda a: a[:-1], r"y_fit_ has the shape \(59,\), not \(60\)"),
        (["y_fit_"], lambda a: a + 1, "y_fit_ holds numbers outside of 0 to 1"),
        (["classes_"], lambda a: a[::-1], "classes_ is not sorted"),
        (["classes_"], lambda a: np.array([1j, 2]), "classes_ is of type '<c16'"),
        (["mean_"], lambda a: a * np.inf, "mean_ holds numbers that are not finite"),
        (["_weights"], lambda a: -a, "_weights holds numbers that are not positive"),
        ([*LADDER, "weights"], lambda a: a * np.nan, "weights of the mixture holds numbers that are not finite"),
        ([*LADDER, "weights"], lambda a: a[:, :0], "weights of the mixture has the shape"),
        ([*LADDER, "factors"], lambda a: -a, "factors of the mixture holds numbers that are not positive"),
        ([*LADDER, "transform", "matrix_"], lambda a: a * np.nan, "matrix_ of a Whitening holds numbers"),
        (["kernel_", "log_densities", 0], lambda a: a[:, 1:], "log_densities of the mixture has the shape"),
    ],
)
def test_arrays_that_no_fit_makes_are_refused(mixture, names, edit, clause):
    change_array(mixture, names, edit)
    with pytest.raises(ModelFileError, match=f"cannot be used as a model, because {clause}") as caught:
        model_file.load(mixture)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("names", "value", "clause"),
    [
        (["n_features_in_"], 3, "n_features_in_ is not 2"),
        (["n_features_in_"], "2", "n_features_in_ is not 2"),
        (["kernel_"], None, "it has a table of a mixture, but not a mixture"),
        (["X_fit_"], ..., "the model has no X_fit_"),
        (["newer_"], 1, "the model has a part .* that no fit makes"),
        ([*LADDER, "newer"], 1, "a Ladder in it does not have the parts of one"),
        (["kernel_", "log_densities"], None, "the mixture has no densities"),
        ([*LADDER, "name"], 7, "the name of a representation is not text"),
        (["verbose"], 10**30, "it holds the integer 10*, which is too large"),
        (["n_jobs"], 10**9, "n_jobs is 1000000000"),
        (["loo_error_"], float("nan"), "loo_error_ is nan"),
    ],
)
def test_values_that_no_fit_makes_are_refused(mixture, names, value, clause):
    change(mixture, names, value)
    with pytest.raises(ModelFileError, match=clause):
        model_file.load(mixture)


@pytest.mark.parametrize(
    ("entries", "clause"),
    [
        ({"features": None}, "the features in it are not a list of names"),
        ({"features": ["a"]}, "it has 1 names for 2 features"),
        ({"features": ["a", 3]}, "the features in it are not a list of names"),
        ({"features": ...}, "its description has no features"),
        ({"target": 3}, "the target in it is not text"),
    ],
)
def test_names_of_columns_that_are_no_names_are_refused(mixture, entries, clause):
    change_description(mixture, **entries)
    with pytest.raises(ModelFileError, match=clause):
        model_file.load(mixture)


def test_objects_in_an_array_are_refused_and_no_code_of_them_is_run(mixture):
    members = taken_apart(mixture)
    place, key = entry(data_of(members), "mean_")
    name = place[key]["array"]
    put_together({**members, name: saved(np.array([Trap()]), allow_pickle=True)}, mixture)
    with pytest.raises(ModelFileError, match="does not hold numbers or text"):
        model_file.load(mixture)
    assert not Trap.sprung


class Trap:
    """An object whose pickle runs code."""

    sprung: ClassVar = []

    def __reduce__(self):
        return Trap.sprung.append, (1,)


def test_a_structure_of_many_parts_or_levels_is_refused(mixture):
    members = taken_apart(mixture)
    for text in (b"[" * 10**6, b"[" + b"[]," * 10**6 + b"1]", b'{"a":' * 10**5):
        put_together({**members, "model.json": text}, mixture)
        with pytest.raises(ModelFileError, match=r"its text (is nested too deeply|has too many parts)"):
            model_file.load(mixture)


def test_a_compressed_file_is_refused(mixture):
    put_together(taken_apart(mixture), mixture, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ModelFileError, match="is compressed, which no part of a model is"):
        model_file.load(mixture)


@pytest.mark.parametrize(
    ("part", "edit"),
    [
        ("indices", lambda a: np.where(a == 1, 10**9, a)),
        ("indices", lambda a: -a),
        ("indices", lambda a: a.astype(float)),
        ("indptr", lambda a: a[:-1]),
        ("indptr", lambda a: a[::-1]),
        ("indptr", lambda a: a + 10**6),
        ("data", lambda a: a[:-1]),
        ("data", lambda a: a[:, None]),
    ],
)
def test_sparse_points_that_refer_to_other_memory_are_refused(path, part, edit):
    save(LGCPClassifier(selection=None).fit(sparse.csr_matrix(X), NAMES), path)
    members = taken_apart(path)
    name = data_of(members)["model"]["X_fit_"][part]["array"]
    put_together({**members, name: saved(edit(np.load(io.BytesIO(members[name]))))}, path)
    with pytest.raises(ModelFileError, match="a sparse matrix in it has parts that do not fit together"):
        model_file.load(path)


def test_text_that_would_crash_python_is_refused(mixture):
    change_array(mixture, ["classes_"], lambda a: np.full(6, 2**31, np.uint32).view("<U3"))
    with pytest.raises(ModelFileError, match="an array in it holds text that cannot be read"):
        model_file.load(mixture)

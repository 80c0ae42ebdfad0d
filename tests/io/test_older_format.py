"""Files of formats 2 to 5 are still read, and checked like the others. Older ones are refused.

`older_models.zip` holds files that versions 0.1.0 and 0.2.0 wrote with skops, and one before this format, with what
their models predict for `QUERIES`.
"""

import functools
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from coxfield.io import model_file, older_format
from coxfield.io.model_file import ModelFileError
from model_archives import put_together, saved, taken_apart

QUERIES = np.array([[0.1, 0.2], [3.0, -4.0], [50.0, 60.0]])


@functools.cache
def written():
    """Name -> bytes of a file, and predictions."""
    with zipfile.ZipFile(Path(__file__).parent / "older_models.zip") as archive:
        predictions = json.loads(archive.read("predictions.json"))
        return {name: (archive.read(f"{name}.skops"), np.array(found)) for name, found in predictions.items()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


@pytest.mark.parametrize("name", written())
def test_models_of_older_versions_come_back(path, name):
    content, predictions = written()[name]
    path.write_bytes(content)
    saved = model_file.load(path)
    assert (saved.target, saved.features, saved.id_column) == ("species", ("a", "b"), "name")
    assert saved.version == ("0.1.0" if name[0] in "23" else "0.2.0")
    assert (saved.ids is not None) == (name[0] in "45")
    if name != "4 lively":  # the densities were those of the points that the covariance was chosen from
        np.testing.assert_allclose(saved.model.predict_proba(QUERIES), predictions, rtol=1e-12, atol=1e-14)
    model_file.save(saved.model, path, target="species", features=["a", "b"])
    again = model_file.load(path).model
    np.testing.assert_array_equal(again.predict_proba(QUERIES), saved.model.predict_proba(QUERIES))
    assert again.get_params().keys() == saved.model.get_params().keys()


def test_all_formats_are_tried():
    assert {f"coxfield model {name[0]}" for name in written()} == set(older_format.FORMATS)


def test_rows_that_came_later_have_densities_after_loading(path):
    path.write_bytes(written()["4 lively"][0])
    model = model_file.load(path).model
    assert model.kernel_.X is model.X_fit_
    assert model.classes_.tolist() == ["cat", "cow", "dog"]
    assert model.kernel_.log_densities[0].shape[1] == 22


def changed(path, name, edit):
    """Write a file of an older format with another structure, or other members."""
    path.write_bytes(written()[name][0])
    members = taken_apart(path)
    structure = json.loads(members[older_format.MEMBER])
    edit(structure["content"] if name[0] != "2" else structure["content"]["model"]["content"]["content"], members)
    put_together({**members, older_format.MEMBER: json.dumps(structure).encode()}, path)


def node(loader, **entries):
    return {"__class__": "str", "__module__": "builtins", "__loader__": loader, **entries}


@pytest.mark.parametrize(
    ("wrong", "clause"),
    [
        (node("ObjectNode", content=node("JsonNode", content="null")), "it contains 'builtins.str'"),
        (node("MethodNode"), "it contains"),
        (node("ConstructorFromReduceNode"), "it contains"),
        (node("FunctionNode"), "it contains"),
        (node("JsonNode", content="[1]"), "a value in its structure is neither a number nor a name"),
        (node("JsonNode", content="9" * 10**6), "it contains"),
        (
            node("DictNode", content={"a": 1}, key_types={"content": []}),
            "a mapping in its structure does not have keys",
        ),
        (node("NdArrayNode", file="absent.npy"), "its array 'absent.npy' is missing"),
        ({"__id__": 7}, "it contains"),
        (3, "it contains '3'"),
        (None, "it contains None"),
    ],
)
@pytest.mark.parametrize("name", ["4 mixture", "2 mixture"])
def test_nodes_that_no_model_has_are_refused(path, wrong, clause, name):
    def edit(content, members):
        content["verbose"] = wrong

    changed(path, name, edit)
    with pytest.raises(ModelFileError, match=clause) as caught:
        model_file.load(path)
    assert str(caught.value).isascii()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["4 mixture", "2 mixture", "5 mixture"])
def test_the_content_is_checked(path, name):
    def edit(content, members):
        members[content["mean_"]["file"]] = saved(np.array([0.0, np.nan]))

    changed(path, name, edit)
    with pytest.raises(ModelFileError, match="mean_ holds numbers that are not finite"):
        model_file.load(path)


def test_other_models_are_refused(path):
    path.write_bytes(written()["2 by_class"][0])
    members = taken_apart(path)
    for wrong, clause in (
        ("LogisticRegression", "it holds a LogisticRegression, not a model"),
        (3, "it holds a 3, not"),
    ):
        structure = json.loads(members[older_format.MEMBER])
        structure["content"]["model"]["__class__"] = wrong
        put_together({**members, older_format.MEMBER: json.dumps(structure).encode()}, path)
        with pytest.raises(ModelFileError, match=clause):
            model_file.load(path)


@pytest.mark.parametrize("structure", [None, [], {}, {"content": []}, {"content": {"format": {"content": "["}}}])
def test_skops_files_of_others_are_not_models(path, structure):
    put_together({older_format.MEMBER: json.dumps(structure).encode()}, path)
    with pytest.raises(ModelFileError, match="is a skops file, but not a model"):
        model_file.load(path)


def test_models_of_format_1_are_refused(path):
    structure = {"content": {"format": {"content": json.dumps(older_format.UNREADABLE)}}}
    put_together({older_format.MEMBER: json.dumps(structure).encode()}, path)
    with pytest.raises(ModelFileError, match=r"written by an older version of coxfield, .* fit the model again"):
        model_file.load(path)


def test_a_damaged_file_of_format_2_is_refused(path):
    content = bytearray(written()["2 mixture"][0])
    content[200] ^= 1  # format 2 has no checksum, but the archive has one of each member
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="damaged"):
        model_file.load(path)


def points(**changes):
    """A sparse matrix as skops writes it."""
    matrix = sparse.csr_matrix(np.eye(24, 2))
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array(matrix.shape)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{**parts, **changes})
    return buffer.getvalue()


def test_sparse_matrices_are_read_and_checked(path, monkeypatch):
    def load_with(content):
        changed(path, "4 sparse", lambda nodes, members: members.update({nodes["X_fit_"]["file"]: content}))
        return model_file.load(path).model

    assert load_with(points()).X_fit_.shape == (24, 2)
    for wrong in (points(indices=np.array([0, 10**9])), points(shape=np.array([24, -1])), points(shape=np.array(3.5))):
        with pytest.raises(ModelFileError, match="a sparse matrix in it has parts that do not fit together"):
            load_with(wrong)
    monkeypatch.setattr(model_file, "FREE_BYTES", 10**5)
    with pytest.raises(ModelFileError, match=r"its sparse matrices take 8000.* bytes when they are unpacked"):
        load_with(points(data=np.zeros(10**6)))

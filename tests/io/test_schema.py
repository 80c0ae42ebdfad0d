"""The structure of an archive: known nodes only, not too many, and no object by number alone."""

import copy
import importlib

import numpy as np
import pytest
import skops.io
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from coxfield import LGCPClassifier
from coxfield.io import schema
from coxfield.io.requirements import Unsound
from coxfield.io.schema import check_schema
from model_archives import nodes, plain, structure_of, taken_apart


def structure(value, path):
    skops.io.dump(value, path)
    return structure_of(taken_apart(path))


def listed(*items):
    return {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": list(items)}


def whole(node):
    return {**node, "protocol": 2}


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, "x", (True,)], 3: {"b": np.eye(3)}},
        [RBF(np.float64(2.0)), RBF(np.array([1.0, 2.0]))],
        StandardScaler().fit([[1], [2]]),
        np.array(["a", "b"], dtype=object),
        np.sin,
        {"now": slice(1, 2), "then": np.dtype(float), "draws": np.random.RandomState(0)},
    ],
)
def test_what_skops_writes_passes(value, tmp_path):
    check_schema(structure([value, value, copy.deepcopy(value)], tmp_path / "a.skops"))


@pytest.mark.parametrize("wrong", [None, [], {}, {"protocol": 1}, {"protocol": True}, {"protocol": "2"}])
def test_the_protocol_is_one_that_is_known(wrong):
    with pytest.raises(Unsound, match="its structure is not one that skops writes"):
        check_schema(wrong)


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        ({"__loader__": "ConstructorFromReduceNode"}, "a part of the kind 'ConstructorFromReduceNode'"),
        ({"__loader__": "MethodNode"}, "a part of the kind 'MethodNode'"),
        ({"__loader__": "BytesNode"}, "a part of the kind 'BytesNode'"),
        ({"__loader__": ["JsonNode"]}, "a part of the kind"),
        ({"__module__": None}, "a part of the kind"),
        (
            {"__loader__": "NdArrayNode", "__module__": "numpy", "__class__": "void"},
            "an array of the type 'numpy.void'",
        ),
        ({"content": "[1, 2]"}, "a value in its structure is neither a number nor a name"),
        ({"content": ' {"a": 1}'}, "a value in its structure is neither a number nor a name"),
        ({"content": "9" * 10**6}, "a value in its structure is neither a number nor a name"),
        ({"content": 3}, "a value in its structure is neither a number nor a name"),
        ({"file": "a.npy"}, "an array in its structure has no file of its own"),
        ({"file": 3, "__id__": 1}, "an array in its structure has no file of its own"),
        ({"__id__": "1"}, "a number of an object in its structure is not a number"),
        ({"__id__": [1]}, "a number of an object in its structure is not a number"),
    ],
)
def test_nodes_that_no_model_has_are_refused(change, clause):
    with pytest.raises(Unsound, match=clause):
        check_schema(whole(listed({**plain(1), **change})))


@pytest.mark.parametrize("name", ["file", "content", "a"])
def test_nodes_are_found_under_any_name(name):
    mapping = {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode", "key_types": listed(plain("a"))}
    wrong = {**plain(1), "__loader__": "MethodNode"}
    check_schema(whole({**mapping, "content": {name: plain(1)}}))
    with pytest.raises(Unsound, match="a part of the kind 'MethodNode'"):
        check_schema(whole({**mapping, "content": {name: wrong}}))


def test_there_are_not_too_many_nodes(monkeypatch):
    monkeypatch.setattr(schema, "NODES", 3)
    check_schema(whole(listed(plain(1), plain(2))))
    with pytest.raises(Unsound, match="its structure has more than 3 parts"):
        check_schema(whole(listed(plain(1), plain(2), plain(3))))


def test_two_objects_of_one_number_are_the_same(tmp_path):
    found = structure([RBF(1.0), RBF(1.0)], tmp_path / "a.skops")
    first, second = (node for node in nodes(found) if node["__class__"] == "RBF")
    check_schema(found)
    second["__id__"] = first["__id__"]
    check_schema(found)
    second["content"]["content"]["length_scale"]["content"] = "2.0"
    del second["content"]["content"]["length_scale"]["__id__"]
    with pytest.raises(Unsound, match="two objects in its structure have the same number"):
        check_schema(found)


def test_objects_that_double_again_and_again_are_refused():
    """Sixty nodes, each with the one before it twice, by number: skops would walk over 2^60 of them."""
    doubled = [{**plain(1), "__id__": 1}]
    doubled += [{**listed({"__id__": number}, {"__id__": number}), "__id__": number + 1} for number in range(1, 60)]
    with pytest.raises(Unsound, match="two objects in its structure have the same number"):
        check_schema(whole(listed(*doubled)))


def test_an_object_is_not_inside_itself():
    inner = {**listed({"__id__": 7}), "__id__": 7}
    with pytest.raises(Unsound, match="two objects in its structure have the same number"):
        check_schema(whole(listed(inner)))


def test_a_file_belongs_to_one_object(tmp_path):
    array = np.zeros(3)
    found = structure([array, array], tmp_path / "a.skops")
    check_schema(found)
    first, _ = (node for node in nodes(found) if node["__loader__"] == "NdArrayNode")
    first["__id__"] += 1
    with pytest.raises(Unsound, match="two arrays in its structure have the same file"):
        check_schema(found)


@pytest.mark.parametrize("name", schema.TRUSTED)
def test_what_is_trusted_are_classes_that_exist(name):
    module, _, kind = name.rpartition(".")
    assert isinstance(getattr(importlib.import_module(module), kind), type)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ([LGCPClassifier()], "coxfield.estimators.supervised.LGCPClassifier"),
        ({"a": OneHotEncoder().fit([[1], [2]])}, "sklearn.preprocessing._encoders.OneHotEncoder"),
        (np.add, "numpy.add"),
    ],
    ids=["model", "transformer", "function"],
)
def test_types_that_are_no_part_of_a_model_are_named(tmp_path, value, name):
    with pytest.raises(Unsound, match=f"it contains {name}, which a model file does not hold for safety"):
        check_schema(structure(value, tmp_path / "a.skops"))


def test_many_strangers_are_counted(tmp_path):
    kinds = [type(f"Kind{k}", (), {"__module__": f"some.module{k}"}) for k in range(schema.MOST_NAMES + 2)]
    with pytest.raises(Unsound, match="and 2 more, which a model file does not hold"):
        check_schema(structure([kind() for kind in kinds], tmp_path / "a.skops"))

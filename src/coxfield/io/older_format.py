"""Model files of formats 2 to 5, which are archives of skops: a frozen reader.

What skops writes is a tree too, of nodes with the names of types. It is translated into the tree of today's format
name by name. So skops is not needed, nothing is built here, and what an older file holds is checked like any other.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.io.model_data import Unsound, is_text, quoted, require

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MEMBER = "schema.json"
DESCRIPTION = "coxfield.json"  # absent in format 2, which has a model as an object, and no checksum
FORMATS = tuple(f"coxfield model {number}" for number in (2, 3, 4, 5))
UNREADABLE = "coxfield model 1"  # before mixtures of covariances
KEYS: dict[str, Callable] = {"str": str, "int": int, "float": float}  # what keys of mappings are made of
LETTERS = 100_000  # of a number or a name


def format_of(structure: Any, description: Any) -> Any:
    """The format that a file names; None if it is not a model of coxfield."""
    try:
        return json.loads(structure["content"]["format"]["content"]) if description is None else description["format"]
    except (KeyError, TypeError, ValueError):
        return None


class Translation:
    """From nodes of skops to data of today. `load` gives the array of a name."""

    def __init__(self, load: Callable[[str], NDArray]) -> None:
        self._load = load
        self.more: dict[str, NDArray] = {}
        """Arrays that older models do not have, by name."""

    def description(self, structure: dict, description: Any) -> dict:
        """Names of columns and the model, as they are in a file of today."""
        if description is not None:
            return {**description, "model": self._parts(structure)}
        found = {name: self.value(node) for name, node in structure["content"].items() if name != "model"}
        held = structure["content"].get("model")
        require(isinstance(held, dict), "there is no model in it")
        name = held.get("__class__")
        require(name == "LGCPClassifier", f"it holds a {name if is_text(name) else quoted(name)}, not a model")
        require(isinstance(held.get("content"), dict), "its model is empty")
        return {**found, "model": self._parts(held["content"])}

    def value(self, node: Any) -> Any:
        """The data of a node."""
        match node:
            case {"__loader__": "JsonNode", "content": str(text)} if len(text) <= LETTERS:
                found = json.loads(text)
                require(not isinstance(found, list | dict), "a value in its structure is neither a number nor a name")
                return found
            case {"__loader__": "ListNode", "content": list(items)}:
                return list(map(self.value, items))
            case {"__loader__": "TupleNode", "content": list(items)}:
                return {"tuple": list(map(self.value, items))}
            case {"__loader__": "DictNode", "content": dict(items), "key_types": {"content": list(kinds)}}:
                require(len(kinds) == len(items), "a mapping in its structure does not have keys")
                pairs = zip(kinds, items.items(), strict=True)
                return {"mapping": [[_key(kind, key), self.value(each)] for kind, (key, each) in pairs]}
            case {"__loader__": "NdArrayNode", "type": "json", "content": list(items)}:
                return {"texts": list(map(self.value, items))}
            case {"__loader__": "NdArrayNode", "file": str(name)}:
                return {"array": name}
            case {"__loader__": "SparseMatrixNode", "__class__": str(kind), "file": str(name)}:
                parts = ("data", "indices", "indptr", "shape")
                return {"sparse": kind, **{part: {"array": f"{name}/{part}.npy"} for part in parts}}
            case {"__loader__": "FunctionNode", "__module__": "numpy", "__class__": str(name)}:
                return {"function": name}
            case {"__loader__": "RandomStateNode", "content": content}:
                return {"random": self._random(self._parts(content))}
            case {"__loader__": "ObjectNode", "__class__": str(name), "__module__": str(module), "content": content}:
                if not module.startswith(("coxfield.", "sklearn.")):
                    name = f"{module}.{name}"
                return self._thing(name, self._parts(content))
        kind = ".".join(str(node.get(key)) for key in ("__module__", "__class__")) if isinstance(node, dict) else node
        return {"type": str(kind), "parts": {}}  # which is refused as any other type

    def _parts(self, node: Any) -> dict[str, Any]:
        """The attributes of an object."""
        match node:
            case {"__loader__": "DictNode", "content": dict(items)}:
                return {name: self.value(each) for name, each in items.items()}
            case {"__loader__": "JsonNode"}:  # of an object without any
                return {}
        raise Unsound("an object in its structure has no attributes")

    def _random(self, parts: dict[str, Any]) -> list:
        state = dict(parts["state"]["mapping"])
        return [parts["bit_generator"], state["key"], state["pos"], parts["has_gauss"], parts["gauss"]]

    def _thing(self, name: str, parts: dict[str, Any]) -> dict[str, Any]:
        """An object with the parts that it has today."""
        if name in ("Radial", "Called"):
            return parts["kernel"]
        if name == "Ladder" and "floors" not in parts:
            parts = {**parts, "floors": self._made(parts["alphas"], np.zeros_like)}
        if name == "Whitening" and "moved_" not in parts:
            moved = self._made(parts["labels_"], lambda labels: labels[:0])
            parts = {**parts, "moved_": moved, "moved_points_": self._made(parts["class_means_"], lambda Z: Z[:0])}
        return {"type": name, "parts": parts}

    def _made(self, array: Any, function: Callable[[NDArray], NDArray]) -> dict[str, str]:
        """An array that is made of another one."""
        name = f"made {len(self.more)}"
        self.more[name] = function(self._load(array["array"]))
        return {"array": name}


def _key(kind: Any, key: str) -> Any:
    name = kind.get("__class__") if isinstance(kind, dict) else None
    require(name in KEYS, "a mapping in its structure does not have keys")
    return KEYS[str(name)](key)

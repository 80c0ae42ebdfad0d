"""The structure of a skops archive, checked before skops builds anything of it.

skops checks by itself that only types that it trusts are built. But it trusts all of scikit-learn, it walks over the
structure with no limit, and some of its nodes call a type with arguments from the file, which may take any amount of
memory. So the types that a model file may hold are listed here one by one. A model is not among them: what is in the
file is its state.

Files of format 2 hold the model as an object, and those of format 3 have no ids. An object is complete as soon as skops
has built it, so it would compute with what nobody has checked. So the state is taken out of it before.
"""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.gaussian_process import kernels

from coxfield.io import transform_content
from coxfield.io.requirements import Unsound, quoted, require
from coxfield.kernels.called import Called
from coxfield.kernels.mixture import Mixture
from coxfield.kernels.mixture_ladder import Ladder, Member
from coxfield.kernels.profiles import Matern, RationalQuadratic, SquaredExponential
from coxfield.kernels.radial import Radial
from coxfield.kernels.transforms import Transformer, Whitening

MEMBER = "schema.json"
PROTOCOL = 2  # of skops; older ones have nodes that are not checked here
NAMES = ("__id__", "file")  # that may differ if the same object is written again: some of its parts are made anew
NODES = 30_000  # skops takes seconds for so many; six hundred classes with a kernel each have fewer
LETTERS = 100_000  # of a number or a name
LOADERS = {
    "DictNode",
    "DTypeNode",
    "FunctionNode",
    "JsonNode",
    "ListNode",
    "NdArrayNode",
    "ObjectNode",
    "RandomStateNode",
    "SetNode",
    "SliceNode",
    "SparseMatrixNode",
    "TupleNode",
    "TypeNode",
}
#: Arrays and numbers. skops would call other types of NumPy too, some of which take as many bytes as they are told.
ARRAYS = {
    f"numpy.{name}"
    for name in ("ndarray", "bool", "bool_", "str_", "float32", "float64", "int8", "int16", "int32", "int64")
}
MIXTURE = (Called, Ladder, Matern, Member, Mixture, Radial, RationalQuadratic, SquaredExponential, Transformer)
KERNELS = tuple(
    kind
    for _, kind in inspect.getmembers(kernels, inspect.isclass)
    if issubclass(kind, kernels.Kernel) and kind.__module__ == kernels.__name__
)
#: Names of all types of which objects are built.
TRUSTED = tuple(
    f"{kind.__module__}.{kind.__qualname__}"
    for kind in (*MIXTURE, *KERNELS, *transform_content.TRANSFORMERS, sparse.csr_array, sparse.csr_matrix)
)
KNOWN = {"ObjectNode": {*TRUSTED}, "FunctionNode": {f"numpy.{name}" for name in transform_content.FUNCTIONS}}
MOST_NAMES = 6  # of types in a message

FORMAT_2, WITHOUT_IDS, WITHOUT_FLOORS = (f"coxfield model {number}" for number in (2, 3, 4))
UNREADABLE = "coxfield model 1"  # before mixtures of covariances
# Parameters that older models do not have, and what they mean.
ADDED = {"selection_part": 1.0, "random_state": None, "bank": "simple"}


def check_schema(schema: Any) -> None:
    """Refuse a structure that skops would not write for a model, or that holds types that are no part of one."""
    known = isinstance(schema, dict) and type(schema.get("protocol")) is int and schema["protocol"] >= PROTOCOL
    require(known, "its structure is not one that skops writes")
    walk = _Walk()
    walk.signature(schema)
    # A type of a file may have any name, such as one of many lines.
    names = [name if re.fullmatch(r"[\w.<>]{1,200}", name, re.ASCII) else quoted(name) for name in walk.strangers]
    if names:
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        raise Unsound(
            f"it contains {', '.join(names[:MOST_NAMES])}{more}, which a model file does not hold for safety (use "
            f"kernels of sklearn.gaussian_process.kernels, and of the transformers {transform_content.NAMES})"
        )


def format_of(structure: Any) -> str | None:
    """The format that the structure of an older file names; None if it is no model of coxfield."""
    try:
        return json.loads(structure["content"]["format"]["content"])
    except (KeyError, TypeError, ValueError):
        return None


def with_state(structure: dict, kind: type) -> dict:
    """The structure of a file of format 2 with the state of the model in place of the model."""
    model = structure["content"].get("model")
    require(isinstance(model, dict), "there is no model in it")
    held = f"{model.get('__module__')}.{model.get('__class__')}"
    require(held == f"{kind.__module__}.{kind.__qualname__}", f"it holds a {model.get('__class__')}, not a model")
    require(isinstance(model.get("content"), dict), "its model is empty")
    return {**structure, "content": {**structure["content"], "model": model["content"]}}


def completed(state: Any) -> Any:
    """The state of an older model with what newer ones have besides. What does not fit is refused later."""
    if not isinstance(state, dict):
        return state
    mixture = state.get("kernel_")
    for ladder in vars(mixture).get("ladders", ()) if isinstance(mixture, Mixture) else ():
        alphas, transform = vars(ladder).get("alphas"), vars(ladder).get("transform")
        if isinstance(ladder, Ladder) and isinstance(alphas, np.ndarray):
            ladder.__dict__.update(floors=np.zeros(alphas.shape), one=1.0, point_weights=None)
        for each in (transform, *(step for _, step in getattr(transform, "steps", None) or ())):
            if isinstance(each, Whitening) and isinstance(vars(each).get("class_means_"), np.ndarray):
                each.__dict__.update(moved_=np.zeros(0, int), moved_points_=each.class_means_[:0])
    return {**ADDED, **state}


@dataclass
class _Walk:
    """A walk over all nodes."""

    nodes: int = 0
    known: dict[int, int] = field(default_factory=dict)
    """The signature of the node of each number."""
    owners: dict[str, Any] = field(default_factory=dict)
    """The number of the object that each file belongs to."""
    strangers: dict[str, None] = field(default_factory=dict)
    """Names of types that are no part of a model, in their order."""

    def signature(self, value: Any) -> int:
        """A hash of a value, without the numbers of objects and the names of files.

        A node with the number of an earlier node stands for the same object, so skops writes the same content again.
        Only then is the structure as large as it looks. If nodes could refer to others by number alone, a hundred of
        them could mean 2^100 objects.
        """
        if isinstance(value, list):
            return hash(tuple(map(self.signature, value)))
        if not isinstance(value, dict):
            return hash((type(value).__name__, value))
        if "__loader__" in value:
            self._check_node(value)
        # Not left out by name alone: a class may be called 'file', and have a kernel of its own.
        parts = (
            (name, self.signature(each))
            for name, each in value.items()
            if name not in NAMES or isinstance(each, dict | list)
        )
        found = hash(tuple(parts))
        number = value.get("__id__")
        if number is not None:
            require(type(number) is int, "a number of an object in its structure is not a number")
            require(self.known.setdefault(number, found) == found, "two objects in its structure have the same number")
        return found

    def _check_node(self, node: dict) -> None:
        self.nodes += 1
        require(self.nodes <= NODES, f"its structure has more than {NODES} parts")
        loader, module, name = (node.get(key) for key in ("__loader__", "__module__", "__class__"))
        named = isinstance(loader, str) and isinstance(module, str) and isinstance(name, str)
        require(named and loader in LOADERS, f"its structure has a part of the kind {quoted(loader)}")
        kind = f"{module}.{name}"
        if kind not in KNOWN.get(str(loader), (kind,)):
            self.strangers[kind] = None
        if "file" in node:
            self._check_file(node)
        if loader == "JsonNode":  # lists and mappings have nodes of their own
            text = node.get("content")
            value = isinstance(text, str) and len(text) <= LETTERS and not text.lstrip().startswith(("[", "{"))
            require(value, "a value in its structure is neither a number nor a name")
        if loader == "NdArrayNode":
            require(kind in ARRAYS, f"its structure has an array of the type {quoted(kind)}")

    def _check_file(self, node: dict) -> None:
        """Refuse a file that belongs to several objects: each of them would be a copy, and take as much memory."""
        file, number = node["file"], node.get("__id__")
        require(isinstance(file, str) and number is not None, "an array in its structure has no file of its own")
        require(self.owners.setdefault(file, number) == number, "two arrays in its structure have the same file")

"""The structure of a skops archive, checked before skops builds anything of it.

skops checks by itself that only trusted types are built. But it walks over the structure with no limit, and some of
its nodes call a type with arguments from the file, which may take any amount of memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from coxfield.io.requirements import quoted, require

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


def check_schema(schema: Any) -> None:
    """Refuse a structure that skops would not write for a model."""
    known = isinstance(schema, dict) and type(schema.get("protocol")) is int and schema["protocol"] >= PROTOCOL
    require(known, "its structure is not one that skops writes")
    _Walk().signature(schema)


@dataclass
class _Walk:
    """A walk over all nodes."""

    nodes: int = 0
    known: dict[int, int] = field(default_factory=dict)
    """The signature of the node of each number."""
    owners: dict[str, Any] = field(default_factory=dict)
    """The number of the object that each file belongs to."""

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

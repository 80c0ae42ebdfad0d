"""Model files taken apart, changed, and put together again."""

import io
import json
import zipfile

import numpy as np

from coxfield.io import archive as limits
from coxfield.io import schema
from coxfield.io.model_file import DESCRIPTION


def taken_apart(path):
    """Name -> bytes of all members but the checksum, in their order."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != limits.CHECKSUM}


def put_together(members, path, **options):
    """Write an archive with a checksum that is right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        limits.add_checksum(archive)
    path.write_bytes(buffer.getvalue())


def structure_of(members):
    return json.loads(members[schema.MEMBER])


def nodes(value):
    """All nodes of a structure that skops builds, the innermost last."""
    if isinstance(value, dict):
        if "__loader__" in value:
            yield value
        for each in value.values():
            yield from nodes(each)
    elif isinstance(value, list):
        for each in value:
            yield from nodes(each)


def entry(structure, *names):
    """The node of an attribute, such as "kernel_", "ladders", 0, "factors"; objects and their states are one step."""
    node = structure
    for name in names:
        while node["__loader__"] == "ObjectNode":
            node = node["content"]
        node = node["content"][name]
    return node


def change(path, names, node):
    """Replace the node of an attribute in a model file."""
    members = taken_apart(path)
    structure = structure_of(members)
    found = entry(structure, *names)
    found.clear()
    found.update(node)
    put_together({**members, schema.MEMBER: json.dumps(structure).encode()}, path)


def change_array(path, names, edit):
    """Replace the array of an attribute by what `edit` makes of it."""
    members = taken_apart(path)
    name = entry(structure_of(members), *names)["file"]
    put_together({**members, name: saved(edit(np.load(io.BytesIO(members[name]))))}, path)


def saved(array, **options):
    """The bytes of an array in a file."""
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def change_description(path, **entries):
    """Replace entries of the description in a model file; `...` removes one."""
    members = taken_apart(path)
    description = {**json.loads(members[DESCRIPTION]), **entries}
    kept = {name: value for name, value in description.items() if value is not ...}
    put_together({**members, DESCRIPTION: json.dumps(kept).encode()}, path)


def plain(value):
    """The node of a number, a string, a list of them, or None."""
    return {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(value)}

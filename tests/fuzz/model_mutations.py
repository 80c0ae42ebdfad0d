"""Mutations of a model file: of its bytes, as a bad disk makes them, and of its parts, as an attacker makes them."""

import io
import json
import zipfile

import numpy as np

from coxfield.io import model_file, older_format
from coxfield.io.model_data import TYPES

NUMBERS = [0, -1, 1, 2, 3, 1.5, -2.5, 1e-320, 1e-200, 1e200, 1.7e308, 2**63, 10**30, -(10**18)]
ODD = [float("nan"), float("inf"), float("-inf")]
PLAIN = [None, True, False, "", "x", "fixed", "a\nb", "\ud800", [], {}, [[]], [[[[1]]]], [1.0, 2.0], {"a": 1}]
CLASSES = [*TYPES, "LGCPClassifier", "LogisticRegression", "dict", "eval", "ndarray", "csr_array", "system", "void"]
KEYS = ["array", "function", "mapping", "random", "same", "sparse", "texts", "tuple", "type"]  # of nodes of today
LOADERS = [
    *(f"{kind}Node" for kind in ("Bytes", "Cached", "ConstructorFromReduce", "Dict", "Function", "Json", "List")),
    *(f"{kind}Node" for kind in ("Method", "NdArray", "Object", "RandomState", "SparseMatrix", "Tuple", "Type")),
]
DTYPES = ["float32", "float64", ">f8", "int64", "int8", "bool", "complex128", "U3", "S3", "datetime64[s]", "object"]


def pick(rng, things):
    """One of some things."""
    things = list(things)
    return things[int(rng.integers(len(things)))]


def junk(rng):
    """A value that JSON can hold, and that is seldom right."""
    return pick(rng, [pick(rng, NUMBERS), pick(rng, NUMBERS), pick(rng, ODD), pick(rng, PLAIN)])


def damaged(content, rng):
    """The bytes of a file with some of them changed, lost or moved; the checksum is not corrected."""
    data = bytearray(content)
    kind = pick(rng, ["flip", "flip", "flip", "truncate", "splice", "insert", "delete", "blank"])
    at = int(rng.integers(len(data)))
    length = int(min(2 ** rng.integers(1, 12), len(data) - at))
    if kind == "flip":
        for _ in range(int(rng.integers(1, 9))):
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    elif kind == "truncate":
        del data[at:]
    elif kind == "delete":
        del data[at : at + length]
    elif kind == "blank":
        data[at : at + length] = bytes(length)
    else:
        start = int(rng.integers(len(data)))
        part = data[start : start + length]
        data[at : at + (len(part) if kind == "splice" else 0)] = part
    return f"bytes: {kind}", bytes(data)


def edited(content, rng):
    """A file of which one part was changed, and the checksum computed again."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    has_checksum = members.pop(model_file.CHECKSUM, None) is not None
    notes = []
    for _ in range(1 if rng.random() < 0.8 else int(rng.integers(2, 5))):
        edit = pick(rng, [_edit_structure] * 5 + [_edit_array] * 5 + [_edit_description, _edit_members])
        try:
            notes.append(edit(members, rng))
        except (RecursionError, ValueError):  # an earlier edit has left nothing that can be edited
            notes.append("nothing")
    return "; ".join(notes), _archive(members, rng, has_checksum)


def _archive(members, rng, has_checksum):
    compression = zipfile.ZIP_DEFLATED if rng.random() < 0.02 else zipfile.ZIP_STORED
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        if has_checksum:
            model_file.add_checksum(archive)
    return buffer.getvalue()


def _places(value):
    """All containers in a value, with a key or number of each of their items."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _edit_structure(members, rng):
    member = model_file.MEMBER if model_file.MEMBER in members else older_format.MEMBER
    try:
        structure = json.loads(members[member])
    except (KeyError, ValueError):
        return "structure: none"
    places = list(_places(structure))
    inside = [(place, key) for place, key in places if key == "content" and isinstance(place[key], str)]
    if not places:
        return "structure: empty"
    if inside and rng.random() < 0.4:  # a plain value, which is JSON in a string
        place, key = pick(rng, inside)
        place[key] = json.dumps(junk(rng))
        note = f"structure: value {place[key]}"
    else:
        place, key = pick(rng, places)
        note = f"structure: {_change(place, key, places, rng)} at {key}"
    members[member] = json.dumps(structure).encode("utf-8", "surrogatepass")
    return note


def _change(place, key, places, rng):
    """Change one item of a container."""
    kind = pick(rng, ["junk", "delete", "swap", "copy", "class", "loader", "nest"])
    if kind == "delete":
        del place[key]
    elif kind in ("swap", "copy"):
        other, at = pick(rng, places)
        value = json.loads(json.dumps(other[at]))
        if kind == "swap":
            other[at] = place[key]
        place[key] = value if kind == "copy" else json.loads(json.dumps(value))
    elif kind == "class" and isinstance(place, dict) and "__class__" in place:
        place["__class__"] = pick(rng, CLASSES)
    elif kind == "class" and isinstance(place, dict) and "type" in place:
        place["type"] = pick(rng, CLASSES)
    elif kind == "loader" and isinstance(place, dict) and "__loader__" in place:
        place["__loader__"] = pick(rng, LOADERS)
    elif kind == "loader":
        place[key] = {pick(rng, KEYS): place[key]}
    elif kind == "nest":
        for _ in range(int(rng.integers(1, 60))):
            place[key] = [place[key]]
    else:
        place[key] = junk(rng)
    return kind


def _edit_array(members, rng):
    names = [name for name in members if name.endswith((".npy", ".npz"))]
    if not names:
        return "array: none"
    name = pick(rng, names)
    kind = pick(rng, ["values", "values", "values", "shape", "shape", "type", "header", "other"])
    if kind == "other":
        members[name] = members[pick(rng, names)]
    elif kind == "header":
        members[name] = _with_other_header(members[name], rng)
    elif name.endswith(".npz"):
        members[name] = _edited_parts(members[name], kind, rng)
    else:
        members[name] = _edited_array(members[name], kind, rng)
    return f"array: {kind}"


def _with_other_header(content, rng):
    """The bytes of an array with a digit or a letter of the header changed, or with bytes missing at the end."""
    data = bytearray(content)
    if rng.random() < 0.3:
        return bytes(data[: int(rng.integers(len(data)))])
    at = int(rng.integers(6, min(90, len(data))))
    data[at : at + 1] = pick(rng, [b"0", b"9", b"99999", b"O", b"(", b"\n", b"V", b"-"])
    return bytes(data)


def _edited_parts(content, kind, rng):
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    except zipfile.BadZipFile:
        return content
    name = pick(rng, parts)
    parts[name] = _edited_array(parts[name], kind, rng)
    return _archive(parts, rng, False)


def _edited_array(content, kind, rng):
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except Exception:  # an earlier edit may have left anything
        return content
    if not isinstance(array, np.ndarray):
        return content
    with np.errstate(all="ignore"):
        changed = {"values": _other_values, "shape": _other_shape, "type": _other_type}[kind](array, rng)
    buffer = io.BytesIO()
    np.save(buffer, changed, allow_pickle=True)
    return buffer.getvalue()


def _other_values(array, rng):
    array = array.copy()
    if not array.size:
        return array
    flat = array.reshape(-1)
    at = int(rng.integers(flat.size))
    if array.dtype.kind == "U":
        if rng.random() < 0.3:
            flat.view(np.uint32)[:] = 2**31
        else:
            flat[at] = pick(rng, ["", "zzz", "\ud800", flat[0]])
        return array
    if rng.random() < 0.2:
        rng.shuffle(flat)
        return flat.reshape(array.shape)
    value = pick(rng, [pick(rng, NUMBERS), pick(rng, ODD)])
    if array.dtype.kind != "f":
        value = int(np.clip(np.nan_to_num(float(value)), -(2**31), 2**31 - 1)) if array.dtype.kind in "iu" else value
    if rng.random() < 0.2:
        flat[:] = np.asarray(value).astype(array.dtype)
    else:
        flat[at] = np.asarray(value).astype(array.dtype)
    return array


def _other_shape(array, rng):
    kind = pick(rng, ["fewer", "more", "transpose", "axis", "empty", "flat", "scalar"])
    if kind == "fewer" and array.ndim and len(array):
        return array[:-1]
    if kind == "more" and array.ndim:
        return np.concatenate([array, array])
    if kind == "transpose":
        return array.T.copy()
    if kind == "axis":
        return array[..., None]
    if kind == "empty":
        return array.reshape(-1)[:0]
    if kind == "scalar" and array.size:
        return array.reshape(-1)[0]
    return array.reshape(-1)


def _other_type(array, rng):
    try:
        return array.astype(pick(rng, DTYPES))
    except (TypeError, ValueError):
        return array


def _edit_description(members, rng):
    name = "coxfield.json"
    try:
        description = json.loads(members[name])
    except (KeyError, ValueError):
        return _edit_structure(members, rng)
    places = list(_places(description))
    if not places:
        return "description: empty"
    place, key = pick(rng, places)
    note = f"description: {_change(place, key, places, rng)} at {key}"
    members[name] = json.dumps(description).encode("utf-8", "surrogatepass")
    return note


def _edit_members(members, rng):
    kind = pick(rng, ["drop", "add", "rename", "large"])
    name = pick(rng, members)
    if kind == "drop":
        del members[name]
    elif kind == "add":
        members[pick(rng, ["more.npy", "more.txt", "more.py", "../up.npy"])] = b"\x93NUMPY"
    elif kind == "rename":
        members[f"{name}.npy"] = members.pop(name)
    else:
        text = next(name for name in (model_file.MEMBER, older_format.MEMBER) if name in members)
        members[text] = b"[" * 5000 + b"]" * 5000 if rng.random() < 0.5 else b"[" + b"[]," * 500_000 + b"1]"
    return f"members: {kind}"

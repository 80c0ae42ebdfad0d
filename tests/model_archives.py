"""Model files taken apart, changed, and put together again."""

import io
import json
import zipfile

import numpy as np

from coxfield.io import model_file


def taken_apart(path):
    """Name -> bytes of all members but the checksum, in their order."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != model_file.CHECKSUM}


def put_together(members, path, **options):
    """Write an archive with a checksum that is right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        model_file.add_checksum(archive)
    path.write_bytes(buffer.getvalue())


def data_of(members):
    return json.loads(members[model_file.MEMBER])


def entry(data, *names):
    """A container, and the key in it of a part, such as "kernel_", "ladders", 0, "factors"."""
    place, key = data["model"], names[0]
    for name in names[1:]:
        place = place[key]
        if isinstance(place, dict):
            place = place.get("parts") or place.get("tuple") or place.get("mapping")
        if isinstance(place, list) and not isinstance(name, int):  # of a mapping
            place, name = next((pair, 1) for pair in place if pair[0] == name)
        key = name
    return place, key


def change(path, names, value):
    """Replace the data of a part in a model file; `...` removes it."""
    members = taken_apart(path)
    data = data_of(members)
    place, key = entry(data, *names)
    if value is ...:
        del place[key]
    else:
        place[key] = value
    put_together({**members, model_file.MEMBER: json.dumps(data).encode()}, path)


def change_array(path, names, edit):
    """Replace the array of a part by what `edit` makes of it."""
    members = taken_apart(path)
    place, key = entry(data_of(members), *names)
    name = place[key]["array"]
    put_together({**members, name: saved(edit(np.load(io.BytesIO(members[name]))))}, path)


def saved(array, **options):
    """The bytes of an array in a file."""
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def change_description(path, **entries):
    """Replace entries beside the model in a model file; `...` removes one."""
    members = taken_apart(path)
    data = {**data_of(members), **entries}
    kept = {name: value for name, value in data.items() if value is not ...}
    put_together({**members, model_file.MEMBER: json.dumps(kept).encode()}, path)

"""Model files of formats 2 and 3. Neither has the ids of the training rows.

Files of format 2 hold the model as an object. From format 3 on they hold its state, as plain data. An object is
complete as soon as skops has built it, so it would compute with what nobody has checked. Here the state is taken out of
the object before anything is built.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from coxfield.io import schema
from coxfield.io.requirements import require

if TYPE_CHECKING:
    from coxfield import LGCPClassifier

FORMAT = "coxfield model 2"
WITHOUT_IDS = "coxfield model 3"
ADDED = {"selection_part": 1.0, "random_state": None}  # parameters that there were not, and what they mean
UNREADABLE = "coxfield model 1"  # before mixtures of covariances


def format_of(structure: Any) -> str | None:
    """The format that a structure names; None if it is no model of coxfield."""
    try:
        return json.loads(structure["content"]["format"]["content"])
    except (KeyError, TypeError, ValueError):
        return None


def with_state(archive: ZipFile, structure: dict, kind: type[LGCPClassifier]) -> bytes:
    """The archive with the state of the model in place of the model."""
    model = structure["content"].get("model")
    require(isinstance(model, dict), "there is no model in it")
    held = f"{model.get('__module__')}.{model.get('__class__')}"
    require(held == f"{kind.__module__}.{kind.__qualname__}", f"it holds a {model.get('__class__')}, not a model")
    require(isinstance(model.get("content"), dict), "its model is empty")
    content = {**structure["content"], "model": model["content"]}
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as changed:
        for name in archive.namelist():
            if name != schema.MEMBER:
                changed.writestr(name, archive.read(name))
        changed.writestr(schema.MEMBER, json.dumps({**structure, "content": content}))
    return buffer.getvalue()


def completed(state: Any) -> Any:
    """The state of a model with the parameters that came later."""
    return {**ADDED, **state} if isinstance(state, dict) else state

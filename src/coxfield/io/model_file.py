"""Fitted models in files: one skops archive holds the model and the names of the columns it was fitted to.

A pickle can run any code when it is loaded. A skops archive cannot: it lists the types it is made of, and `load` builds
it only if all of these types are on the short list below.

The archive of format 4 has the state of the model as skops writes it, `coxfield.json` with the names of the columns,
`ids.npy` with the ids of the training rows if there are any, and a checksum of all. Format 3 has no ids. `load` checks
one thing after the other, and each check relies only on those before: the limits of the archive, the checksum, the
headers of the arrays, the structure, the types, the content, and a trial.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coxfield import LGCPClassifier, __version__
from coxfield.io import older_format, schema, training_ids
from coxfield.io.archive_limits import check_archive, parse
from coxfield.io.array_headers import check_arrays
from coxfield.io.checksum import add_checksum, check_checksum
from coxfield.io.model_content import HEADER, check_header, check_state
from coxfield.io.requirements import Unsound, quoted, require
from coxfield.io.training_ids import TrainingIds
from coxfield.io.trial import revived, try_out
from coxfield.io.trusted import TRUSTED, strangers_in
from coxfield.utils.whole_files import whole_file

try:
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException
except ImportError:
    raise ImportError("model files need skops: pip install 'coxfield[cli]'") from None

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FORMAT = "coxfield model 4"
DESCRIPTION = "coxfield.json"  # the member that has the names of the columns


class ModelFileError(ValueError):
    """A file cannot be used as a model, or a model cannot be written to a file."""


@dataclass(frozen=True)
class SavedModel:
    """A fitted model, and the names of the columns it was fitted to, as `load` returns them."""

    model: LGCPClassifier
    target: str
    """Name of the column that held the classes."""
    features: tuple[str, ...]
    """Names of the feature columns, in the order the model wants them."""
    id_column: str | None
    """Name of the column that identifies rows, if there was one."""
    version: str
    """Version of coxfield that wrote the file."""
    ids: TrainingIds | None = None
    """The id of each training row; None if the file has none."""


def check_output(path: Path) -> None:
    """Refuse a path to which no model can be written. Called before the work is done.

    The ending is required so that a table that is named by mistake is not overwritten.
    """
    if path.suffix.lower() != ".skops":
        raise ModelFileError(f"A model goes into a file that ends in .skops, and {path} does not: give it that ending")
    if not path.parent.is_dir():
        raise ModelFileError(f"There is no folder {path.parent} to write {path.name} to")


def save(
    model: LGCPClassifier,
    path: Path,
    *,
    target: str,
    features: Sequence[str],
    id_column: str | None = None,
    ids: Sequence[str] | None = None,
) -> None:
    """Write a fitted model and the names of the columns it was fitted to, whole or not at all.

    Parameters
    ----------
    model : LGCPClassifier
        Fitted. Arrays of other libraries, such as torch, become NumPy arrays in the file.
    path : Path
        Ends in ``.skops``; an existing file is replaced.
    target : str
        Name of the column that held the classes.
    features : sequence of str
        Names of the feature columns, in the order of the columns of X.
    id_column : str, optional
        Name of the column that identifies rows.
    ids : sequence of str, optional
        The id of each training row, in the order of ``model.X_fit_``.

    Raises
    ------
    ModelFileError
        `load` would refuse the file.
    FileNotWrittenError
        The disk is full, or the folder cannot be written to.
    """
    check_output(path)
    _refuse_boolean_keys(model)
    description = dict(zip(HEADER, (FORMAT, __version__, target, list(features), id_column), strict=True))
    try:
        check_is_fitted(model)
        model = model._in_numpy()  # a file has no device
        try_out(model)
        archive = _archive(_plain(model.__getstate__()), description, None if ids is None else TrainingIds(tuple(ids)))
    except Unsound as error:
        raise ModelFileError(f"The model cannot be saved, because {error}") from error
    with whole_file(path) as stream:
        stream.write(archive.getbuffer())


def _plain(state: dict) -> dict:
    """The state with the names of features as an array of text: of an array of objects, each is a part by itself."""
    if "feature_names_in_" not in state:
        return state
    return {**state, "feature_names_in_": state["feature_names_in_"].astype(str)}


def _archive(state: dict, description: dict, ids: TrainingIds | None) -> io.BytesIO:
    """The bytes of a file. What is in them is checked as `load` does it."""
    buffer = io.BytesIO()
    skops.io.dump(state, buffer)
    strangers = strangers_in(buffer.getvalue())
    if strangers:
        raise ModelFileError(
            f"A model that contains {strangers} cannot be saved, because `load` would refuse it as unsafe: "
            "use kernels of sklearn.gaussian_process.kernels and transformers of scikit-learn"
        )
    with ZipFile(buffer, "a") as archive:
        schema.check_schema(parse(archive.read(schema.MEMBER), "its structure"))
        check_arrays(archive)
        archive.writestr(DESCRIPTION, json.dumps(description, indent=2))
        if ids is not None:
            training_ids.check_ids(ids, len(state["y_fit_"]))
            archive.writestr(training_ids.MEMBER, training_ids.packed(ids))
        add_checksum(archive)
    check_archive(buffer)
    read_back = skops.io.loads(buffer.getvalue(), trusted=list(TRUSTED))
    check_state(read_back)
    check_header(description, read_back["n_features_in_"], has_ids=ids is not None)
    return buffer


def load(path: Path) -> SavedModel:
    """Read a model that `save` wrote. Only models, kernels, transformers of scikit-learn and arrays are built.

    Raises
    ------
    ModelFileError
        The file is not a model, is damaged, is of an older version, holds types that are no part of a model, or holds
        what no fit would make.
    """
    if not path.is_file():
        raise ModelFileError(f"There is no file {path}")
    try:
        description, state, packed = _read(path)
        check_state(state)
        check_header(description, state["n_features_in_"], has_ids=packed is not None)
        ids = None if packed is None else training_ids.unpacked(packed, len(state["y_fit_"]))
        model = revived(state)
    except ModelFileError:
        raise
    except Unsound as error:
        raise ModelFileError(f"{path} cannot be used as a model, because {error}: fit the model again") from error
    except Exception as error:  # damaged archives, and types that have changed since, fail in many ways
        raise ModelFileError(
            f"{path} cannot be loaded by coxfield {__version__}, because it is damaged or from another version "
            f"({type(error).__name__}: {quoted(str(error))}): fit the model again"
        ) from error
    names = description["target"], tuple(description["features"]), description["id_column"], description["version"]
    return SavedModel(model, *names, ids)


def _read(path: Path) -> tuple[dict, Any, bytes | None]:
    """What a file holds: the names of the columns, the state of the model, and the ids if there are any."""
    try:
        with path.open("rb") as stream:
            check_archive(stream)
    except BadZipFile as error:
        raise ModelFileError(f"{path} is not a model that coxfield fit wrote") from error
    except PermissionError as error:
        raise ModelFileError(f"{path} cannot be read: change its permissions") from error
    with ZipFile(path) as archive:
        if schema.MEMBER not in archive.namelist():
            raise ModelFileError(f"{path} is not a model that coxfield fit wrote")
        structure = parse(archive.read(schema.MEMBER), "its structure")
        if DESCRIPTION not in archive.namelist():
            return _read_older(path, archive, structure)
        check_checksum(archive)
        check_arrays(archive)
        schema.check_schema(structure)
        description = parse(archive.read(DESCRIPTION), "its description")
        ids = archive.read(training_ids.MEMBER) if training_ids.MEMBER in archive.namelist() else None
    form = description.get("format") if isinstance(description, dict) else None
    if form == older_format.WITHOUT_IDS:
        return description, older_format.completed(_built(path, path)), None
    if form != FORMAT:
        raise ModelFileError(f"{path} was written by another version of coxfield, whose models cannot be read")
    return description, _built(path, path), ids


def _read_older(path: Path, archive: ZipFile, structure: Any) -> tuple[dict, Any, None]:
    """The same of a file of format 2, which has no checksum."""
    form = older_format.format_of(structure)
    if form == older_format.UNREADABLE:
        raise ModelFileError(
            f"{path} was written by an older version of coxfield, whose models cannot be read: fit the model again"
        )
    if form != older_format.FORMAT:
        raise ModelFileError(f"{path} is a skops file, but not a model that this version of coxfield fit wrote")
    check_arrays(archive)
    schema.check_schema(structure)
    content = _built(older_format.with_state(archive, structure, LGCPClassifier), path)
    require(isinstance(content, dict) and "model" in content, "there is no model in it")
    return content, older_format.completed(content["model"]), None


def _built(source: Path | bytes, path: Path) -> Any:
    """What skops makes of a file or of its bytes, if all types are trusted."""
    try:
        return (skops.io.loads if isinstance(source, bytes) else skops.io.load)(source, trusted=list(TRUSTED))
    except UntrustedTypesFoundException as error:
        strangers = strangers_in(source)
        raise ModelFileError(
            f"{path} is refused as unsafe: it contains {strangers}, which is no part of a model"
        ) from error


def _refuse_boolean_keys(model: LGCPClassifier) -> None:
    """Refuse mappings with boolean keys: skops writes keys as text, and reads both keys as True."""
    for name in ("kernel", "mean"):
        value = getattr(model, name)
        if isinstance(value, Mapping) and any(isinstance(key, bool | np.bool_) for key in value):
            raise ModelFileError(
                f"A model whose {name} is given for the classes False and True cannot be saved: "
                "name the classes 0 and 1, or by strings"
            )

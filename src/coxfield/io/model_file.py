"""Fitted models in files: one skops archive holds the model and the names of the columns it was fitted to.

A pickle can run any code when it is loaded. A skops archive cannot: it lists the types it is made of, and `load` builds
it only if all of these types are on a short list (`schema`).

The archive of format 5 has the state of the model as skops writes it, `coxfield.json` with the names of the columns,
`ids.npy` with the ids of the training rows if there are any, and a checksum of all. Format 4 has densities without a
floor, over the points that a mixture was chosen from, and format 3 has no ids. `load` reads the file once, and checks
one thing after the other. Each check relies only on those before: the limits of the archive, the checksum, the headers
of the arrays, the structure and its types, the content, and a trial.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coxfield import LGCPClassifier, __version__
from coxfield.io import schema, training_ids
from coxfield.io.archive import add_checksum, check_archive, check_arrays, check_checksum, parse
from coxfield.io.model_content import HEADER, check_header, check_state
from coxfield.io.requirements import Unsound, quoted, require
from coxfield.io.training_ids import TrainingIds
from coxfield.kernels.mixture import Mixture
from coxfield.utils.whole_files import whole_file

try:
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException
except ImportError:
    raise ImportError("model files need skops: pip install 'coxfield[cli]'") from None

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

FORMAT = "coxfield model 5"
DESCRIPTION = "coxfield.json"  # the member that has the names of the columns
ROWS = 16  # of a trial
REMOTE = 240  # further rows of a trial, where scores are the largest
VALUES = 10**8  # kernel values that a trial may take
LARGEST = 1e250  # of a score of a mixture: far from the points it is a product with factors that are larger


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
    digest: str = ""
    """SHA-256 of the bytes of the file, by which `save` knows whether it has changed since."""


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
    digest: str | None = None,
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
    digest : str, optional
        That of the `SavedModel` that the model was made from. If the file has other bytes by now, it is not replaced.

    Raises
    ------
    ModelFileError
        `load` would refuse the file, or another program has changed the file that the model was made from.
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
        if digest is not None and (not path.is_file() or _digest(path.read_bytes()) != digest):
            raise ModelFileError(
                f"{path} was changed by another program since it was read, so nothing was written: run the command "
                "again"
            )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _plain(state: dict) -> dict:
    """The state with the names of features as an array of text: of an array of objects, each is a part by itself."""
    if "feature_names_in_" not in state:
        return state
    return {**state, "feature_names_in_": state["feature_names_in_"].astype(str)}


def _archive(state: dict, description: dict, ids: TrainingIds | None) -> io.BytesIO:
    """The bytes of a file. What is in them is checked as `load` does it."""
    buffer = io.BytesIO()
    skops.io.dump(state, buffer)
    with ZipFile(buffer, "a") as archive:
        schema.check_schema(parse(archive.read(schema.MEMBER), "its structure"))
        check_arrays(archive)
        archive.writestr(DESCRIPTION, json.dumps(description, indent=2))
        if ids is not None:
            training_ids.check_ids(ids, len(state["y_fit_"]))
            archive.writestr(training_ids.MEMBER, training_ids.packed(ids))
        add_checksum(archive)
    check_archive(buffer)
    read_back = _built(buffer.getvalue())
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
        content = _content(path)
        description, state, packed = _read(content, path)
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
    return SavedModel(model, *names, ids, _digest(content))


def _content(path: Path) -> bytes:
    """The bytes of a file, read once: another program may replace the file at any moment."""
    try:
        with path.open("rb") as stream:
            check_archive(stream)
            stream.seek(0)
            return stream.read()
    except BadZipFile as error:
        raise ModelFileError(f"{path} is not a model that coxfield fit wrote") from error
    except PermissionError as error:
        raise ModelFileError(f"{path} cannot be read: change its permissions") from error


def _read(content: bytes, path: Path) -> tuple[dict, Any, bytes | None]:
    """What a file holds: the names of the columns, the state of the model, and the ids if there are any."""
    check_archive(io.BytesIO(content))
    with ZipFile(io.BytesIO(content)) as archive:
        members = archive.namelist()
        if schema.MEMBER not in members:
            raise ModelFileError(f"{path} is not a model that coxfield fit wrote")
        structure = parse(archive.read(schema.MEMBER), "its structure")
        if DESCRIPTION not in members:
            return _read_format_2(archive, structure, path)
        check_checksum(archive)
        check_arrays(archive)
        schema.check_schema(structure)
        description = parse(archive.read(DESCRIPTION), "its description")
        ids = archive.read(training_ids.MEMBER) if training_ids.MEMBER in members else None
    form = description.get("format") if isinstance(description, dict) else None
    if form not in (schema.WITHOUT_IDS, schema.WITHOUT_FLOORS, FORMAT):
        raise ModelFileError(f"{path} was written by another version of coxfield, whose models cannot be read")
    state = _built(content)
    return description, state if form == FORMAT else schema.completed(state), ids


def _read_format_2(archive: ZipFile, structure: Any, path: Path) -> tuple[dict, Any, None]:
    """The same of a file of format 2, which has no checksum."""
    form = schema.format_of(structure)
    if form == schema.UNREADABLE:
        raise ModelFileError(
            f"{path} was written by an older version of coxfield, whose models cannot be read: fit the model again"
        )
    if form != schema.FORMAT_2:
        raise ModelFileError(f"{path} is a skops file, but not a model that this version of coxfield fit wrote")
    check_arrays(archive)
    structure = schema.with_state(structure, LGCPClassifier)
    schema.check_schema(structure)
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as changed:
        for name in archive.namelist():
            changed.writestr(name, json.dumps(structure) if name == schema.MEMBER else archive.read(name))
    found = _built(buffer.getvalue())
    require(isinstance(found, dict) and "model" in found, "there is no model in it")
    return found, schema.completed(found["model"]), None


def _built(content: bytes) -> Any:
    """What skops makes of an archive whose structure was checked."""
    try:
        return skops.io.loads(content, trusted=list(schema.TRUSTED))
    except UntrustedTypesFoundException as error:
        raise Unsound(f"it contains what a model file does not hold for safety ({quoted(str(error))})") from error


def revived(state: dict) -> LGCPClassifier:
    """The model of a state, after a trial."""
    if "feature_names_in_" in state:  # as scikit-learn has them
        state = {**state, "feature_names_in_": state["feature_names_in_"].astype(object)}
    model = LGCPClassifier.__new__(LGCPClassifier)
    with _refusing():
        model.__setstate__(state)
    try_out(model)
    return model


def try_out(model: LGCPClassifier) -> None:
    """Predict some of the training points. The probabilities must be finite numbers.

    The trial finds what no other check can know, such as a transformer whose parts do not fit together.
    """
    with _refusing():
        model.get_params(deep=True)  # as `set_params` and `repr` need it
        X = model.X_fit_
        if any(X.shape[0] * _values_per_point(mixture) > VALUES for mixture in _given_mixtures(model)):
            return  # the densities of all points would be computed first
        points = X[_rows(model)]
        labels, found = model.predict_with_proba(points)
        complete = found.shape == (points.shape[0], len(model.classes_))
        require(complete, "it does not predict a probability for each class")
        require(bool(np.isfinite(found).all()), "the probabilities that it predicts are not finite")
        require(bool(np.isin(labels, model.classes_).all()), "it does not predict its classes")
        largest = LARGEST if isinstance(model.kernel_, Mixture) else np.finfo(float).max
        require(bool((np.abs(model._scores(points).values) <= largest).all()), "its scores are too large to be added")


def _rows(model: LGCPClassifier) -> NDArray:
    """Training points to predict: some of them, and those of the least densities, where scores are the largest."""
    mixture = model.kernel_
    densities = mixture.log_densities if isinstance(mixture, Mixture) and hasattr(model, "mixture_") else ()
    remote = [int(row) for log_q in densities or () for row in log_q.argmin(axis=1)[:ROWS]]
    return np.unique([*np.linspace(0, model.X_fit_.shape[0] - 1, ROWS).astype(int).tolist(), *remote[:REMOTE]])


@contextmanager
def _refusing() -> Iterator[None]:
    """A context in which all that arrays which do not fit together can cause is `Unsound`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Unsound:
        raise
    except Exception as error:
        raise Unsound(f"it cannot predict its own points ({type(error).__name__}: {quoted(str(error))})") from error


def _values_per_point(mixture: Mixture) -> int:
    """How many kernel values the densities of one point take."""
    return mixture.n_reference * sum(len(ladder.factors) for ladder in mixture.ladders)


def _given_mixtures(model: LGCPClassifier) -> list[Mixture]:
    """Mixtures that were given as kernels. One that was learned knows the densities of the points already."""
    kernels = model.kernel_.values() if isinstance(model.kernel_, dict) else [model.kernel_]
    return [kernel for kernel in kernels if isinstance(kernel, Mixture) and not hasattr(model, "mixture_")]


def _refuse_boolean_keys(model: LGCPClassifier) -> None:
    """Refuse mappings with boolean keys: skops writes keys as text, and reads both keys as True."""
    for name in ("kernel", "mean"):
        value = getattr(model, name)
        if isinstance(value, Mapping) and any(isinstance(key, bool | np.bool_) for key in value):
            raise ModelFileError(
                f"A model whose {name} is given for the classes False and True cannot be saved: "
                "name the classes 0 and 1, or by strings"
            )

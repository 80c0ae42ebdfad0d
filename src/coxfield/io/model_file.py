"""Fitted models in files: the model as data, and the names of the columns it was fitted to.

A pickle can run any code when it is loaded. A model file cannot, because it holds no code, and no objects: it is an
archive with `model.json`, the arrays of the model as NumPy writes them, `ids.npy` with the ids of the training rows if
there are any, and a checksum of all (`model_data` says what is in the JSON).

`load` reads the file once, and checks one thing after the other. Each check relies only on those before: the limits of
the archive, the checksum, the headers of the arrays, the tree and its types, what fit guarantees (`model_check`), and a
trial. A small file must not take much memory or time. So members are as they are, not compressed: no member can be
larger than the file, and their sizes cannot add up to more than the file. A model of 60,000 points with 784 features is
a file of 0.4 GB with some 40 members and 0.1 MB of text.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy
from sklearn.utils.validation import check_is_fitted

from coxfield import LGCPClassifier, __version__
from coxfield.io import older_format
from coxfield.io.model_check import check_header, checked_state
from coxfield.io.model_data import Reader, Unsound, Writer, brief, is_text, quoted, require, require_array
from coxfield.kernels.mixture import Mixture
from coxfield.utils.whole_files import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

# Ids of the training rows in a model file: texts by which rows can be named, replaced and forgotten.
#
# They are one array of bytes in the archive: the texts in UTF-8, with a zero byte between two of them. An array of
# text
# would give each id as much room as the longest one takes.


IDS = "ids.npy"
BETWEEN = "\0"


@dataclass(frozen=True)
class TrainingIds:
    """One text per training row, in the order of `X_fit_`. Several rows may have the same id: those of one person."""

    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def places(self, wanted: Iterable[str]) -> NDArray:
        """Places of all rows that have one of the wanted ids."""
        names = set(wanted)
        return np.array([place for place, text in enumerate(self.texts) if text in names], dtype=int)

    def missing(self, wanted: Iterable[str]) -> list[str]:
        """Those of the wanted ids that no row has, each once, in their order."""
        known = set(self.texts)
        return [text for text in dict.fromkeys(wanted) if text not in known]

    def known(self, wanted: Iterable[str]) -> list[str]:
        """Those of the wanted ids that some row has, each once, in their order."""
        known = set(self.texts)
        return [text for text in dict.fromkeys(wanted) if text in known]

    def without(self, places: NDArray) -> TrainingIds:
        """The ids of the rows that are left."""
        gone = set(places.tolist())
        return TrainingIds(tuple(text for place, text in enumerate(self.texts) if place not in gone))

    def followed_by(self, texts: Sequence[str]) -> TrainingIds:
        """The ids with those of more rows."""
        return TrainingIds((*self.texts, *texts))


def check_ids(ids: TrainingIds, n_rows: int) -> None:
    """Refuse ids that are not texts, or not one per training row."""
    require(len(ids) == n_rows, f"it has {len(ids)} ids for {n_rows} training rows")
    require(all(is_text(text) for text in ids.texts), "an id in it is not text")
    require(all(text.strip() for text in ids.texts), "an id in it is blank")
    require(not any(BETWEEN in text for text in ids.texts), "an id in it holds a zero byte")


def packed(ids: TrainingIds) -> bytes:
    """The bytes of the member of the archive."""
    buffer = io.BytesIO()
    np.save(buffer, np.frombuffer(BETWEEN.join(ids.texts).encode(), dtype=np.uint8), allow_pickle=False)
    return buffer.getvalue()


def unpacked(content: bytes, n_rows: int) -> TrainingIds:
    """The ids of a member whose header was checked. They are counted first: each one takes memory of its own."""
    array = require_array(np.load(io.BytesIO(content), allow_pickle=False), "its list of ids", (None,), kinds="u")
    require(array.dtype == np.uint8, "its list of ids does not hold bytes")
    count = np.count_nonzero(array == 0) + 1
    require(count == n_rows, f"it has {count} ids for {n_rows} training rows")
    try:
        texts = array.tobytes().decode()
    except UnicodeDecodeError as error:
        raise Unsound("its list of ids holds text that cannot be read") from error
    ids = TrainingIds(tuple(texts.split(BETWEEN)))
    check_ids(ids, n_rows)
    return ids


FORMAT = "coxfield model 6"
MEMBER = "model.json"
CHECKSUM = "sha256.txt"  # the member that has it

START = b"PK\x03\x04"  # of an archive
FILE_BYTES = 2**32
DIRECTORY_BYTES = 2**21  # of the list of members at the end of the file
MEMBERS = 10_000
TEXT_BYTES = 2**24  # of a text in JSON
CONTAINERS = 200_000  # lists and mappings in a text; six hundred classes with a kernel each have fewer
ENDINGS = (".json", ".npy", ".npz", ".txt")
KINDS = "biufcSUmM"  # of arrays: booleans, numbers, text and dates; neither records nor objects, which would run code
READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
FREE_BYTES = 2**28  # that sparse matrices of older files may take, however small they are when compressed
RATIO = 16  # by which larger ones may have been compressed; column numbers are seldom compressed by 10
CHUNK = 2**20  # bytes that are read at a time
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # when all members were written: the same model is the same bytes

LETTERS = 300  # of what a check of the estimator says
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
    names = {"version": __version__, "target": target, "features": list(features), "id_column": id_column}
    try:
        check_is_fitted(model)
        model = model._in_numpy()  # a file has no device
        try_out(model)
        archive = _archive(model, names, None if ids is None else TrainingIds(tuple(ids)))
    except (Unsound, RecursionError) as error:
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


def _parts(model: LGCPClassifier) -> dict[str, Any]:
    """The state of a model. A mixture that was learned from the training points does not hold them again."""
    state = model.__getstate__()
    if "mixture_" in state and isinstance(state["kernel_"], Mixture):
        mixture = state["kernel_"]
        state["kernel_"] = Mixture(mixture.ladders, None, None, mixture.log_densities)
    return state


def _archive(model: LGCPClassifier, names: dict[str, Any], ids: TrainingIds | None) -> io.BytesIO:
    """The bytes of a file. What is in them is checked as `load` does it."""
    write = Writer()
    text = json.dumps({"format": FORMAT, **names, "model": write.parts(_parts(model))}).encode()
    found = parse(text, "its text")
    state = _state(found["model"], Reader(write.arrays.__getitem__))
    check_header(found, state["n_features_in_"], has_ids=ids is not None)
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        _add(archive, MEMBER, text)
        for name, array in write.arrays.items():
            with archive.open(ZipInfo(name, LONG_AGO), "w", force_zip64=True) as stream:
                npy.write_array(stream, array, allow_pickle=False)
        if ids is not None:
            check_ids(ids, len(state["y_fit_"]))
            _add(archive, IDS, packed(ids))
        add_checksum(archive)
    require(buffer.tell() <= FILE_BYTES, f"it would have {buffer.tell()} bytes, more than {FILE_BYTES}")
    return buffer


def _add(archive: ZipFile, name: str, content: bytes | str) -> None:
    archive.writestr(ZipInfo(name, LONG_AGO), content)


def _state(data: Any, read: Reader) -> dict[str, Any]:
    require(type(data) is dict, "there is no model in it")
    try:
        return checked_state({name: read(part) for name, part in data.items()})
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, Unsound) else Unsound(brief(str(error), LETTERS)) from error


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
        header, state, packed = _read(content, path)
        check_header(header, state["n_features_in_"], has_ids=packed is not None)
        ids = None if packed is None else unpacked(packed, len(state["y_fit_"]))
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
    names = header["target"], tuple(header["features"]), header["id_column"], header["version"]
    return SavedModel(model, *names, ids, _digest(content))


def _content(path: Path) -> bytes:
    """The bytes of a file, read once: another program may replace the file at any moment."""
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            require(size <= FILE_BYTES, f"it has {size} bytes, more than {FILE_BYTES}")
            start = stream.read(len(START))
            return start + stream.read(size) if start == START else b""
    except PermissionError as error:
        raise ModelFileError(f"{path} cannot be read: change its permissions") from error


def _read(content: bytes, path: Path) -> tuple[dict, dict[str, Any], bytes | None]:
    """What a file holds: the names of the columns, the state of the model, and the ids if there are any."""
    try:
        check_archive(content)
    except BadZipFile as error:
        raise ModelFileError(f"{path} is not a model that coxfield fit wrote") from error
    with ZipFile(io.BytesIO(content)) as archive:
        members = archive.namelist()
        if older_format.MEMBER in members:
            header, read = _read_older(archive, path)
        elif MEMBER in members:
            check_checksum(archive)
            header, read = parse(archive.read(MEMBER), "its text"), Reader(lambda name: _array(archive, name))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise _other_version(path)
        else:
            raise ModelFileError(f"{path} is not a model that coxfield fit wrote")
        ids = archive.read(IDS) if IDS in members else None
        if ids is not None:
            _check_array(archive, archive.getinfo(IDS))
        return header, _state(header.get("model"), read), ids


def _other_version(path: Path) -> ModelFileError:
    return ModelFileError(f"{path} was written by another version of coxfield, whose models cannot be read")


def _read_older(archive: ZipFile, path: Path) -> tuple[dict, Reader]:
    """The same of a file of formats 2 to 5."""
    structure, description = parse(archive.read(older_format.MEMBER), "its structure"), None
    if older_format.DESCRIPTION in archive.namelist():
        check_checksum(archive)
        description = parse(archive.read(older_format.DESCRIPTION), "its description")
    form = older_format.format_of(structure, description)
    if form == older_format.UNREADABLE:
        raise ModelFileError(
            f"{path} was written by an older version of coxfield, whose models cannot be read: fit the model again"
        )
    if form not in older_format.FORMATS:
        if description is not None:
            raise _other_version(path)
        raise ModelFileError(f"{path} is a skops file, but not a model that this version of coxfield fit wrote")
    require(archive.testzip() is None, "it is damaged, and no longer as it was written")
    _check_packed(archive)
    translation = older_format.Translation(lambda name: _array(archive, name))
    header = translation.description(structure, description)
    return header, Reader(
        lambda name: _array(archive, name) if name not in translation.more else translation.more[name]
    )


def revived(state: dict[str, Any]) -> LGCPClassifier:
    """The model of a state, after a trial."""
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
        X, learned = model.X_fit_, hasattr(model, "mixture_")
        used = model.kernel_.values() if isinstance(model.kernel_, dict) else [model.kernel_]
        given = [mixture for mixture in used if isinstance(mixture, Mixture) and not learned]
        factors = sum(mixture.n_reference * len(ladder.factors) for mixture in given for ladder in mixture.ladders)
        if X.shape[0] * factors > VALUES:
            return  # the densities of all points would be computed first
        points = X[_rows(model)]
        scores = model._scores_of(points)
        found = np.exp(scores.log_probabilities)
        complete = found.shape == (points.shape[0], len(model.classes_))
        require(complete, "it does not predict a probability for each class")
        require(bool(np.isfinite(found).all()), "the probabilities that it predicts are not finite")
        largest = LARGEST if isinstance(model.kernel_, Mixture) else np.finfo(float).max
        require(bool((np.abs(scores.values) <= largest).all()), "its scores are too large to be added")


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


# The archive: its limits, the headers of its arrays, and its checksum.


class ShortReads(io.BytesIO):
    """Bytes that refuse to be read many at a time: `ZipFile` reads the list of members in one piece."""

    def read(self, size: int | None = -1) -> bytes:
        """At most so many bytes; all that are left if there is no number."""
        found = super().read(DIRECTORY_BYTES + 1 if size is None or size < 0 else min(size, DIRECTORY_BYTES + 1))
        require(len(found) <= DIRECTORY_BYTES, "its list of members is too long")
        return found


def check_archive(content: bytes) -> None:
    """Refuse an archive whose members, by their number, kind and size, are not those of a model.

    Raises
    ------
    Unsound
        A limit is exceeded.
    BadZipFile
        It is not an archive.
    """
    with ZipFile(ShortReads(content)) as archive:
        members = archive.infolist()
    require(len(members) <= MEMBERS, f"it has {len(members)} members, more than {MEMBERS}")
    require(len({member.filename for member in members}) == len(members), "two of its members have the same name")
    for member in members:
        name = quoted(member.filename)
        require(member.filename.endswith(ENDINGS), f"its member {name} is not a part of a model")
        require(member.compress_type == ZIP_STORED, f"its member {name} is compressed, which no part of a model is")
        require(member.file_size == member.compress_size, f"its member {name} has two different sizes")
        is_text = member.filename.endswith((".json", ".txt"))
        require(not is_text or member.file_size <= TEXT_BYTES, f"its member {name} is too long for a text")
    total = sum(member.file_size for member in members)
    require(total <= len(content), f"its members claim {total} bytes, but the file has {len(content)}")


def parse(text: bytes, what: str) -> Any:
    """A text in JSON, which has not too many parts; this is known before it is parsed."""
    require(text.count(b"[") + text.count(b"{") <= CONTAINERS, f"{what} has too many parts")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise Unsound(f"{what} is nested too deeply") from error


def _array(archive: ZipFile, name: str) -> NDArray:
    """An array of the archive. Its header is checked before memory is taken for it."""
    whole, _, part = name.partition("/")
    require(whole in archive.namelist() and whole.endswith((".npy", ".npz")), f"its array {quoted(name)} is missing")
    if part:  # of a sparse matrix of an older file, whose size has been checked
        with archive.open(whole) as stream, ZipFile(stream) as parts:
            return _array(parts, part)
    _check_array(archive, archive.getinfo(whole))
    with archive.open(whole) as stream:
        return npy.read_array(stream, allow_pickle=False)


def _check_array(archive: ZipFile, member: ZipInfo) -> None:
    """Refuse an array whose header announces what is not there."""
    name = quoted(member.filename)
    with archive.open(member) as stream:
        announced = _announced(stream, name)
        found = member.file_size - stream.tell()
    require(announced == found, f"its array {name} announces {announced} bytes, but has {found}")


def _announced(stream: IO[bytes], name: str) -> int:
    """The number of bytes that the array of a header takes."""
    try:
        reader = READERS[npy.read_magic(stream)]
        shape, _, dtype = reader(stream)
    except Exception as error:  # a header is a piece of Python, which can be wrong in many ways
        raise Unsound(f"its array {name} has a damaged header") from error
    plain = dtype.kind in KINDS and dtype.fields is None and dtype.subdtype is None and not dtype.hasobject
    require(plain, f"its array {name} does not hold numbers or text")
    require(all(length >= 0 for length in shape), f"its array {name} has a negative length")
    values = math.prod(shape)
    require(values <= 1 or dtype.itemsize > 0, f"its array {name} has values without any size")
    return values * dtype.itemsize


def _check_packed(archive: ZipFile) -> None:
    """Refuse an older file whose sparse matrices, which are compressed, would take much memory."""
    packed = unpacked = 0
    for member in archive.infolist():
        if member.filename.endswith(".npz"):
            with archive.open(member) as stream, ZipFile(ShortReads(stream.read())) as parts:
                known = all(part.compress_type in (ZIP_STORED, ZIP_DEFLATED) for part in parts.infolist())
                require(known, f"its member {quoted(member.filename)} is not a sparse matrix")
                unpacked += sum(part.file_size for part in parts.infolist())
            packed += member.file_size
    fits = unpacked <= max(FREE_BYTES, RATIO * packed)
    require(fits, f"its sparse matrices take {unpacked} bytes when they are unpacked")


def checksum(archive: ZipFile) -> str:
    """SHA-256 of the names, the sizes and the bytes of all members in their order, without that of the checksum.

    By it damage is found. It is not a signature: anyone can compute it.
    """
    found = hashlib.sha256()
    for member in archive.infolist():
        if member.filename == CHECKSUM:
            continue
        found.update(f"{member.filename}\0{member.file_size}\0".encode())
        with archive.open(member) as stream:
            while part := stream.read(CHUNK):
                found.update(part)
    return found.hexdigest()


def add_checksum(archive: ZipFile) -> None:
    """Write the checksum as the last member."""
    _add(archive, CHECKSUM, checksum(archive))


def check_checksum(archive: ZipFile) -> None:
    """Refuse an archive whose bytes are not those that were written."""
    require(CHECKSUM in archive.namelist(), "it has lost its checksum")
    require(archive.read(CHECKSUM) == checksum(archive).encode(), "it is damaged, and no longer as it was written")

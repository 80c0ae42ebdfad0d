"""The rows to label: points for the model, and what a person sees of each row."""

from __future__ import annotations

import hashlib
import math
import re
import struct
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.fft import dct
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from coxfield.estimators.tables import TableColumns, TableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from coxfield.io.columns import Table

TOPICS = 100  # dimensions of a text
COMPONENTS = 100  # of many columns; neighbours are hardly others then, and are found faster
FEWEST_ROWS = 5  # below this, neighbours mean nothing
PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}
WORDS = 3  # words in a cell, on average, from which a column is a text
UNIT = re.compile(r"^(?P<name>.*\S)\s*[(\[](?P<unit>[^()\[\]]{1,12})[)\]]$")


@dataclass(frozen=True)
class Rows:
    """What is to be labelled."""

    name: str
    """The table, as people call it."""
    target: str
    """The column of labels."""
    X: NDArray
    """Points for the model, shape (n, d)."""
    cells: Mapping[str, Sequence]
    """Columns that the card shows: name -> n values."""
    start: Sequence[str | None]
    """Labels that are there already."""
    texts: Sequence[str] | None = None
    images: Sequence[Path | None] | NDArray | None = None
    """Files, or pictures as an array of bytes of shape (n, height, width) or (n, height, width, 3)."""
    guesses: Sequence[str | None] | None = None
    """What somebody else thinks the labels are."""
    mark: str = ""
    """A digest of the table."""

    def __len__(self) -> int:
        return len(self.X)

    def picture(self, row: int) -> tuple[bytes, str] | None:
        """The bytes of the picture of a row and their kind; None if there is none."""
        if self.images is None:
            return None
        image = self.images[row]
        if isinstance(image, np.ndarray):
            return png(image), "image/png"
        if image is None or not image.is_file():
            return None
        return image.read_bytes(), PICTURES[image.suffix.lower()]

    def card(self, row: int, most: int = 80) -> list[dict[str, Any]]:
        """The cells of a row: name, unit, value, and the share of rows with a smaller number."""
        found = []
        for name in list(self.cells)[:most]:
            values = self.cells[name]
            parts = UNIT.match(name)
            cell = {"name": parts["name"] if parts else name, "unit": parts["unit"] if parts else ""}
            value = values[row]
            cell["value"] = shown(value)
            if isinstance(values, np.ndarray) and values.dtype.kind in "fiu" and not math.isnan(value):
                below, same = np.count_nonzero(values < value), np.count_nonzero(values == value)
                cell["rank"] = round((below + same / 2) / np.count_nonzero(values == values), 4)
            found.append(cell)
        return found


def shown(value: Any) -> str:
    """A cell as text."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def png(image: NDArray) -> bytes:
    """An array of bytes, grey or red-green-blue, as a PNG file."""
    height, width = image.shape[:2]
    colour = 0 if image.ndim == 2 else 2
    lines = np.zeros((height, 1 + image[0].size), np.uint8)  # each line starts with its filter, 0
    lines[:, 1:] = image.reshape(height, -1)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 1)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def from_arrays(
    X: Any,
    y: Any = None,
    *,
    images: Any = None,
    texts: Sequence[str] | None = None,
    guesses: Sequence | None = None,
    missing_label: Any = None,
    name: str = "rows",
    target: str = "label",
    columns: Sequence[str] | None = None,
) -> Rows:
    """Rows of arrays and data frames, for `coxfield.studio.open`."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    cells, points = _points(X, columns, standardised=False)
    parts = [points] + ([_topics(list(texts))] if texts is not None and not points.shape[1] else [])
    points = _checked(np.hstack(parts), name)
    for what, given in (("y", y), ("texts", texts), ("images", images), ("prior", guesses)):
        if given is not None and len(given) != n:
            raise ValueError(f"{what} has {len(given)} entries, but X has {n} rows: give one for each row")
    return Rows(
        name,
        target,
        points,
        cells,
        _labels(y, n, missing_label),
        texts=None if texts is None else [str(text) for text in texts],
        images=None if images is None else _pictures(images),
        guesses=None if guesses is None else _labels(guesses, n, missing_label),
        mark="sha256:" + hashlib.sha256(np.ascontiguousarray(points).tobytes()).hexdigest(),
    )


def from_table(
    table: Table,
    path: Path,
    *,
    target: str,
    features: Sequence[str],
    image: str | None = None,
    pixels: tuple[int, int] | None = None,
    text: str | None = None,
    guesses: Sequence[str | None] | None = None,
    standardised: bool = True,
) -> Rows:
    """Rows of a table that was read from `path`. Pictures are files in its folder, or below."""
    frame = table.rows
    texts = [name for name in features if name == text or (text is None and _is_text(frame[name]))]
    plain = [name for name in features if name not in texts and name != image]
    try:
        numbers = frame.select(plain) if plain else np.zeros((len(frame), 0))
        cells, points = _points(numbers, plain, standardised=standardised and pixels is None)
    except TableError as error:
        raise TableError(str(error).replace(" of X ", f" of {table.name} ")) from None
    words = [" ".join(shown(frame[name][row]) for name in texts) for row in range(len(frame))] if texts else None
    if words is not None:
        points = np.hstack([points, _topics(words)])
    start = _column(frame[target]) if target in frame.columns else [None] * len(frame)
    return Rows(
        path.name,
        target,
        _checked(points, table.name),
        {} if pixels else {name: values for name, values in cells.items() if name != text},
        start,
        texts=words,
        images=_of_pixels(points, pixels, table.name) if pixels else _files(frame, image, path, table.name),
        guesses=guesses,
        mark=digest(path),
    )


def digest(path: Path) -> str:
    """What is in a file, as a short text."""
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def _points(X: Any, names: Sequence[str] | None, *, standardised: bool) -> tuple[dict[str, Sequence], NDArray]:
    """Cells for people, and points for the model."""
    if isinstance(X, list | tuple):
        X = np.asarray(X)
    if getattr(X, "ndim", 2) != 2:
        raise ValueError(f"X must have a row for each thing to label and a column for each feature, got {X.ndim} axes")
    if X.shape[1] == 0:
        return {}, np.zeros((X.shape[0], 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an id is left out, and the card shows it
        found = TableColumns.of(X)
    if isinstance(X, np.ndarray):
        labels = names if names is not None else [f"x{k + 1}" for k in range(X.shape[1])]
        cells: dict[str, Sequence] = dict(zip(labels, X.T, strict=True))
    else:
        cells = {str(name): _values(X[name]) for name in X.columns}
    points = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X, float) if found is None else found.points(X)
    n_numbers = points.shape[1] if found is None else found.n_numbers
    if standardised and n_numbers:
        numbers = points[:, :n_numbers]
        spread = numbers.std(axis=0)
        points = points.astype(float)
        points[:, :n_numbers] = (numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return cells, points


def _values(column: Any) -> Any:
    values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    return values if values.dtype.kind in "fiu" else column.to_list()


def _checked(points: NDArray, name: str) -> NDArray:
    if points.shape[1] == 0:
        raise TableError(f"{name} has no column that can be compared: give numbers, categories, or a text with --text")
    if len(points) < FEWEST_ROWS:
        raise TableError(f"{name} has {len(points)} rows: the studio needs at least {FEWEST_ROWS} to compare")
    if not np.isfinite(points).all():
        raise TableError(f"{name} holds infinite numbers: remove them, or leave the cells blank")
    if not (points - points[0]).any():
        raise TableError(f"{name} has the same features in all rows, so they cannot be told apart: add features")
    return points


def reduced(X: NDArray) -> NDArray:
    """Points in the space of their first principal components, if there are many columns."""
    if X.shape[1] <= COMPONENTS:
        return X
    return _turned(PCA(COMPONENTS, svd_solver="covariance_eigh").fit_transform(X)).astype(np.float32)


def _turned(components: NDArray) -> NDArray:
    """The same points in other axes, along which they vary about alike. All distances stay.

    Principal components vary very differently. `SLGCPClassifier` would take them for columns in units of their own.
    """
    return dct(components, norm="ortho", axis=1)


def _topics(texts: Sequence[str]) -> NDArray:
    """Texts as points: directions of words that go together."""
    try:
        words = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2)).fit_transform(texts)
    except ValueError:
        raise TableError("the texts have no word in common, so they cannot be compared: give other columns") from None
    size = min(TOPICS, words.shape[1] - 1, words.shape[0] - 1)
    if size < 1:
        return np.asarray(words.todense())
    return _turned(normalize(TruncatedSVD(size, random_state=0).fit_transform(words)))


def _is_text(column: Any) -> bool:
    """Whether a column of polars holds sentences: many words in a cell, and hardly two cells alike."""
    if str(column.dtype) != "String":
        return False
    present = column.drop_nulls()
    if len(present) < FEWEST_ROWS or present.n_unique() <= len(present) / 2:
        return False
    return bool(np.mean([len(value.split()) for value in present.head(200)]) > WORDS)


def _column(column: Any) -> list[str | None]:
    """A column of labels as text, None where it is blank."""
    from coxfield.io.columns import blank

    empty = blank(column).to_list()
    written = [str(value).lower() if isinstance(value, bool) else str(value) for value in column.to_list()]
    return [None if none else text for none, text in zip(empty, written, strict=True)]


def labels_of(table: Table, name: str) -> list[str | None]:
    """A column of a table as labels."""
    table.require([name])
    return _column(table.rows[name])


def _labels(y: Any, n: int, missing: Any) -> list[str | None]:
    if y is None:
        return [None] * n
    return [None if value is None or value != value or value == missing else str(value) for value in list(y)]


def _of_pixels(points: NDArray, size: tuple[int, int], name: str) -> NDArray:
    height, width = size
    if points.shape[1] != height * width:
        raise TableError(
            f"--pixels {height}x{width} needs {height * width} columns of numbers, but {name} has {points.shape[1]}: "
            "name the pixels with --feature, or leave other columns out with --drop"
        )
    return _as_bytes(points.reshape(-1, height, width))


def _as_bytes(images: NDArray) -> NDArray:
    if images.dtype == np.uint8:
        return images
    low, high = float(images.min()), float(images.max())
    return np.round((images - low) * (255 / ((high - low) or 1))).astype(np.uint8)


def _pictures(images: Any) -> Sequence[Path | None] | NDArray:
    if isinstance(images, np.ndarray) and images.ndim in (3, 4):
        if images.ndim == 4 and images.shape[3] != 3:
            raise ValueError(f"images must be of shape (n, height, width) or (n, height, width, 3), got {images.shape}")
        return _as_bytes(images)
    return [_checked_kind(Path(image).resolve()) for image in images]


def _checked_kind(path: Path) -> Path:
    if path.suffix.lower() not in PICTURES:
        raise ValueError(f"{path.name} is not a picture that a browser shows: give {', '.join(PICTURES)}")
    return path


def _files(frame: Any, image: str | None, path: Path, name: str) -> Sequence[Path | None] | None:
    """Files that a column names, relative to the folder of the table. Files outside of it are refused."""
    if image is None:
        return None
    folder = path.resolve().parent
    found: list[Path | None] = []
    for row, value in enumerate(frame[image].to_list()):
        if value is None or not str(value).strip():
            found.append(None)
            continue
        place = (folder / str(value)).resolve()
        if not place.is_relative_to(folder):
            raise TableError(
                f"Column {image!r} of {name} names {value!r} in row {row + 1}, which is outside of the folder of the "
                "table: pictures must be in this folder, or below it"
            )
        found.append(_checked_kind(place))
    return found

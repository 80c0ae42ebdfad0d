"""Tables in files: CSV, gzipped CSV, Parquet and what only looks like it, with cells of all kinds."""

import gzip
from dataclasses import dataclass
from io import BytesIO

import numpy as np
import polars as pl
from hypothesis import strategies as st

from fuzz.chance import generator_seeds, happens, mostly

CELLS = {
    "classes": ["cat", "dog", "cow"],
    "codes": ["0", "1", "2"],
    "flags": ["true", "false"],
    "zeros": ["007", "08", "7"],
    "odd": ["", " ", "nan", "null", "NA", "a,b", 'a"b', "ä", "-1", "1e5", "1.5"],
    "dates": ["2020-01-01", "2021-02-03"],
}
NAMES = ["length", "width", "height", "given", "probability_cat", "", "ä ö", "a,b", "-o", "species", "x" * 300]
ENDINGS = [".csv", ".csv", ".csv", ".csv.gz", ".parquet"]
WRONG_ENDINGS = [".json", ".txt", "", ".CSV", ".skops", ".parquet.gz"]


@dataclass(frozen=True)
class Table:
    """Columns of text, and the format in which they are written."""

    columns: tuple[tuple[str, tuple[str, ...]], ...]
    ending: str = ".csv"
    fault: str = ""

    @property
    def names(self):
        """Names of the columns."""
        return [name for name, _ in self.columns]

    def content(self):
        """The bytes of the file."""
        return _faulty(self._whole(), self.fault)

    def _whole(self):
        text = "\n".join(",".join(map(_quoted, row)) for row in [self.names, *self._rows()]) + "\n"
        if self.ending in (".csv.gz", ".parquet.gz"):
            return gzip.compress(text.encode(), mtime=0)
        if self.ending == ".parquet" and len(set(self.names)) == len(self.names):
            stream = BytesIO()
            pl.DataFrame({name: _typed(cells) for name, cells in self.columns}).write_parquet(stream)
            return stream.getvalue()
        return text.encode()

    def _rows(self):
        return list(zip(*(cells for _, cells in self.columns), strict=True))


def _quoted(cell):
    return f'"{cell.replace(chr(34), chr(34) * 2)}"' if set(cell) & set(',"\n') else cell


def _typed(cells):
    """Cells of a Parquet column: numbers if all of them are, otherwise text with null for blank."""
    try:
        return [float(cell) for cell in cells]
    except ValueError:
        return [cell or None for cell in cells]


def _faulty(content, fault):
    if fault == "cut":
        return content[: len(content) // 2]
    if fault == "bytes":
        return content[: len(content) // 3] + bytes(range(256)) + content[len(content) // 3 :]
    return {"empty": b"", "json": b'[{"length": 1}]', "semicolons": content.replace(b",", b";")}.get(fault, content)


@st.composite
def numbers(draw, n):
    """Cells of a feature: numbers of one magnitude, seldom with something else among them."""
    rng = np.random.default_rng(draw(generator_seeds()))
    scale = mostly(draw, [0, 0, 0, -3, 5], [-320, -150, 150, 307, 12], percent=20)
    values = rng.normal(size=n) + (0 if not happens(draw, 30) else 1e8)
    cells = [repr(float(value) * 10.0**scale) for value in values]
    if happens(draw, 15):
        cells = [str(value) for value in rng.integers(-3, 4, n)]
    if happens(draw, 5):
        cells[draw(st.integers(0, n - 1))] = draw(st.sampled_from([*CELLS["odd"], "inf", "1e400", "9" * 30]))
    return tuple(cells)


@st.composite
def classes(draw, n, *, blank):
    """Cells of a target: mostly all known, or, if some must be blank, blank in most rows."""
    kind = mostly(draw, ["classes", "codes", "classes", "flags"], list(CELLS), percent=12)
    rng = np.random.default_rng(draw(generator_seeds()))
    cells = [CELLS[kind][code] for code in rng.integers(len(CELLS[kind]), size=n)]
    if happens(draw, 5):
        cells[:] = cells[:1] * n
    if blank and not happens(draw, 4):
        cells = [cell if row % 3 == 0 else "" for row, cell in enumerate(cells)]
    elif happens(draw, 4):
        cells[draw(st.integers(0, n - 1))] = ""
    return tuple(cells)


@st.composite
def tables(draw, *, blank=False):
    """A table with features, a target called species, and sometimes weights, ids and odd names."""
    n = draw(st.integers(4, 30)) if not happens(draw, 8) else draw(st.integers(1, 3))
    columns = [(name, draw(numbers(n))) for name in NAMES[: draw(st.integers(1, 3))]]
    columns.append(("species", draw(classes(n, blank=blank))))
    if happens(draw, 25):
        columns.append(("weight", tuple(str(row % 4) for row in range(n))))
    if happens(draw, 25):
        columns.append(("name", tuple(f"{row:03d}" for row in range(n))))
    if happens(draw, 12):
        columns.append((draw(st.sampled_from(NAMES)), draw(numbers(n))))
    fault = draw(st.sampled_from(["cut", "bytes", "empty", "json", "semicolons"])) if happens(draw, 6) else ""
    return Table(tuple(columns), mostly(draw, ENDINGS, WRONG_ENDINGS, percent=5), fault)

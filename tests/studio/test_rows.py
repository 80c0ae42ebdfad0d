"""Rows: points for the model, and cells, pictures and texts for people."""

import struct
import zlib

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA

from coxfield.graphs.units import units_for
from coxfield.io import tables
from coxfield.studio.layout import neighbour_places, principal_places
from coxfield.studio.rows import from_arrays, from_table, png, reduced
from tolerances import assert_close

RNG = np.random.default_rng(0)


def table(folder, frame, **options):
    path = folder / "data.csv"
    pl.DataFrame(frame).write_csv(path)
    read = tables.read(path)
    features = [name for name in read.rows.columns if name != "label"]
    return from_table(read, path, **({"target": "label", "features": features} | options))


def decoded(content):
    """The rows of bytes of a PNG, as its specification says."""
    width, height, depth, colour = struct.unpack(">IIBB", content[16:26])
    start = content.index(b"IDAT") + 4
    (size,) = struct.unpack(">I", content[start - 8 : start - 4])
    lines = np.frombuffer(zlib.decompress(content[start : start + size]), np.uint8).reshape(height, -1)
    assert depth == 8
    assert (lines[:, 0] == 0).all()
    return lines[:, 1:].reshape((height, width) if colour == 0 else (height, width, 3))


@pytest.mark.parametrize("shape", [(5, 7), (4, 3, 3)])
def test_pictures_are_written_as_they_are(shape):
    image = RNG.integers(0, 256, shape).astype(np.uint8)
    assert (decoded(png(image)) == image).all()


def test_a_mixed_table_becomes_points_with_comparable_columns(tmp_path):
    n = 200
    rows = table(
        tmp_path,
        {
            "length (cm)": RNG.normal(1000, 300, n),
            "colour": RNG.choice(["red", "blue"], n),
            "label": ["x"] + [""] * (n - 1),
        },
    )
    numbers = rows.X[:, 0]
    assert (numbers.mean(), numbers.std()) == (pytest.approx(0), pytest.approx(1))
    assert set(np.unique(rows.X[:, 1:])) == {0, 1}
    assert rows.start[:2] == ["x", None]
    cell = rows.card(int(np.argmax(numbers)))[0]
    assert (cell["name"], cell["unit"]) == ("length", "cm")
    assert cell["rank"] == pytest.approx(1 - 0.5 / n)
    assert rows.card(0)[1]["value"] in ("red", "blue")


def test_blanks_do_no_harm(tmp_path):
    rows = table(tmp_path, {"a": [1.0, None, 3.0, 4.0, 5.0, 9.0], "b": ["x", "", "y", "x", "y", "x"]})
    assert np.isfinite(rows.X).all()
    assert rows.card(1)[0]["value"] == ""
    assert "rank" not in rows.card(1)[0]


def test_sentences_are_compared_by_their_words(tmp_path):
    words = [["the cat sat on a mat", "stocks fell by two percent today"][k % 2] + f" number {k}" for k in range(40)]
    rows = table(tmp_path, {"abstract": words})
    assert rows.texts[3] == words[3]
    gaps = np.linalg.norm(rows.X[:, None] - rows.X, axis=2)
    assert gaps[0, 2] < gaps[0, 1]


def test_pixels_are_pictures_and_points_as_they_are(tmp_path):
    frame = {f"p{k}": RNG.integers(0, 17, 30) for k in range(6)}
    frame["p0"][0], frame["p1"][0] = 16, 0
    rows = table(tmp_path, frame, pixels=(2, 3))
    assert rows.X[0, 0] == 16
    image = decoded(rows.picture(0)[0])
    assert image.shape == (2, 3)
    assert (image[0, 0], image[0, 1]) == (255, 0)
    with pytest.raises(ValueError, match=r"--pixels 3x3 needs 9 columns of numbers, but .* has 6"):
        table(tmp_path, frame, pixels=(3, 3))


def test_pictures_are_files_below_the_folder_of_the_table(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.png").write_bytes(png(np.zeros((2, 2), np.uint8)))
    frame = {"z": RNG.normal(size=6), "path": ["a/x.png", *["a/gone.png"] * 5]}
    rows = table(tmp_path, frame, image="path")
    assert rows.picture(0)[1] == "image/png"
    assert rows.picture(1) is None
    for outside in ("../secret.png", "/etc/secret.png", "a/../../secret.png"):
        with pytest.raises(ValueError, match="outside of the folder of the table"):
            table(tmp_path, frame | {"path": [outside, *["a/x.png"] * 5]}, image="path")
    with pytest.raises(ValueError, match=r"page.html is not a picture"):
        table(tmp_path, frame | {"path": ["page.html", *["a/x.png"] * 5]}, image="path")


def test_a_link_that_leads_outside_is_refused(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.png").write_bytes(b"secret")
    (inside / "link.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(ValueError, match="outside of the folder"):
        table(inside, {"z": RNG.normal(size=6), "path": ["link.png"] * 6}, image="path")


@pytest.mark.parametrize(
    ("X", "options", "sentence"),
    [
        (np.zeros((10, 2)), {}, "the same features in all rows"),
        (np.arange(6.0).reshape(3, 2), {}, "has 3 rows: the studio needs at least 5"),
        (np.zeros((10, 0)), {}, "no column that can be compared"),
        (np.arange(20.0).reshape(10, 2), {"y": [1, 2]}, "y has 2 entries, but X has 10 rows"),
        (np.full((10, 2), np.inf), {}, "infinit"),
        (np.arange(10.0), {}, "got 1 axes"),
        (np.arange(20.0).reshape(10, 2), {"images": np.zeros((10, 2, 2, 4))}, "images must be of shape"),
    ],
)
def test_arrays_that_cannot_be_labelled(X, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        from_arrays(X, **options)


def test_data_frames_and_labels_that_are_missing():
    frame = pd.DataFrame({"a": RNG.normal(size=8), "b": list("xyxyxyxy")})
    rows = from_arrays(frame, [1, -1, np.nan, 2, -1, -1, -1, -1], missing_label=-1)
    assert rows.start[:4] == ["1", None, None, "2"] or rows.start[:4] == ["1.0", None, None, "2.0"]
    assert [cell["name"] for cell in rows.card(0)] == ["a", "b"]


def test_texts_alone_are_points():
    rows = from_arrays(np.zeros((8, 0)), texts=["red apple pie", "blue sky day"] * 4)
    assert len(rows) == 8
    assert np.linalg.norm(rows.X[0] - rows.X[2]) < np.linalg.norm(rows.X[0] - rows.X[1])


def test_many_columns_of_one_unit_become_few_of_one_unit():
    X = np.cumsum(RNG.normal(size=(300, 150)), axis=1)  # a few directions have nearly all of the variance
    points = reduced(X)
    assert points.shape == (300, 100)
    assert [one.name for one in units_for(X)] == [one.name for one in units_for(points)] == [""]
    components = PCA(100).fit_transform(X)
    assert [one.name for one in units_for(components)] != [""]
    size = np.linalg.norm(X, axis=1).max()
    assert_close(pdist(points).astype(np.float32), pdist(components), terms=150, scale=size)


def test_neighbours_stay_together_on_the_map():
    centres = np.repeat(np.eye(6)[:4] * 20, 50, axis=0)
    X = centres + RNG.normal(size=(200, 6))
    at = neighbour_places(X, np.random.default_rng(0))
    assert (at.shape, at.dtype) == ((200, 2), np.float32)
    assert np.abs(at).max() <= 1
    gaps = np.linalg.norm(at[:, None] - at, axis=2)
    np.fill_diagonal(gaps, np.inf)
    assert (gaps.argmin(axis=1) // 50 == np.arange(200) // 50).all()


@pytest.mark.parametrize("shape", [(30, 1), (30, 2), (8, 40), (5, 3)])
def test_small_and_flat_data_have_a_map_too(shape):
    X = RNG.normal(size=shape)
    for at in (principal_places(X), neighbour_places(X, RNG)):
        assert at.shape == (shape[0], 2)
        assert np.isfinite(at).all()
        assert np.abs(at).max() <= 1

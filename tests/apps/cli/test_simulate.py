"""`coxfield simulate`: the library's patterns, written whole or not at all."""

import sys
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

import command_line
from command_line import run
from coxfield.process import LogGaussianCoxProcess

PLANE = ["--window", "0", "4", "0", "3"]
SMALL = ["--resolution", "32", "--seed", "7"]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def simulate(*arguments, code=0):
    return run("simulate", *arguments, code=code)


def refusal(*arguments, code=1):
    return " ".join(command_line.refusal("simulate", *arguments, code=code).split())


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("rbf", 0.5 * RBF(0.8)),
        ("exponential", 0.5 * Matern(0.8, nu=0.5)),
        ("matern32", 0.5 * Matern(0.8, nu=1.5)),
        ("matern52", 0.5 * Matern(0.8, nu=2.5)),
    ],
)
def test_points_are_those_of_the_library(name, kernel):
    simulate(*PLANE, *SMALL, "-l", 0.8, "--variance", 0.5, "--mean", 1.5, "-k", name, "-o", "pattern.parquet")
    expected = LogGaussianCoxProcess(kernel, 1.5).sample([(0, 4), (0, 3)], resolution=32, random_state=7)
    found = pl.read_parquet("pattern.parquet")
    assert found.columns == ["x1", "x2"]
    np.testing.assert_array_equal(found.to_numpy(), expected.points)


@pytest.mark.parametrize(
    ("window", "columns"),
    [(["-2", "2.5"], ["x1"]), (["0", "4", "-1e0", "1"], ["x1", "x2"]), (["0", "1"] * 3, ["x1", "x2", "x3"])],
)
def test_the_window_says_how_many_dimensions_there_are(window, columns):
    for ending in (".csv", ".csv.gz", ".parquet"):
        simulate("--window", *window, "--resolution", 12, "--mean", 3, "--seed", 0, "-o", f"pattern{ending}")
        read = pl.read_parquet if ending == ".parquet" else pl.read_csv
        found = read(f"pattern{ending}")
        assert found.columns == columns
        assert (found.to_numpy() >= np.array(window[::2], float)).all()
        assert (found.to_numpy() <= np.array(window[1::2], float)).all()


def test_without_an_output_the_points_go_to_standard_output():
    simulate(*PLANE, *SMALL, "-o", "pattern.csv")
    result = simulate(*PLANE, *SMALL, "--quiet")
    with open("pattern.csv") as written:  # noqa: PTH123
        assert result.stdout == written.read()
    assert result.stderr == ""


def test_the_summary_says_what_was_drawn_and_how_to_draw_it_again():
    result = simulate(*PLANE, "--resolution", 32, "-o", "first.csv", "--plot", "picture.svg")
    lines = dict(line.split(": ", 1) for line in result.stderr.splitlines())
    assert lines["Points"] == str(pl.read_csv("first.csv").height)
    assert lines["Expected"].startswith(f"{12 * np.exp(0.5):.4g} (")
    assert lines["Window"] == "[0, 4] x [0, 3]"
    assert (lines["Table"], lines["Picture"]) == ("first.csv", "picture.svg")
    simulate(*PLANE, "--resolution", 32, "--seed", lines["Seed"], "-o", "second.csv")
    assert pl.read_csv("second.csv").equals(pl.read_csv("first.csv"))
    other = simulate(*PLANE, "--resolution", 32).stderr
    assert f"Seed: {lines['Seed']}\n" not in other


@pytest.mark.parametrize("window", [["0", "9"], ["0", "4", "0", "3"], ["0", "1"] * 3])
@pytest.mark.parametrize("ending", [".png", ".pdf", ".svg"])
def test_pictures_of_every_dimension_and_format(window, ending, tmp_path):
    simulate("--window", *window, "--resolution", 12, "--seed", 0, "--plot", f"picture{ending}", "-o", "pattern.csv")
    start = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[ending]
    assert (tmp_path / f"picture{ending}").read_bytes().startswith(start)


def test_no_points_are_a_table_without_rows(tmp_path):
    simulate(*PLANE, *SMALL, "--mean", -30, "-o", "pattern.csv", "--plot", "picture.png")
    assert (tmp_path / "pattern.csv").read_text() == "x1,x2\n"


@pytest.mark.parametrize(
    ("arguments", "sentence", "code"),
    [
        (["--window", "0", "0", "0", "1"], "Error: the window is empty: along axis 1 it begins and ends at 0", 1),
        (["--window", "0", "1", "5", "2"], "Error: the window is inverted along axis 2, from 5 to 2", 1),
        (["--window", "-1e308", "1e308"], "Error: the window is longer than any number along axis 1", 1),
        (["--window", "0", "nan"], "Error: the window must be finite, got 0 to nan along axis 1", 1),
        (["--window", "0", "1", "2"], "--window takes two numbers for each of one, two or three axes", 2),
        (["--window", *["0", "1"] * 4], "--window takes two numbers for each of one, two or three axes", 2),
        (["--window", "wide"], "got wide", 2),
        (["--window"], "'--window' requires an argument", 2),
        ([], "Missing option '--window'", 2),
        ([*PLANE, "-l", "0"], "--length-scale must be positive and finite, got 0", 2),
        ([*PLANE, "--variance", "-1"], "--variance must be positive and finite, got -1", 2),
        ([*PLANE, "--mean", "inf"], "--mean must be finite, got inf", 2),
        ([*PLANE, "--kernel", "linear"], "'linear' is not one of", 2),
        ([*PLANE, "--mean", "60", *SMALL], "points are to be expected, more than the 1e+06", 1),
        ([*PLANE, "--mean", "12", *SMALL], "or raise most_points (--most-points)", 1),
        ([*PLANE, "--mean", "4", *SMALL, "--most-points", "100"], "more than the 100 that are drawn at most", 1),
        ([*PLANE, "-l", "100"], "has no valid circulant embedding", 1),
        ([*PLANE, "-o", "pattern.txt"], "The ending of pattern.txt is none of", 1),
        ([*PLANE, "--plot", "picture.gif"], "The ending of picture.gif is none of", 1),
        ([*PLANE, "-o", "absent/pattern.csv"], "There is no folder absent", 1),
    ],
)
def test_what_cannot_be_drawn_or_written_is_one_sentence(arguments, sentence, code, tmp_path, monkeypatch):
    monkeypatch.setattr("coxfield.process.fields.LARGEST", 2**18)  # to give up sooner
    assert sentence in refusal(*arguments, code=code)
    assert list(tmp_path.iterdir()) == []


def test_a_coarse_grid_is_warned_of_in_one_line():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines = simulate(*PLANE, "--resolution", 4, "-l", 0.5, "--seed", 0).stderr.splitlines()
    assert lines[0].startswith("Warning: neighbouring cells of the grid (4, 3) have a correlation of only 0.14")
    assert lines[1].startswith("Points: ")


@pytest.mark.parametrize("broken", ["polars.DataFrame.write_csv", "coxfield.plotting.draw_sample"])
def test_if_one_file_fails_there_is_neither(broken, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("no space left")

    (tmp_path / "pattern.csv").write_text("old")
    monkeypatch.setattr(broken, fail)
    assert "no space left" in refusal(*PLANE, *SMALL, "-o", "pattern.csv", "--plot", "picture.png")
    assert [path.name for path in tmp_path.iterdir()] == ["pattern.csv"]
    assert (tmp_path / "pattern.csv").read_text() == "old"


def test_a_picture_without_matplotlib_is_refused_before_the_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(LogGaussianCoxProcess, "sample", None)
    assert "--plot: pictures need matplotlib" in refusal(*PLANE, "--plot", "picture.png")


def test_the_number_of_points_to_expect_is_that_of_the_intensity_and_its_limit_can_be_raised():
    """A large variance makes a few patterns very large. Those that are not are drawn."""
    numbers = [*PLANE, *SMALL, "--mean", "4", "--variance", "30"]
    process = LogGaussianCoxProcess(30 * RBF(1.0), 4.0)
    pattern = process.sample([(0, 4), (0, 3)], resolution=32, random_state=7)
    assert pattern.intensity.integral < 1e6 < process.expected_count([(0, 4), (0, 3)])
    simulate(*numbers, "-o", "pattern.parquet")
    assert pl.read_parquet("pattern.parquet").height == len(pattern)
    assert f"about {pattern.intensity.integral:.2g} points" in refusal(*numbers, "--most-points", "10")

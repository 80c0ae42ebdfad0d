"""`coxfield pattern`: a page, its pictures and a table of estimates; mistakes in one sentence."""

import json

import numpy as np
import polars as pl
import pytest
from sklearn.gaussian_process.kernels import Matern

import command_line
from coxfield.process import LogGaussianCoxProcess, PointPattern


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*arguments, code=0):
    return " ".join(command_line.run("pattern", *arguments, code=code).stderr.split())


def written(process, name="points.csv", seeds=(1,), window=((0, 1), (0, 1))):
    drawn = [process.sample(window, resolution=64, random_state=seed).points for seed in seeds]
    rows = {"x": np.concatenate(drawn)[:, 0], "y": np.concatenate(drawn)[:, 1]}
    rows["kind"] = np.repeat(["oak", "elm"][: len(seeds)], [len(points) for points in drawn])
    pl.DataFrame(rows).write_csv(name)
    return drawn


PROCESS = LogGaussianCoxProcess(1.5 * Matern(0.1, nu=0.5), np.log(150) - 0.75)


def test_a_page_with_types_and_a_window(tmp_path):
    written(PROCESS, seeds=(1, 2))
    ring = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
    (tmp_path / "area.geojson").write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    said = run("points.csv", "--window", "area.geojson", "--type", "kind", "--simulations", 19, "-o", "report")
    assert "Types: 2 (elm, oak)" in said
    page = (tmp_path / "report" / "index.html").read_text()
    assert "<h2>elm:" in page
    for number in range(2):
        for what in ("pattern", "envelope", "intensity", "residuals"):
            assert f'src="{what}-{number}.png"' in page
            assert (tmp_path / "report" / f"{what}-{number}.png").stat().st_size > 1000
    table = pl.read_csv("report/estimates.csv")
    assert table["parameter"].to_list() == ["variance", "correlation_length", "mean"] * 2
    assert (table["low_90"] < table["high_90"]).all()


def test_estimates_are_those_of_the_library():
    (points,) = written(PROCESS)
    run("points.csv", "-k", "matern32", "-m", "palm", "--simulations", 19, "--quiet", "-o", "report")
    fit = LogGaussianCoxProcess.fit(PointPattern.from_points(points), Matern(nu=1.5), "palm")
    found = pl.read_csv("report/estimates.csv")["estimate"].to_list()
    np.testing.assert_allclose(found, list(fit.estimates_.values()), rtol=1e-6)  # CSV holds the points exactly


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--x", "east"], "points.csv has no column 'east'"),
        (["--window", "nowhere.geojson"], "There is no file nowhere.geojson"),
        (["--type", "size"], "has no column 'size'"),
    ],
)
def test_mistakes_are_one_sentence(arguments, sentence, tmp_path):
    written(PROCESS)
    assert sentence in run("points.csv", *arguments, "-o", "report", code=1)
    assert not (tmp_path / "report").exists()


def test_degrees_are_told_of():
    written(PROCESS)
    pl.read_csv("points.csv").rename({"x": "lon", "y": "lat"}).write_csv("degrees.csv")
    said = run("degrees.csv", "--x", "lon", "--y", "lat", "--simulations", 19, "-o", "report")
    assert "columns lon and lat are degrees" in said

"""Files as people have them: every one is learned from with one command, or refused with what to type."""

import gzip
import json
import re

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris

from command_line import run
from coxfield.io import tables
from coxfield.io.columns import Suspects, TableError, written_differently

RNG = np.random.default_rng(0)
N = 45
KIND = np.arange(N) % 3
LENGTH, MASS = RNG.normal(40 + 4 * KIND, 1.5).round(2), (RNG.normal(3500 + 600 * KIND, 200) / 5).astype(int) * 5
BIRDS = np.array(["Adelie", "Chinstrap", "Gentoo"])[KIND]
ISLANDS = np.array(["Dream", "Torgersen", "Biscoe"])[(KIND + (RNG.random(N) < 0.3)) % 3]
DAYS = [f"{1 + k % 28:02d}.{1 + k % 12:02d}.{2007 + k % 3}" for k in RNG.permutation(N)]
HEADER = ["species", "island", "length", "mass"]


def lines(separator=",", header=HEADER, length=str, mass=str, more=lambda k: []):
    cells = ([BIRDS[k], ISLANDS[k], length(LENGTH[k]), mass(MASS[k]), *more(k)] for k in range(N))
    return "\n".join(separator.join(row) for row in (header, *cells)) + "\n"


def comma(number):
    return str(number).replace(".", ",")


def grouped(number, by=","):
    return f"{number:,}".replace(",", by)


def quoted(text):
    return f'"{text}"'


def holes(marks):
    """Some lengths are blank, in different ways."""
    places = iter(range(10**6))
    return lambda number: marks[(k // 5) % len(marks)] if (k := next(places)) % 5 == 0 else str(number)


def numbered(text, separator, heading):
    header, *rows = text.splitlines()
    return "\n".join([heading + header, *(f"{k}{separator}{row}" for k, row in enumerate(rows))])


def american(k):
    day, month, year = DAYS[k].split(".")
    return [f"{month}/{day}/{year}"]


CSV = lines()
KINDS = {
    "commas": ("t.csv", CSV, "1 category, 2 numbers"),
    "semicolons": ("t.csv", lines(";"), "; separated"),
    "semicolons and decimal commas": ("t.csv", lines(";", length=comma), "; separated, decimal comma"),
    "decimal commas in quotes": ("t.csv", lines(length=lambda x: quoted(comma(x))), "decimal comma"),
    "tabs": ("t.tsv", lines("\t"), "tab separated"),
    "tabs in .txt": ("t.txt", lines("\t"), "tab separated"),
    "bars": ("t.txt", lines("|"), "| separated"),
    "spaces": ("t.txt", lines("  "), "separated by spaces"),
    "thousands": ("t.csv", lines(mass=lambda x: quoted(grouped(x))), "2 numbers"),
    "thousands by points": ("t.csv", lines(";", length=comma, mass=lambda x: grouped(x, ".")), "2 numbers"),
    "thousands by blanks": ("t.csv", lines(";", mass=lambda x: grouped(x, "\u202f")), "2 numbers"),
    "dollars": ("t.csv", lines(mass=lambda x: quoted("$" + grouped(x))), "2 numbers"),
    "per cent": ("t.csv", lines(length=lambda x: f"{x} %"), "2 numbers"),
    "byte order mark": ("t.csv", b"\xef\xbb\xbf" + CSV.encode(), "1 category, 2 numbers"),
    "UTF-16": ("t.csv", CSV.encode("utf-16"), "UTF-16"),
    "UTF-16 without a mark": ("t.csv", CSV.encode("utf-16-le"), "UTF-16"),
    "Latin-1": ("t.csv", CSV.replace("Dream", "Île").encode("latin-1"), "Latin-1"),
    "title lines": ("t.csv", "Penguins of three islands\nmeasured in 2007\n\n" + CSV, "3 lines before the header"),
    "comment lines": ("t.csv", "# from a station\n# units: mm, g\n" + CSV, "2 lines before the header"),
    "row numbers without a name": ("t.csv", numbered(CSV, ",", ","), "row numbers in the first column"),
    "row names of R": ("t.txt", numbered(lines("\t"), "\t", ""), "row numbers in the first column"),
    "gzipped": ("t.csv.gz", gzip.compress(CSV.encode()), "2 numbers"),
    "records in JSON": ("t.json", json.dumps(pl.read_csv(CSV.encode()).to_dicts()), "2 numbers"),
    "lines of JSON": ("t.jsonl", pl.read_csv(CSV.encode()).write_ndjson(), "2 numbers"),
    "blanks": ("t.csv", lines(length=holes(["NA", "?", "-", "null", "", "n/a"])), "9 blanks in 1 column"),
    "dates": ("t.csv", lines(header=[*HEADER, "day"], more=lambda k: [DAYS[k]]), "1 date"),
    "American dates": ("t.csv", lines(header=[*HEADER, "day"], more=american), "1 date"),
    "spaces around cells": ("t.csv", lines(", "), "1 category, 2 numbers"),
}


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(("name", "content", "taken"), KINDS.values(), ids=KINDS)
def test_what_is_read_is_what_was_meant(tmp_path, name, content, taken):
    read = tables.read(written(tmp_path, name, content), verbatim=["species"])
    names = [column.strip() for column in read.rows.columns]
    assert names[:4] == HEADER
    rows = read.rows.rename(dict(zip(read.rows.columns, names, strict=True)))
    assert rows["species"].str.strip_chars().to_list() == BIRDS.tolist()
    assert rows["mass"].to_list() == MASS.tolist()
    there = rows["length"].is_not_null().to_numpy()
    np.testing.assert_allclose(rows["length"].drop_nulls(), LENGTH[there])
    assert taken in read.described(read.rows.columns[1:])
    if "day" in names:
        assert rows["day"].dt.to_string("%d.%m.%Y").to_list() == DAYS


@pytest.mark.parametrize(
    "kind", ["semicolons and decimal commas", "row numbers without a name", "blanks", "dates", "title lines"]
)
def test_one_command_is_enough(tmp_path, kind):
    name, content, taken = KINDS[kind]
    table = written(tmp_path, name, content)
    found = run("check", table, "-t", "species", "--selection", "loo_error", "-o", tmp_path / "out.csv")
    said = " ".join(found.stderr.split())
    assert taken in said
    assert "Error of the most common class: 0.6667, always Adelie" in said
    assert re.search(r"Errors with the weights in use: \d+ of \d+ \(Adelie: ", said)


def test_a_workbook(tmp_path):
    pytest.importorskip("fastexcel")
    xlsxwriter = pytest.importorskip("xlsxwriter")
    path = tmp_path / "t.xlsx"
    book = xlsxwriter.Workbook(path)
    for title in ("first", "second"):
        sheet = book.add_worksheet(title)
        for k, row in enumerate([HEADER, *zip(BIRDS, ISLANDS, LENGTH.tolist(), MASS.tolist(), strict=True)]):
            sheet.write_row(k, 0, row if title == "first" else [title, *row[1:]])
    book.close()
    assert tables.read(path).rows["mass"].to_list() == MASS.tolist()
    assert tables.read(path, form=tables.Form(sheet="second")).rows.columns[0] == "second"
    with pytest.raises(TableError, match="cannot be read as Excel"):
        tables.read(path, form=tables.Form(sheet="third"))


OVERRIDDEN = {
    "separator=;": (lines(";"), "species"),
    r"separator=\t": (lines("\t"), "species"),
    "skip=1": ("a title, with commas, three of them\n" + CSV, "species"),
    "encoding=cp1251": (CSV.replace("Dream", "Дрим").encode("cp1251"), "species"),
    "decimal=,": (lines(";", length=lambda x: f"{x:.3f}".replace(".", ",")), "species"),
    "blank=none given": (lines(length=holes(["none given"])), "species"),
}


@pytest.mark.parametrize(("option", "content", "first"), [(k, *v) for k, v in OVERRIDDEN.items()], ids=OVERRIDDEN)
def test_each_guess_can_be_overridden(tmp_path, option, content, first):
    read = tables.read(written(tmp_path, "t.csv", content), form=tables.Form.of([option])).rows
    assert read.columns[0] == first
    np.testing.assert_allclose(read["length"].drop_nulls(), LENGTH[read["length"].is_not_null().to_numpy()])
    if option.startswith("encoding"):
        assert "Дрим" in read["island"].to_list()


@pytest.mark.parametrize("word", ["separator=;;", "decimal=x", "skip=two", "colour=red", "separator"])
def test_words_that_say_nothing_are_refused(word):
    with pytest.raises(TableError, match=f"--read {word} is not understood: give separator=;"):
        tables.Form.of([word])


def test_what_is_refused_says_what_to_type(tmp_path):
    numbers = "a,y\n" + "\n".join(f"{k / 7:.3f},{k % 2}" for k in range(60)) + "\ntoo small,1\n"
    with pytest.raises(TableError, match="'too small' in row 61, and 60 that are: give --read 'blank=too small' if"):
        tables.read(written(tmp_path, "t.csv", numbers))
    with pytest.raises(TableError, match="nothing is known of the encoding 'klingon'"):
        tables.read(written(tmp_path, "t.csv", CSV), form=tables.Form(encoding="klingon"))
    with pytest.raises(TableError, match="is JSON, but not a list of records"):
        tables.read(written(tmp_path, "t.json", "[1, [2]]"))
    with pytest.raises(TableError, match=r"cannot be read as CSV: .*--read separator=; or --read skip=2"):
        tables.read(written(tmp_path, "t.csv", "a,b\n1,2\n1,2,3,4\n5,6\n"))


# Nothing is learned that should not be.


def suspects(y=BIRDS, **columns):
    return Suspects.among(pl.DataFrame(columns), list(columns), y)


ORDER = np.argsort(KIND, kind="stable")


@pytest.mark.parametrize(
    "values",
    [
        np.arange(N),
        np.arange(N)[::-1] + 1000,
        RNG.permutation(N) + 7,
        [f"P-{k:03d}" for k in range(N)],
        np.sort(RNG.choice(10**6, N, replace=False))[np.argsort(ORDER)],
    ],
    ids=["counting", "backwards", "shuffled", "words", "sorted with the class"],
)
def test_columns_that_name_rows(values):
    assert suspects(a=values, length=LENGTH).ids == ["a"]


def test_numbers_that_happen_to_differ_are_no_ids():
    found = suspects(length=LENGTH, wide=RNG.choice(10**6, N, replace=False), words=[f"w{k % 20}" for k in range(N)])
    assert found.ids == []
    assert suspects(**{"sample id": RNG.choice(10**6, N, replace=False), "length": LENGTH}).ids == ["sample id"]


def test_constant_columns_and_leaks():
    found = suspects(
        same=[1] * N,
        code=np.array(["A", "C", "G"])[KIND],
        exact=KIND + RNG.random(N) / 2,
        length=LENGTH,
        island=ISLANDS,
    )
    assert found.constant == ["same"]
    assert found.leaks == ["code", "exact"]


def noisy(tmp_path, **columns):
    frame = pl.read_csv(CSV.encode()).with_columns(**{name: pl.Series(values) for name, values in columns.items()})
    path = tmp_path / "t.csv"
    frame.write_csv(path)
    return path


def test_ids_and_constant_columns_are_left_out_with_a_note(tmp_path):
    table = noisy(tmp_path, plant=np.argsort(ORDER), station=["x"] * N)
    usual = ["check", table, "-t", "species", "--selection", "loo_error", "-o", tmp_path / "out.csv"]
    said = run(*usual).stderr
    assert (
        "Note: 'plant' names or counts the rows, and is left out as an id; to learn from it, give --keep plant" in said
    )
    assert "Note: 'station' is the same in all rows, and is left out" in said
    assert "Features: 3 (island, length, mass)" in said
    assert "Features: 4 (island, length, mass, plant)" in run(*usual, "--keep", "plant").stderr
    only = run("check", table, "-t", "species", "-d", "island", "-d", "length", "-d", "mass", code=1).stderr
    assert "has no column to learn from: 'plant' names the rows" in only
    assert "give --keep plant --keep station" in only


def test_leaks_and_odd_classes_are_warned_of(tmp_path):
    odd = np.array([*BIRDS[:-2], "adelie ", "Adelie"])
    table = noisy(tmp_path, **{"the code": np.array(["A", "C", "G"])[KIND]})
    usual = ["-t", "species", "--selection", "loo_error", "-o", tmp_path / "out.csv"]
    assert "'the code' alone tells the class of every row" in (said := run("check", table, *usual).stderr)
    assert "give --drop 'the code'" in said
    assert "'Adelie' (16 rows) and 'adelie' (1 row) are taken as different classes" in written_differently(
        np.char.strip(odd)
    )
    said = run("check", noisy(tmp_path, species=odd), *usual).stderr
    assert "are taken as different classes: write them in the same way" in said


def test_rows_without_a_class_are_left_out(tmp_path):
    table = noisy(tmp_path, species=["" if k < 4 else "NA" if k < 6 else bird for k, bird in enumerate(BIRDS)])
    usual = ["check", table, "-t", "species", "--selection", "loo_error", "--all", "-o", tmp_path / "out.csv"]
    said = run(*usual).stderr
    assert "Note: 4 of 45 rows have no 'species' and are left out" in said
    assert 'the column holds 2 cells "NA": give --missing NA if they stand for unknown' in said
    said = run(*usual, "--missing", "NA").stderr
    assert "Note: 6 of 45 rows have no 'species' and are left out" in said
    assert min(pl.read_csv(tmp_path / "out.csv")["row"]) == 7


def test_a_model_that_is_no_better_than_guessing_says_so(tmp_path):
    table = tmp_path / "t.csv"
    pl.DataFrame({"x": np.arange(60) * 1.1, "y": np.arange(60) % 3 == 0}).write_csv(table)
    said = run("check", table, "-t", "y", "--selection", "loo_error", "-o", tmp_path / "out.csv").stderr
    assert float(said.split("Leave-one-out error: ")[1].split()[0]) >= 0.3333
    assert "the model is no better than always saying the most common class" in said


def test_details_are_a_flag_away(tmp_path):
    table = noisy(tmp_path)
    usual = ["check", table, "-t", "species", "-f", "length", "-f", "mass", "-o", tmp_path / "out.csv"]
    plain, detailed = run(*usual).stderr, run(*usual, "--details").stderr
    assert "density power" not in plain
    assert "What matters: " in plain
    assert "density power" in detailed


def test_iris_as_scikit_learn_has_it_needs_no_option(tmp_path):
    iris = load_iris()
    path = tmp_path / "iris.csv"
    pl.DataFrame(iris.data, schema=iris.feature_names).with_columns(kind=iris.target_names[iris.target]).write_csv(path)
    said = run("check", path, "-t", "kind", "--selection", "loo_error", "-o", tmp_path / "out.csv").stderr
    assert "Read: 4 numbers" in said
    assert "left out" not in said


# Figures that do not flatter.


def fitted(tmp_path, table, *options):
    model = tmp_path / "model.skops"
    run("fit", table, "-t", "species", "--selection", "loo_error", "-o", model, *options)
    return model


def flipped(tmp_path, **columns):
    """Two numbers, and some labels that no neighbour would predict."""
    odd = np.where(np.arange(N) % 9 == 0, np.roll(BIRDS, 1), BIRDS)
    return noisy(tmp_path, species=odd, **columns)


@pytest.mark.parametrize("with_ids", [False, True])
def test_rows_that_the_model_knows_are_predicted_without_themselves(tmp_path, with_ids):
    table = flipped(tmp_path, plant=[f"P{k}" for k in range(N)])
    chosen = ["--length-scale", "0.01", "-f", "length", "-f", "mass"]  # every row predicts its own class
    model = fitted(tmp_path, table, *chosen, *(["--id", "plant"] if with_ids else []))
    found = run("predict", model, table, "--reasons", "2", "-o", tmp_path / "out.csv")
    assert "of rows that the model was fitted to, each predicted from all others" in found.stderr
    wrong = float(found.stderr.split("Error rate ")[1].split()[0])
    assert wrong >= 5 / N
    out = pl.read_csv(tmp_path / "out.csv")
    own = [f"P{k}" for k in range(N)] if with_ids else list(range(1, N + 1))
    assert all(one != name for one, name in zip(out["reason_1"], own, strict=True))
    new = pl.read_csv(table).with_columns(pl.col("length") + 0.123, plant=pl.col("plant") + "x")
    new.write_csv(tmp_path / "new.csv")
    said = run("predict", model, tmp_path / "new.csv", "-o", tmp_path / "out.csv").stderr
    assert "Error rate" in said
    assert "fitted to" not in said


def test_known_rows_beside_new_ones(tmp_path):
    table = flipped(tmp_path, plant=[f"P{k}" for k in range(N)])
    model = fitted(tmp_path, table, "--id", "plant", "-f", "length", "-f", "mass")
    rows = pl.read_csv(table)
    pl.concat([rows[:5], rows.with_columns(plant=pl.col("plant") + "x")]).write_csv(tmp_path / "new.csv")
    said = run("predict", model, tmp_path / "new.csv", "-o", tmp_path / "out.csv").stderr
    assert "Error rate of the new rows" in said
    assert "of 5 rows) of rows that the model was fitted to" in said


def test_a_blank_cell_among_new_rows_is_predicted(tmp_path):
    table = noisy(tmp_path)
    model = fitted(tmp_path, table, "-f", "length", "-f", "mass")
    (tmp_path / "new.csv").write_text("mass;length\n4000;NA\n3400;40,5\n")
    found = run("predict", model, tmp_path / "new.csv", "--no-id")
    assert len(found.stdout.splitlines()) == 3
    assert "Note: read as ; separated, decimal comma, 2 numbers, 1 blank in 1 column" in found.stderr
    (tmp_path / "new.csv").write_text("mass,length\n4000,long\n")
    refused = run("predict", model, tmp_path / "new.csv", code=1).stderr
    assert "Column 'length' of" in refused
    assert "holds text, 'long' in row 1" in refused


def test_a_mixed_table_is_fitted_saved_and_used(tmp_path):
    pytest.importorskip("coxfield.io.model_check", reason="model files of this version hold no tables")
    table = noisy(tmp_path, day=[f"2024-01-{1 + k % 28:02d}" for k in range(N)])
    model = tmp_path / "model.skops"
    said = run("fit", table, "-t", "species", "-o", model).stdout
    assert "Read: 1 category, 2 numbers, 1 date" in said
    (tmp_path / "new.csv").write_text("day;island;length;mass\n2025-02-01;Dumont;;3.900\n;Dream;40,5;4.000\n")
    assert len(run("predict", model, tmp_path / "new.csv", "--proba").stdout.splitlines()) == 3
    assert "45 rows" in run("update", model, table, "-o", tmp_path / "more.skops").stdout

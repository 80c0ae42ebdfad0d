"""Tables of rows: what is read, what is refused and with which words, and that files are written whole."""

import gzip
import os
from datetime import date

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from coxfield.io import tables
from coxfield.io.tables import Table, TableError

ROWS = pl.DataFrame(
    {
        "name": ["a", "b, c", 'say "d"', "é"],
        "size": [1.5, -2.0, 1e-300, 0.1 + 0.2],
        "count": [1, 2, 3, -4],
        "flag": [True, False, True, False],
        "class": ["cat", "dog", "dog", "cat"],
    }
)


def csv(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def table(**columns):
    return Table("t.csv", pl.DataFrame(columns))


@pytest.mark.parametrize("ending", tables.FORMATS)
def test_a_table_comes_back_as_it_was_written(tmp_path, ending):
    path = tmp_path / f"table{ending}"
    tables.write(ROWS, path)
    assert_frame_equal(tables.read(path).rows, ROWS, check_exact=True)


def test_csv_and_parquet_hold_the_same_table(tmp_path):
    tables.write(ROWS, tmp_path / "a.csv")
    tables.write(tables.read(tmp_path / "a.csv").rows, tmp_path / "b.parquet")
    tables.write(tables.read(tmp_path / "b.parquet").rows, tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()


def test_gzipped_csv_is_gzip_and_the_same_every_time(tmp_path):
    tables.write(ROWS, tmp_path / "a.csv.gz")
    tables.write(ROWS, tmp_path / "b.csv.gz")
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()) == ROWS.write_csv().encode()
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


@pytest.mark.parametrize("ending", tables.FORMATS)
def test_failing_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, ending):
    path = tmp_path / f"table{ending}"
    path.write_bytes(b"old")

    def write_half(rows, stream=None):
        if stream is not None:
            stream.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(pl.DataFrame, "write_csv", write_half)
    monkeypatch.setattr(pl.DataFrame, "write_parquet", write_half)
    with pytest.raises(OSError, match="disk full"):
        tables.write(ROWS, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_replacing_a_file_keeps_its_permissions_and_follows_links(tmp_path):
    path, link = tmp_path / "real.csv", tmp_path / "link.csv"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    tables.write(ROWS, link)
    assert link.is_symlink()
    assert path.read_text() == ROWS.write_csv()
    assert path.stat().st_mode & 0o777 == 0o640


def test_types_are_judged_by_all_rows(tmp_path):
    path = csv(tmp_path, "x\n" + "1\n" * 5000 + "0.5\n")
    assert tables.read(path).rows["x"][-1] == 0.5


def test_blank_lines_at_the_end_are_no_rows(tmp_path):
    assert tables.read(csv(tmp_path, "a,b\n1,2\n\r\n\n")).rows.height == 1


def test_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    assert tables.read(csv(tmp_path, "\ufeffa,b\n1,2\n")).rows.columns == ["a", "b"]


@pytest.mark.parametrize(
    ("written", "values"),
    [
        (["007", "012"], ["007", "012"]),
        (["1", "-2"], [1, -2]),
        (["1", "", "3"], [1, None, 3]),
        (["1", "01"], ["1", "01"]),
        (["+1", "2"], ["+1", "2"]),
        (["1.0", "2.0"], ["1.0", "2.0"]),
        (["true", "false", ""], [True, False, None]),
        (["True", "False"], ["True", "False"]),
        (["99999999999999999999", "1"], ["99999999999999999999", "1"]),
    ],
)
def test_verbatim_columns_lose_nothing(tmp_path, written, values):
    path = csv(tmp_path, "x,id\n" + "".join(f"0,{text}\n" for text in written))
    assert tables.read(path, verbatim=("id", "absent", None)).rows["id"].to_list() == values


def test_columns_not_named_as_numbers_lose_nothing(tmp_path):
    path = csv(tmp_path, "x,zip,size\n1,007,010\n0.5,012,020\n")
    rows = tables.read(path, verbatim=("size",), numbers=("x", "size", "absent")).rows
    assert rows["x"].to_list() == [1, 0.5]
    assert rows["zip"].to_list() == ["007", "012"]
    assert rows["size"].to_list() == ["010", "020"]
    assert tables.read(path).rows["zip"].to_list() == [7, 12]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.xlsx", b"", r"The ending of .*t\.xlsx is none of \.csv, \.csv\.gz, \.parquet"),
        ("t.csv", b"", "t.csv is empty: it has neither a header nor rows"),
        ("t.csv", b"a,b\n", "t.csv has a header but no rows"),
        ("t.csv", b"a,b\n1,2,3\n", "t.csv cannot be read as CSV: "),
        ("t.csv", b"a,b\n\xff\xfe,1\n", "t.csv cannot be read as CSV: invalid utf-8"),
        ("t.csv", b"a,b,a\n1,2,3\n", "t.csv has more than one column 'a'"),
        ("t.csv.gz", b"a,b\n1,2\n", "t.csv.gz cannot be read as gzip"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n")[:-9], "t.csv.gz cannot be read as gzip"),
        ("t.parquet", b"a,b\n1,2\n", "t.parquet cannot be read as Parquet: "),
    ],
)
def test_unreadable_files_are_refused_in_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=message) as caught:
        tables.read(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders_are_no_tables(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match=r"folder\.csv is a folder, not a table"):
        tables.read(tmp_path / "folder.csv")
    with pytest.raises(TableError, match=r"There is no file .*absent\.csv"):
        tables.read(tmp_path / "absent.csv")


def test_output_is_checked_before_the_work(tmp_path):
    source = csv(tmp_path, "a\n1\n")
    (tmp_path / "link.csv").symlink_to(source)
    tables.check_output(tmp_path / "new.csv", inputs=[source])
    with pytest.raises(TableError, match="is none of"):
        tables.check_output(tmp_path / "new.txt")
    with pytest.raises(TableError, match=r"There is no folder .*absent to write new\.csv to"):
        tables.check_output(tmp_path / "absent" / "new.csv")
    with pytest.raises(TableError, match="is read from and cannot be written to"):
        tables.check_output(tmp_path / "link.csv", inputs=[source])


def test_features_are_all_columns_but_those_set_apart():
    rows = table(a=[1], y=[2], b=[3], id=[4], notes=["x"])
    assert rows.feature_names(apart=("y", "id", None), only=(), drop=("notes",)) == ["a", "b"]
    assert rows.feature_names(apart=("y", None), only=("b", "a", "b"), drop=()) == ["b", "a"]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"only": ["a", "c"]}, "t.csv has no column 'c'; it has 'a', 'y'"),
        ({"drop": ["c", "d"]}, "t.csv has no columns 'c', 'd'; it has 'a', 'y'"),
        ({"only": ["y"]}, "Column 'y' cannot be a feature and the target"),
        ({"drop": ["a"]}, "t.csv has no columns left to use as features"),
    ],
)
def test_impossible_choices_of_features_are_refused(choice, message):
    with pytest.raises(TableError, match=message):
        table(a=[1], y=[2]).feature_names(**{"apart": ("y",), "only": (), "drop": (), **choice})


def test_row_numbers_without_a_name_are_no_feature():
    rows = table(**{"": [0, 1], "a": [1, 2]})
    with pytest.raises(TableError, match="has a column without a name: give it one, or leave it out with --drop ''"):
        rows.feature_names(apart=(), only=(), drop=())
    assert rows.feature_names(apart=(), only=(), drop=("",)) == ["a"]


def test_a_table_of_one_column_with_semicolons_gets_a_hint():
    with pytest.raises(TableError, match="separated by something else than commas"):
        table(**{"a;b": ["1;2"]}).require(["b"])


def test_long_lists_of_columns_are_cut():
    with pytest.raises(TableError, match=r"'x11' and 88 more$"):
        table(**{f"x{i}": [0] for i in range(100)}).require(["y"])


def test_features_become_one_matrix():
    X = table(flag=[True, False], count=[1, 2], size=[0.5, 0.25]).features(["size", "flag", "count"])
    np.testing.assert_array_equal(X, [[0.5, 1, 1], [0.25, 0, 2]])
    assert X.dtype == np.float64


def test_single_precision_stays_when_all_features_have_it():
    half = pl.Series([0.5, 1.5], dtype=pl.Float32)
    assert table(a=half, b=half).features(["a", "b"]).dtype == np.float32
    assert table(a=half, b=[1, 2]).features(["a", "b"]).dtype == np.float64


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1.0, None, None], "is blank in row 2"),
        ([None, None, None], "is blank in row 1"),
        ([1, 2, None], "is blank in row 3"),
        ([1.0, float("nan"), 2.0], "holds nan in row 2"),
        ([1.0, 2.0, -float("inf")], "holds -inf in row 3"),
        (["1", "2", "NA"], "holds text, 'NA' in row 3, .* --drop b when fitting"),
        ([date(2020, 1, 1)] * 3, "is of type Date, .* --drop b when fitting"),
        ([[1], [2], [3]], r"is of type List.*, .* --drop b when fitting"),
    ],
)
def test_features_that_are_no_finite_numbers_are_named(values, found):
    with pytest.raises(TableError, match=f"Column 'b' of t.csv {found}"):
        table(a=[1, 2, 3], b=values).features(["a", "b"])


@pytest.mark.parametrize("values", [["x", None, "", "  "], [1, None, None, None], [0.5, None, float("nan"), None]])
def test_blank_labels_are_told_from_classes(values):
    assert table(y=values).missing_labels("y").tolist() == [False, True, True, True]


def test_blank_labels_are_refused_with_the_first_row():
    with pytest.raises(TableError, match=r"Column 'y' of t\.csv is blank in 2 of 4 rows, first in row 2"):
        table(y=["a", "", "b", None]).labels("y")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["b", "a"], "U"),
        (pl.Series(["b", "a"], dtype=pl.Categorical), "U"),
        ([3, -1], "i"),
        (pl.Series([3, 1], dtype=pl.UInt8), "u"),
        ([True, False], "b"),
        ([1.0, 2.0], "f"),
    ],
)
def test_labels_keep_their_kind(values, kind):
    labels = table(y=values).labels("y")
    assert labels.dtype.kind == kind
    assert labels.tolist() == list(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", "a"], "Column 'y' of t.csv holds one class only, a; a classifier needs at least two"),
        ([0.5, 1.0], "holds numbers such as 0.5, which are quantities"),
        (["0.5", "1"], "holds numbers such as 0.5, which are quantities"),
        ([date(2020, 1, 1), date(2021, 1, 1)], "is of type Date; classes are strings, integers or booleans"),
    ],
)
def test_columns_that_hold_no_classes_are_refused(values, message):
    with pytest.raises(TableError, match=message):
        table(y=values).labels("y")


@pytest.mark.parametrize(
    ("values", "known"),
    [
        (["b", None, "", "a"], ["b", "a"]),
        ([3, None, None, -1], [3, -1]),
        ([2.0, float("nan"), None, 1.0], [2, 1]),
        ([True, None, None, False], [True, False]),
    ],
)
def test_known_labels_are_those_that_are_not_blank(values, known):
    assert table(y=values).known_labels("y").tolist() == known


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", "b"], r"has no blank cell, so there is nothing to label: .* coxfield fit"),
        ([None, None], r"is blank in all 2 rows: fill in at least one row of each class"),
        (["a", "", "a"], r"holds one class only, a"),
        ([0.5, None, 1.0], r"holds numbers such as 0\.5"),
    ],
)
def test_labels_from_which_none_can_be_found_are_refused(values, message):
    with pytest.raises(TableError, match=message):
        table(y=values).known_labels("y")


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["b", "c", "a"])])
def test_filled_in_labels_keep_the_type_and_place_of_the_column(kind):
    rows = table(y=pl.Series(["a", None], dtype=kind), x=[1, 2])
    filled = rows.with_labels("y", np.array(["a", "b"]))
    assert_frame_equal(filled, pl.DataFrame({"y": pl.Series(["a", "b"], dtype=kind), "x": [1, 2]}))
    assert rows.rows["y"].to_list() == ["a", None]


def test_small_integers_stay_small_when_labels_are_filled_in():
    rows = table(y=pl.Series([7, None], dtype=pl.UInt8))
    assert rows.with_labels("y", np.array([7, 250]))["y"].dtype == pl.UInt8


def test_versions_such_as_1_5_beside_other_strings_are_classes():
    assert table(y=["1.5", "beta"]).labels("y").tolist() == ["1.5", "beta"]


def test_weights_are_numbers_none_negative():
    assert table(w=[1, 0, 2]).weights("w").tolist() == [1, 0, 2]
    with pytest.raises(TableError, match=r"holds a negative weight, -0\.5, in row 2"):
        table(w=[1.0, -0.5]).weights("w")


@pytest.mark.skipif(os.name != "posix", reason="globs in file names are a matter of POSIX shells")
def test_file_names_are_no_patterns(tmp_path):
    csv(tmp_path, "a\n1\n", "x1.csv")
    csv(tmp_path, "a\n2\n", "x[1].csv")
    assert tables.read(tmp_path / "x[1].csv").rows["a"].to_list() == [2]

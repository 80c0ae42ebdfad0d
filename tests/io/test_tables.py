"""Files of tables: what is read, what is refused and with which words, and that files are written whole."""

import gzip
import os
from datetime import date

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_series_equal

from coxfield.io import tables
from coxfield.io.columns import TableError, blanked, hint
from coxfield.utils.whole_files import FileNotWrittenError
from full_disk import SENTENCE, fill

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
        (
            "t.xls",
            b"",
            r"The ending of .*t\.xls is none of \.csv, \.tsv, \.txt, .*: give the file one of these endings",
        ),
        ("t.csv", b"", "t.csv is empty: it has neither a header nor rows"),
        ("t.csv", b"a,b\n", "t.csv has a header but no rows"),
        ("t.csv", b"a,b\n1,2,3\n", "t.csv cannot be read as CSV: "),
        ("t.csv", b"a,b,a\n1,2,3\n", "t.csv has more than one column 'a'"),
        ("t.csv.gz", b"a,b\n1,2\n", "t.csv.gz cannot be read as gzip"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], "t.csv.gz cannot be read as gzip"),
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
    with pytest.raises(TableError, match="is the input and cannot be the output too"):
        tables.check_output(tmp_path / "link.csv", inputs=[source])


@pytest.mark.skipif(os.name != "posix", reason="globs in file names are a matter of POSIX shells")
def test_file_names_are_no_patterns(tmp_path):
    csv(tmp_path, "a\n1\n", "x1.csv")
    csv(tmp_path, "a\n2\n", "x[1].csv")
    assert tables.read(tmp_path / "x[1].csv").rows["a"].to_list() == [2]


@pytest.mark.parametrize("ending", tables.FORMATS)
def test_values_that_stand_for_a_blank_cell_are_blank_in_their_column_only(tmp_path, ending):
    path = tmp_path / f"table{ending}"
    tables.write(pl.DataFrame({"class": ["a", "NA", "?"], "note": ["NA", "b", "?"]}), path)
    found = tables.read(path, verbatim=["class", "note"], missing={"class": ["NA", "?"], "genus": ["NA"]}).rows
    assert found["class"].to_list() == ["a", None, None]
    assert found["note"].to_list() == ["NA", "b", "?"]


def test_what_is_left_of_a_column_decides_its_type(tmp_path):
    path = csv(tmp_path, "class\n1\nNA\n2\n")
    assert tables.read(path, verbatim=["class"]).rows["class"].to_list() == ["1", "NA", "2"]
    assert tables.read(path, verbatim=["class"], missing={"class": ["NA"]}).rows["class"].to_list() == [1, None, 2]


@pytest.mark.parametrize("ending", tables.FORMATS)
def test_a_full_disk_is_a_sentence_and_the_old_table_stays(tmp_path, monkeypatch, ending):
    path = tmp_path / f"table{ending}"
    path.write_bytes(b"old")
    fill(monkeypatch)
    with pytest.raises(FileNotWrittenError) as caught:
        tables.write(ROWS, path)
    assert str(caught.value) == f"{path} {SENTENCE}"
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_gzip_file_with_a_wrong_byte_is_named(tmp_path):
    path = tmp_path / "data.csv.gz"
    content = bytearray(gzip.compress(b"a,b\n" + b"1,2\n" * 100))
    content[10] = 0xFF  # the first block has a type that does not exist
    path.write_bytes(bytes(content))
    with pytest.raises(TableError, match=r"data.csv.gz cannot be read as gzip: .*invalid block type"):
        tables.read(path)


ODD = {
    "list": pl.Series([[1], [2]]),
    "struct": pl.Series([{"k": 1}, {"k": 2}]),
    "binary": pl.Series([b"1", b"2"]),
    "duration": pl.Series([1, 2]).cast(pl.Duration("us")),
}


@pytest.mark.parametrize("kind", ODD)
def test_columns_that_csv_cannot_hold_are_refused_in_a_sentence(tmp_path, kind):
    rows = pl.DataFrame({"a": [1, 2], "id": ODD[kind]})
    for ending in (".csv", ".csv.gz"):
        with pytest.raises(TableError, match=r"Column 'id' is of type .*, which CSV cannot hold: give an output file"):
            tables.write(rows, tmp_path / f"a{ending}")
    with pytest.raises(TableError, match="which CSV cannot hold"):
        tables.check_columns(rows, None)
    assert list(tmp_path.iterdir()) == []
    tables.check_columns(rows, tmp_path / "a.parquet")
    tables.write(rows, tmp_path / "a.parquet")
    assert_frame_equal(pl.read_parquet(tmp_path / "a.parquet"), rows)


def test_names_of_columns_are_listed_a_fixed_number_of_times(tmp_path, monkeypatch):
    """Polars makes a new list of all names each time. One per column takes a minute for 20,000 columns."""
    names = [f"c{number}" for number in range(300)]
    pl.DataFrame(np.ones((2, 300)), schema=names).write_csv(tmp_path / "a.csv")
    asked, listing = [], pl.DataFrame.columns.fget
    monkeypatch.setattr(pl.DataFrame, "columns", property(lambda self: asked.append(1) or listing(self)))
    assert tables.read(tmp_path / "a.csv", numbers=names[:3]).rows.width == 300
    assert len(asked) < 20


@pytest.mark.parametrize(
    ("column", "marks", "expected"),
    [
        (pl.Series(["a", "NA", " NA ", "na", None, "?"]), ["NA", "?"], ["a", None, None, "na", None, None]),
        (pl.Series(["a", "NA"]), [], ["a", "NA"]),
        (pl.Series(["a", "NA"], dtype=pl.Categorical), ["NA"], ["a", None]),
        (pl.Series(["a", "NA"], dtype=pl.Enum(["a", "NA"])), [" NA"], ["a", None]),
        (pl.Series([1, -1, None, 2]), ["-1", "NA"], [1, None, None, 2]),
        (pl.Series([1.0, -1.0, 2.5]), ["-1"], [1.0, None, 2.5]),
        (pl.Series([True, False, None]), ["false"], [True, None, None]),
        (pl.Series([date(2020, 1, 1)]), ["2020-01-01"], [date(2020, 1, 1)]),
        (pl.Series([[1], [2]]), ["[1]"], [[1], [2]]),
    ],
)
def test_cells_that_are_marked_are_blank(column, marks, expected):
    found = blanked(column.alias("y"), marks)
    assert_series_equal(found, pl.Series("y", expected, dtype=column.dtype))


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (["a", "NA", "NA", "b"], 'the column holds 2 cells "NA": give --missing NA if they stand for unknown'),
        (["a", " n/a ", None], 'the column holds 1 cell "n/a": give --missing n/a if they stand for unknown'),
        (
            ["?", "a", "None", "None"],
            (
                'the column holds 2 cells "None" and 1 cell "?": give --missing None --missing '
                "'?' if they stand for unknown"
            ),
        ),
        ([0, -1, -1, None], 'the column holds 2 cells "-1": give --missing=-1 if they stand for unknown'),
        (
            ["Unknown", "nan", "null", "missing"],
            'the column holds 1 cell "Unknown" and 1 cell "missing" and 1 cell "nan": ',
        ),
        (["a", "b", None, ""], ""),
        ([0, 1, 2], ""),
        ([True, False], ""),
        ([date(2020, 1, 1)], ""),
    ],
)
def test_usual_marks_get_a_hint(column, sentence):
    found = hint(pl.Series("y", column))
    assert found == sentence or (sentence.endswith(": ") and found.startswith(sentence))

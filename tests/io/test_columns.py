"""Columns of a table: which are features, what they hold, and what is refused with which words."""

from datetime import date

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from coxfield.io.columns import Table, TableError


def table(**columns):
    return Table("t.csv", pl.DataFrame(columns))


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
    with pytest.raises(TableError, match="has a column without a name: give it a name, or leave it out with --drop ''"):
        rows.feature_names(apart=(), only=(), drop=())
    assert rows.feature_names(apart=(), only=(), drop=("",)) == ["a"]


def test_a_table_of_one_column_with_semicolons_gets_a_hint():
    with pytest.raises(TableError, match="give --read separator=;"):
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
        ([1.0, 2.0, -float("inf")], "holds -inf in row 3"),
        (["1", "2", "NA"], "holds text, 'NA' in row 3, .* --drop b when fitting"),
        ([date(2020, 1, 1)] * 3, "is of type Date, .* --drop b when fitting"),
        ([[1], [2], [3]], r"is of type List.*, .* --drop b when fitting"),
    ],
)
def test_features_that_are_no_finite_numbers_are_named(values, found):
    with pytest.raises(TableError, match=f"Column 'b' of t.csv {found}"):
        table(a=[1, 2, 3], b=values).matrix(["a", "b"])


@pytest.mark.parametrize("values", [[1.0, None, None], [None, None, None], [1, 2, None], [1.0, float("nan"), 2.0]])
def test_blank_numbers_are_nan(values):
    found = table(a=[1, 2, 3], b=values).matrix(["a", "b"])
    np.testing.assert_array_equal(found[:, 1], [np.nan if value is None else value for value in values])


def test_columns_of_words_and_dates_stay_what_they_are():
    found = table(a=["x", "y"], b=[date(2020, 1, 1)] * 2, c=[1, None]).features(["a", "b", "c"])
    assert found.dtypes == [pl.String, pl.Date, pl.Int64]
    said = table(a=["x", None], b=[date(2020, 1, 1)] * 2, c=[1, None], d=[True, False]).described(["a", "b", "c", "d"])
    assert said == "1 category, 1 date, 1 number, 1 yes or no, 2 blanks in 2 columns"


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
        (["a", "a"], "Column 'y' of t.csv holds one class only, a: a classifier needs at least two"),
        ([0.5, 1.0], "holds numbers such as 0.5, which are quantities"),
        (["0.5", "1"], "holds numbers such as 0.5, which are quantities"),
        ([date(2020, 1, 1), date(2021, 1, 1)], "is of type Date: classes must be strings, integers or booleans"),
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


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (["007", "b", "b"], ["007", "b", "b"]),
        ([7, 8, -1], ["7", "8", "-1"]),
        ([True, False, True], ["true", "false", "true"]),
        ([date(2020, 1, 2)] * 2, ["2020-01-02"] * 2),
    ],
)
def test_ids_are_text(values, texts):
    assert table(name=values).ids("name") == texts


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (["a", None, " "], "Column 'name' of .* is blank in 2 of 3 rows, first in row 2: .* fill in their ids"),
        ([1, None], "Column 'name' of .* is blank in 1 of 2 rows, first in row 2"),
        ([[1], [2]], r"is of type List\(Int64\), and ids must be text or numbers"),
        (["a", "b\0"], "holds an id with a zero byte"),
    ],
)
def test_ids_that_name_no_row_are_refused(values, sentence):
    with pytest.raises(TableError, match=sentence):
        table(name=values).ids("name")
    with pytest.raises(TableError, match="has no column 'absent'"):
        table(name=values).ids("absent")


def test_one_class_is_enough_if_it_is_said():
    assert table(y=["a", "a"]).labels("y", least=1).tolist() == ["a", "a"]
    with pytest.raises(TableError, match="is blank in 1 of 2 rows"):
        table(y=["a", None]).labels("y", least=1)


ODD = {
    "list": pl.Series([[1], [2]]),
    "array": pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int64, 2)),
    "struct": pl.Series([{"k": 1}, {"k": 2}]),
    "binary": pl.Series([b"1", b"2"]),
    "duration": pl.Series([1, 2]).cast(pl.Duration("us")),
}


@pytest.mark.parametrize("kind", ODD)
def test_ids_that_are_neither_text_nor_numbers_are_refused_in_a_sentence(kind):
    with pytest.raises(TableError, match=r"Column 'id' of t is of type .*, and ids must be text or numbers: write"):
        Table("t", pl.DataFrame({"id": ODD[kind]})).ids("id")


def test_classes_of_128_bits_are_integers_unless_they_are_too_large():
    def labels(*values):
        return Table("t", pl.DataFrame({"y": pl.Series(values, dtype=pl.Int128)})).labels("y")

    assert labels(3, -(2**63), 2**63 - 1).tolist() == [3, -(2**63), 2**63 - 1]
    with pytest.raises(TableError, match=f"holds the integer {2**63}, which is beyond 64-bit integers: write such"):
        labels(3, 2**63)


def test_unsigned_classes_stay_what_they_are():
    column = pl.Series("y", [2**64 - 1, 3], dtype=pl.UInt64)
    assert Table("t", pl.DataFrame(column)).labels("y").tolist() == [2**64 - 1, 3]


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical])
def test_classes_with_a_zero_byte_which_numpy_would_drop_are_refused(kind):
    table = Table("t", pl.DataFrame({"y": pl.Series(["p", "p\0", "q"]).cast(kind)}))
    with pytest.raises(TableError, match="Column 'y' of t holds a class with a zero byte: write classes as plain text"):
        table.labels("y")


def test_names_of_columns_are_listed_a_fixed_number_of_times(monkeypatch):
    """Polars makes a new list of all names each time. One per column takes a minute for 20,000 columns."""
    names = [f"c{number}" for number in range(300)]
    table = Table("t", pl.DataFrame(np.ones((2, 300)), schema=names))
    asked = []
    listing = pl.DataFrame.columns.fget
    monkeypatch.setattr(pl.DataFrame, "columns", property(lambda self: asked.append(1) or listing(self)))
    assert table.feature_names(apart=("c0",), only=names[1:], drop=()) == names[1:]
    assert table.features(names).shape == (2, 300)
    assert len(asked) < 20

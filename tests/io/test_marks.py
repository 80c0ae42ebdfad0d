"""Values that stand for a blank cell, and the hint to those who may have forgotten to say so."""

from datetime import date

import polars as pl
import pytest
from polars.testing import assert_series_equal

from coxfield.io.columns import blanked, hint


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

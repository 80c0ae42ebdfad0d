"""Columns of data frames that cannot be features: every estimator names the column and says what to do."""

import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from coxfield import LGCPClassifier, PermanentalClassifier
from coxfield.baselines import HarmonicFunctions, ParzenClassifier, SVMClassifier, VariationalGPClassifier
from coxfield.estimators.validation import refuse_columns, trouble
from lean import run_without

A, Y = [0.5, 0.25, 4.0, 4.5], [0, 0, 1, 1]
NEEDED = "where numbers are needed: encode it as numbers, or leave it out, X.drop"
FILL = "where a finite number is needed: fill in a number, or remove the row"


def pandas_frame(b, **kind):
    return pd.DataFrame({"a": A, "b": pd.Series(b, **kind)})


def polars_frame(b, **kind):
    return pl.DataFrame({"a": A, "b": pl.Series(b, **kind)})


DAYS = pd.date_range("2020-01-01", periods=4)
WRONG = {
    "dates": (pandas_frame(DAYS), rf"Column 'b' of X is of type datetime64\[.*\], {NEEDED}\(columns=\['b'\]\)"),
    "only dates": (pd.DataFrame({"b": DAYS}), "Column 'b' of X is of type datetime64"),
    "dates with a zone": (pandas_frame(DAYS.tz_localize("UTC")), r"Column 'b' of X is of type datetime64\[.*, UTC\]"),
    "durations": (pandas_frame(DAYS - DAYS[0]), "Column 'b' of X is of type timedelta64"),
    "periods": (
        pandas_frame(DAYS.to_period("D")),
        r"holds a value of type Period, Period\('2020-01-01', 'D'\) in row 0",
    ),
    "text": (pandas_frame(["1", "x", "2", "y"]), f"Column 'b' of X holds text, 'x' in row 1, {NEEDED}"),
    "text objects": (pandas_frame([1, 2, "x", 3], dtype=object), "Column 'b' of X holds text, 'x' in row 2"),
    "text after a blank": (pandas_frame([pd.NA, None, "x", 3], dtype=object), "holds text, 'x' in row 2"),
    "strings": (pandas_frame(["x"] * 4, dtype="string"), "Column 'b' of X holds text, 'x' in row 0"),
    "categories": (pandas_frame(["u", "v"] * 2, dtype="category"), "Column 'b' of X holds text, 'u' in row 0"),
    "lists": (pandas_frame([[1]] * 4), r"Column 'b' of X holds a value of type list, \[1\] in row 0"),
    "days as objects": (
        pandas_frame([date(2020, 1, 1)] * 4),
        "Column 'b' of X holds a value of type date, datetime.date",
    ),
    "complex": (
        pandas_frame([1j] * 4),
        "Complex data not supported: column 'b' of X holds complex numbers: give their real",
    ),
    "huge": (pandas_frame([1, 10**400, 2, 3], dtype=object), r"holds a value of type int, 1000.*\.\.\..*000 in row 1"),
    "NaN": (pandas_frame([0, 1, np.nan, 3]), f"Input X contains NaN: column 'b' is blank in row 2, {FILL}"),
    "None": (pandas_frame([0, 1, None, 3], dtype=object), "Input X contains NaN: column 'b' is blank in row 2"),
    "NA": (pandas_frame([0, 1, None, 3], dtype="Int64"), "Input X contains NaN: column 'b' is blank in row 2"),
    "NA among objects": (
        pandas_frame([0, 1, pd.NA, 3], dtype=object),
        "Input X contains NaN: column 'b' is blank in row 2",
    ),
    "unknown truth": (pandas_frame([True, None, False, None], dtype="boolean"), "column 'b' is blank in row 1"),
    "blank category": (pandas_frame([3, None, 7, 3], dtype="category"), "column 'b' is blank in row 1"),
    "infinity": (
        pandas_frame([0, -np.inf, 1, 3]),
        f"Input X contains infinity: column 'b' holds -inf in row 1, {FILL}",
    ),
    "twice": (
        pd.DataFrame(np.ones((4, 3)), columns=["a", "b", "b"]),
        "X has more than one column 'b': rename or remove one",
    ),
    "no columns": (pd.DataFrame(index=range(4)), r"X has no columns, its shape is \(4, 0\): give at least one feature"),
    "polars dates": (polars_frame([date(2020, 1, 1)] * 4), rf"Column 'b' of X is of type Date, {NEEDED}\('b'\)"),
    "polars date times": (polars_frame([datetime(2020, 1, 1)] * 4), "Column 'b' of X is of type Datetime"),
    "polars durations": (polars_frame([timedelta(1)] * 4), "Column 'b' of X is of type Duration"),
    "polars times": (polars_frame([time(1)] * 4), "Column 'b' of X is of type Time"),
    "polars text": (polars_frame(["1", None, "x", "2"]), rf"Column 'b' of X holds text, 'x' in row 2, {NEEDED}\('b'\)"),
    "polars categories": (
        polars_frame(["u", "v"] * 2, dtype=pl.Categorical),
        "Column 'b' of X holds text, 'u' in row 0",
    ),
    "polars lists": (polars_frame([[1]] * 4), r"Column 'b' of X is of type List\(Int64\)"),
    "polars records": (polars_frame([{"x": 1}] * 4), "Column 'b' of X holds a value of type dict"),
    "polars null": (polars_frame([0, 1, None, 3]), f"Input X contains NaN: column 'b' is blank in row 2, {FILL}"),
    "polars truth": (polars_frame([True, None, False, None]), "Input X contains NaN: column 'b' is blank in row 1"),
    "polars nothing": (polars_frame([None] * 4), "Input X contains NaN: column 'b' is blank in row 0"),
    "polars NaN": (polars_frame([0, 1, np.nan, 3], strict=False), "Input X contains NaN: column 'b' is blank in row 2"),
    "polars infinity": (
        polars_frame([0, np.inf, 1, 3], strict=False),
        "Input X contains infinity: column 'b' holds inf in row 1",
    ),
    "polars, not collected": (polars_frame(A).lazy(), r"X is a LazyFrame, which holds no rows yet: give X.collect\(\)"),
}


@pytest.mark.parametrize(("X", "words"), WRONG.values(), ids=WRONG)
def test_the_column_is_named_in_fit_and_predict(X, words):
    classifier = PermanentalClassifier()  # takes numbers alone
    with pytest.raises(ValueError, match=words):
        classifier.fit(X, Y)
    frame = polars_frame if type(X).__module__.startswith("polars") else pandas_frame
    classifier.fit(frame([0.0, 1.0, 2.0, 3.0]), Y)
    with pytest.raises(ValueError, match=words):
        classifier.predict(X)


ESTIMATORS = [  # `LGCPClassifier` and `SLGCPClassifier` take such columns
    PermanentalClassifier(),
    HarmonicFunctions(),
    ParzenClassifier(),
    SVMClassifier(length_scale=1.0),
    VariationalGPClassifier(n_restarts=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("kind", ["dates", "text", "NaN", "polars null"])
def test_every_estimator_names_the_column(estimator, kind):
    X, words = WRONG[kind]
    with pytest.raises(ValueError, match=words):
        estimator.fit(X, Y)
    frame = polars_frame if kind.startswith("polars") else pandas_frame
    estimator.fit(frame([0.0, 1.0, 2.0, 3.0]), Y)
    with pytest.raises(ValueError, match=words):
        estimator.predict(X)


GOOD = {
    "integers": (pandas_frame([1, 2, 3, 4]), [1, 2, 3, 4]),
    "truth": (pandas_frame([True, False, True, False]), [1, 0, 1, 0]),
    "truth that may be unknown": (pandas_frame([True, False] * 2, dtype="boolean"), [1, 0, 1, 0]),
    "numbers that may be unknown": (pandas_frame([1, 2, 3, 4], dtype="Int64"), [1, 2, 3, 4]),
    "categories": (pandas_frame([3, 7, 3, 7], dtype="category"), [3, 7, 3, 7]),
    "objects": (pandas_frame([1, 2.5, Decimal("0.5"), True], dtype=object), [1, 2.5, 0.5, 1]),
    "polars truth": (polars_frame([True, False] * 2), [1, 0, 1, 0]),
    "polars decimals": (polars_frame([Decimal("0.5")] * 4), [0.5] * 4),
}


@pytest.mark.parametrize(("X", "b"), GOOD.values(), ids=GOOD)
def test_columns_of_numbers_are_taken_as_they_are(X, b):
    refuse_columns(X)
    assert trouble(X) is None
    found = PermanentalClassifier().fit(X, Y)
    np.testing.assert_array_equal(found.X_fit_, np.stack([A, b], axis=1))
    assert found.feature_names_in_.tolist() == ["a", "b"]


def test_what_is_no_data_frame_keeps_the_sentence_of_scikit_learn():
    assert trouble(np.array([[np.nan]])) is None
    with pytest.raises(ValueError, match=re.escape("Input X contains NaN.")):
        PermanentalClassifier().fit([[np.nan, 0.0]] * 4, Y)


def test_errors_that_no_column_explains_keep_the_sentence_of_scikit_learn():
    classifier = LGCPClassifier(selection="loo_error").fit(pandas_frame([0.0, 1.0, 2.0, 3.0]), Y)
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        classifier.predict(pd.DataFrame({"b": A, "a": A}))


def test_data_frames_need_no_package_that_is_not_there():
    done = run_without(
        ("pandas", "polars"),
        "from coxfield import LGCPClassifier\n"
        "print(LGCPClassifier().fit([[0.0], [0.1], [1.0], [1.1]], [0, 0, 1, 1]).predict([[1.2]]))\n",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[1]\n"

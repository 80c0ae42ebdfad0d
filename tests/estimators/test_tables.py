"""Ordinary tables: what each kind of column becomes, and that only what it means counts, not how it is written."""

import datetime as dt
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.estimators.tables import APART, FARTHEST, MOST_JOINT, MOST_LEVELS, RIDGE, STEPS, TableColumns, TableError
from lean import run_without
from reference import conditional_means, gaussian_of_rows_with_blanks, standardised
from tolerances import assert_close

BIRDS = ["Adelie", "Chinstrap", "Gentoo"]


def penguins(n=90, seed=0, blanks=True):
    """Mixed columns like those of the penguins, and their classes."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n)
    frame = pd.DataFrame(
        {
            "island": np.array(["Torgersen", "Dream", "Biscoe"])[
                np.where(rng.random(n) < 0.7, kind, rng.integers(3, size=n))
            ],
            "bill": rng.normal(40 + 5 * (kind == 1), 2),
            "flipper": rng.normal(190 + 20 * (kind == 2), 6),
            "sex": rng.choice(["male", "female"], n),
        }
    )
    if blanks:
        frame.loc[rng.random(n) < 0.15, "bill"] = np.nan
        frame.loc[rng.random(n) < 0.15, "sex"] = None
    return frame, np.array(BIRDS)[kind]


def points(frame, **options):
    return TableColumns.of(frame, **options).points(frame)


def squares(P):
    return np.square(P[:, None] - P[None]).sum(axis=2)


# What a column becomes.


def test_levels_are_two_apart_whatever_their_number_and_however_rare():
    found = points(pd.DataFrame({"a": ["x"] * 30 + ["y", "z"]}))
    expected = 2.0 * (np.array(["x"] * 30 + ["y", "z"])[:, None] != np.array(["x"] * 30 + ["y", "z"]))
    np.testing.assert_allclose(squares(found), expected)


@pytest.mark.parametrize("n_levels", [1, 2, 3, 7, 29])
@pytest.mark.parametrize("blank", [False, True])
def test_a_level_that_was_never_seen_is_as_far_from_all_as_they_are_from_each_other(n_levels, blank):
    seen = [f"level {k}" for k in range(n_levels)] + [None] * blank
    columns = TableColumns.of(pd.DataFrame({"a": seen}))
    new, old = columns.points(pd.DataFrame({"a": ["new", "newer"]})), columns.points(pd.DataFrame({"a": seen}))
    np.testing.assert_allclose(np.square(new[:, None] - old[None]).sum(axis=2), 2.0)
    np.testing.assert_array_equal(new[0], new[1])


def test_rare_levels_are_one_and_a_new_level_is_like_them():
    values = [f"common {k}" for k in range(MOST_LEVELS - 1) for _ in range(3)] + [f"rare {k}" for k in range(9)]
    columns = TableColumns.of(pd.DataFrame({"a": values}))
    (column,) = columns.columns
    assert column.rare
    assert sorted(column.levels) == sorted(set(values[:-9]))
    found = columns.points(pd.DataFrame({"a": ["rare 1", "rare 2", "new", "common 3"]}))
    np.testing.assert_allclose(squares(found)[0], [0, 0, 0, 2])


def test_a_blank_number_is_the_median_and_says_so():
    found = points(pd.DataFrame({"a": [1.0, np.nan, 3.0, 10.0]}))
    np.testing.assert_allclose(found, [[1, 0], [3, APART], [3, 0], [10, 0]])


def test_blanks_that_come_after_the_fit():
    columns = TableColumns.of(
        pd.DataFrame({"a": [1.0, 2.0, 9.0], "b": ["x", "y", "y"], "c": pd.Categorical([1, 0, 1])})
    )
    found = columns.points(pd.DataFrame({"a": [np.nan], "b": [None], "c": [None]}))
    assert found[0, 0] == 2.0
    seen = columns.points(pd.DataFrame({"a": [2.0, 2.0], "b": ["x", "y"], "c": pd.Categorical([1, 0])}))
    np.testing.assert_allclose(np.square(found - seen).sum(axis=1), 2 + 0.25)


def by_reference(X, train):
    """Blanks of X by what the other numbers of their rows say, as learned from rows that may have blanks too."""
    (n, d), medians = train.shape, np.nanmedian(train, axis=0)
    scale = np.sqrt(np.nanmean((train - medians) ** 2, axis=0))
    ridge, steps = RIDGE + d / n, STEPS * np.isnan(train).any()
    mean, covariance = gaussian_of_rows_with_blanks(standardised(train, medians, scale, FARTHEST), ridge, steps)
    centre = medians + mean * scale
    said, _ = conditional_means(standardised(X, centre, scale, FARTHEST), np.zeros(d), covariance, ridge)
    return np.where(np.isnan(X), centre + said * scale, X)


def correlated(n=80, share=0.3, seed=0):
    """Rows of four numbers, of which three say almost the same, and the same rows with blanks."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 1:3] = [50, -3] + X[:, :1] * [20, 0.1] + rng.normal(size=(n, 2)) * [2, 0.01]
    return X, np.where(rng.random(X.shape) < share, np.nan, X)


def test_blank_numbers_are_what_the_other_numbers_of_their_rows_say():
    whole, X = correlated()
    found = points(X)
    assert_close(found[:, :4], by_reference(X, X), terms=len(X) * STEPS, scale=100, condition=4 / RIDGE)
    np.testing.assert_array_equal(found[:, 4:], np.isnan(X) * APART)
    some = np.isnan(X[:, 1]) & ~np.isnan(X[:, 0])  # the first says almost all about the second
    off = np.abs(found[some, 1] - whole[some, 1]), np.abs(np.nanmedian(X[:, 1]) - whole[some, 1])
    assert some.sum() > 10
    assert off[0].mean() < off[1].mean() / 3


def test_a_row_that_is_blank_throughout_is_the_mean_of_all():
    _, X = correlated()
    columns = TableColumns.of(X)
    found = columns.points(np.full((1, 4), np.nan))[0, :4]
    assert_close(found, np.array(columns.joint.centre))


def test_a_wrong_cell_does_not_spoil_the_blanks_beside_it():
    whole, X = correlated()
    found = TableColumns.of(X).points(np.array([[1e200, np.nan, np.nan, 0.0]]))[0, :4]
    assert found[0] == 1e200
    spread = np.abs(whole - np.median(whole, axis=0)).max(axis=0)
    assert (np.abs(found - np.median(whole, axis=0)) <= 2 * FARTHEST * spread)[1:3].all()


def test_units_of_two_to_a_power_move_fillings_with_them():
    _, X = correlated()
    units = np.array([2.0**-500, 2.0**300, 1.0, 2.0**40])
    np.testing.assert_array_equal(points(X * units)[:, :4], points(X)[:, :4] * units)


def test_blanks_of_many_columns_and_of_numbers_beyond_squares_are_medians():
    many = np.random.default_rng(0).normal(size=(20, MOST_JOINT + 1))
    large = 1.7e308 * np.repeat([[1.0, 1.0], [-1.0, -1.0]], [13, 7], axis=0)
    for X in (many, large):
        X[0] = np.nan
        columns = TableColumns.of(X)
        assert columns.joint is None
        assert columns.points(X)[0, 0] == np.nanmedian(X[:, 0])


KINDS = {
    "objects": (pd.Series(["u", "v", "u", None], dtype=object), "category"),
    "strings": (pd.Series(["u", "v", "u", None], dtype="string"), "category"),
    "categories": (pd.Series(["u", "v", "u", None], dtype="category"), "category"),
    "codes as categories": (pd.Series([3, 7, 3, None], dtype="category"), "category"),
    "ordered": (pd.Series(pd.Categorical(["low", "high", "low", None], ["low", "high"], ordered=True)), "ordered"),
    "booleans": (pd.Series([True, False, True, True]), "yes or no"),
    "booleans that may be unknown": (pd.Series([True, False, None, True], dtype="boolean"), "category"),
    "integers that may be unknown": (pd.Series([1, 2, None, 4], dtype="Int64"), "number"),
    "floats that may be unknown": (pd.Series([1, 2, None, 4], dtype="Float32"), "number"),
    "numbers as text": (pd.Series(["1", "2.5", None, "4"]), "number"),
    "numbers as objects": (pd.Series([1, 2.5, None, True], dtype=object), "number"),
    "days": (pd.Series(pd.to_datetime(["2024-01-01", "2024-03-01", None, "2025-06-01"])), "date"),
    "days with a zone": (pd.Series(pd.date_range("2024-01-01", periods=4, tz="Asia/Tokyo")), "date"),
    "days as objects": (pd.Series([dt.date(2024, 1, 1), None, dt.date(2024, 3, 1), dt.date(2024, 5, 1)]), "date"),
    "days as text": (pd.Series(["2024-01-01", "2024-03-01", None, "2025-06-01"]), "date"),
    "durations": (pd.Series(pd.to_timedelta([1, 2, 3, 4], "D")), "number"),
    "nothing": (pd.Series([None] * 4, dtype=object), "empty"),
    "yes and no": (pd.Series(["yes", "No ", "no", "yes"]), "yes or no"),
    "yes and perhaps": (pd.Series(["yes", "perhaps", None, "yes"]), "category"),
    "0 and 1 as categories": (pd.Series([0, 1, 1, 0], dtype="category"), "indicator"),
    "polars text": (pl.Series(["u", "v", "u", None]), "category"),
    "polars categories": (pl.Series(["u", "v", "u", None], dtype=pl.Categorical), "category"),
    "polars levels": (pl.Series(["low", "high", "low", None], dtype=pl.Enum(["low", "high"])), "ordered"),
    "polars truth": (pl.Series([True, False, True, True]), "yes or no"),
    "polars days": (pl.Series([dt.date(2024, 1, 1), None, dt.date(2024, 3, 1), dt.date(2024, 5, 1)]), "date"),
    "polars numbers": (pl.Series([1, None, 2, 3]), "number"),
    "arrow text": (pa.chunked_array([["u", "v", "u", None]]), "category"),
    "arrow categories": (pa.chunked_array([pa.array(["u", "v", "u", None]).dictionary_encode()]), "category"),
    "arrow truth": (pa.chunked_array([[True, False, True, True]]), "yes or no"),
    "arrow days": (pa.chunked_array([[dt.date(2024, 1, 1), None, dt.date(2024, 3, 1), dt.date(2024, 5, 1)]]), "date"),
    "arrow numbers": (pa.chunked_array([[1, None, 2, 3]]), "number"),
}


def framed(column, **others):
    package = (
        pl.DataFrame if isinstance(column, pl.Series) else pa.table if isinstance(column, pa.ChunkedArray) else None
    )
    return (package or pd.DataFrame)({"b": column, **others})


@pytest.mark.parametrize(("column", "kind"), KINDS.values(), ids=KINDS)
def test_kinds_of_columns(column, kind):
    frame = framed(column, a=[0.5, 0.25, 4.0, 4.5])
    columns = TableColumns.of(frame)
    assert [one.kind for one in columns.columns] == [kind, "number"]
    classifier = LGCPClassifier().fit(frame, [0, 0, 1, 1])
    assert np.isfinite(classifier.predict_proba(frame)).all()
    assert classifier.feature_names_in_.tolist() == ["b", "a"]


def test_ordered_levels_are_ranks():
    levels = pd.Categorical(["high", "low", None, "middle"], ["low", "middle", "high"], ordered=True)
    np.testing.assert_allclose(points(pd.DataFrame({"a": levels}))[:, 0], [2, 0, 1, 1])  # a blank is the median


def test_dates_are_days_and_circles_of_what_varies():
    days = pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01", "2022-07-02", "2024-01-01"]))
    columns = TableColumns.of(pd.DataFrame({"a": days}))
    assert columns.columns[0].cycles == ("day of year", "day of week")
    found = columns.points(pd.DataFrame({"a": days}))
    assert found[1, 0] - found[0, 0] == 366
    np.testing.assert_allclose(np.hypot(found[:, 1], found[:, 2]), 1)
    assert np.linalg.norm(found[0, 1:3] - found[1, 1:3]) < 0.02 < 1.9 < np.linalg.norm(found[0, 1:3] - found[2, 1:3])
    short = TableColumns.of(pd.DataFrame({"a": pd.date_range("2024-01-01", periods=5), "b": list("xyxyx")}))
    assert short.columns[0].cycles == ()


@pytest.mark.parametrize(
    "others",
    [{"a": [0.5, 0.2, 4.0, 4.5]}, {"c": list("xxyy")}, {}, {"a": [1.0] * 4}],
    ids=["numbers", "levels", "nothing", "constant"],
)
def test_a_column_with_one_level_says_nothing(others):
    frame, y = pd.DataFrame({"b": ["u"] * 4} | others), [0, 0, 1, 1]
    if not others or ("a" in others and len(set(others["a"])) == 1):
        with pytest.raises(ValueError, match="all points are the same"):
            LGCPClassifier().fit(frame, y)
    else:
        assert LGCPClassifier().fit(frame, y).predict(frame).tolist() == y


def test_text_is_refused_ids_are_left_out_and_words_that_repeat_are_levels():
    n = 60
    text = [f"a sentence of many words {k}" for k in range(n)]
    with pytest.raises(TableError, match=r"Column 'note' of X holds text, 60 different values in 60 rows.*Tfidf"):
        TableColumns.of(pd.DataFrame({"note": text}))
    frame = pd.DataFrame({"id": [f"P{k}" for k in range(n)], "x": ["u", "v"] * (n // 2)})
    with pytest.warns(UserWarning, match="column 'id' of X has another word in nearly every row, so it is left out"):
        columns = TableColumns.of(frame)
    assert [column.kind for column in columns.columns] == ["id", "category"]
    assert TableColumns.of(frame, ["id"]).columns[0].kind == "category"
    tickets = TableColumns.of(pd.DataFrame({"ticket": [f"T{k // 2}" for k in range(100)]}))
    assert tickets.columns[0].rare
    with pytest.raises(TableError, match="no column of X can be used: 'id' is an id"):
        TableColumns.of(frame[["id"]])


def test_a_word_among_many_numbers_is_refused_with_its_row():
    values = [str(k) for k in range(80)] + ["n.a."]
    with pytest.raises(TableError, match=r"Column 'a' of X holds text, 'n.a.' in row 80, where numbers are needed"):
        TableColumns.of(pd.DataFrame({"a": values}))


def test_infinity_is_refused():
    with pytest.raises(TableError, match="Input X contains infinity: column 'a' holds inf in row 1"):
        TableColumns.of(pd.DataFrame({"a": [1.0, np.inf], "b": ["x", "y"]}))


def test_categorical_features_by_name_place_and_mask():
    frame, y = penguins(blanks=False)
    frame["code"] = np.arange(len(frame)) % 4
    wanted = points(frame, categorical_features=["code"])
    for choice in ([4], [-1], [False, False, False, False, True], np.array(["code"])):
        np.testing.assert_array_equal(points(frame, categorical_features=choice), wanted)
    assert LGCPClassifier(categorical_features=["code"]).fit(frame, y).columns_.columns[4].kind == "category"
    array = frame[["bill", "code"]].to_numpy()
    assert TableColumns.of(array, [1]).columns[1].kind == "category"
    for choice, words in (
        (["no"], "names 'no', which is not a column"),
        ([True], "mask of 1 columns"),
        ("code", "must be 'from_dtype'"),
    ):
        with pytest.raises(ValueError, match=words):
            LGCPClassifier(categorical_features=choice).fit(frame, y)


def test_numbers_without_blanks_stay_as_they_are():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    assert TableColumns.of(frame) is None
    assert TableColumns.of(frame.to_numpy()) is None
    assert TableColumns.of([[1.0, 2.0]]) is None


# Only what a table means counts.


def fitted(frame, y, **options):
    return LGCPClassifier(**options).fit(frame, y)


@settings(max_examples=4, deadline=None)
@given(st.permutations(["Torgersen", "Dream", "Biscoe"]), st.permutations(["island", "bill", "flipper", "sex"]))
def test_names_of_levels_and_the_order_of_columns_do_not_count(names, order):
    frame, y = penguins()
    wanted = fitted(frame, y).predict_proba(frame)
    renamed = frame.assign(island=frame["island"].map(dict(zip(["Torgersen", "Dream", "Biscoe"], names, strict=True))))
    typed = renamed.assign(island=renamed["island"].astype(pd.CategoricalDtype(names)))
    for other in (renamed[order], typed):
        np.testing.assert_allclose(fitted(other, y).predict_proba(other), wanted, atol=1e-6)


@pytest.mark.parametrize("dtype", [int, float, bool])
def test_a_category_that_is_split_into_its_levels_gives_the_same_probabilities(dtype):
    frame, y = penguins(blanks=False)
    split = pd.get_dummies(frame, dtype=dtype)
    split = split.astype(dict.fromkeys(split.columns[2:], "category"))
    assert split.shape[1] == 2 + 3 + 2
    np.testing.assert_allclose(fitted(split, y).predict_proba(split), fitted(frame, y).predict_proba(frame), atol=1e-6)


def test_all_libraries_of_frames_give_the_same_probabilities():
    frame, y = penguins()
    wanted = fitted(frame, y).predict_proba(frame)
    for other in (pl.from_pandas(frame), pa.Table.from_pandas(frame), frame.to_numpy(dtype=object)):
        np.testing.assert_allclose(fitted(other, y).predict_proba(other), wanted, rtol=1e-9)


def test_units_of_numbers_do_not_count_beside_categories():
    frame, y = penguins()
    wanted = fitted(frame, y).predict_proba(frame)
    other = frame.assign(bill=frame["bill"] * 1024 + 4096)
    np.testing.assert_allclose(fitted(other, y).predict_proba(other), wanted, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist, pd.DataFrame], ids=["array", "list", "frame"])
def test_nan_in_arrays_lists_and_frames_of_numbers(form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    clean = LGCPClassifier().fit(form(X.copy()), y)
    X[rng.random(X.shape) < 0.1] = np.nan
    found = LGCPClassifier().fit(form(X), y)
    assert found.columns_.n_categories == np.isnan(X).any(axis=0).sum()
    assert found.score(form(X), y) > 0.8
    np.testing.assert_allclose(
        clean.predict_proba(form(X)), clean.predict_proba(form(by_reference(X, clean.X_fit_))), rtol=1e-9
    )


@pytest.mark.parametrize("form", [np.ndarray.tolist, tuple, list], ids=["lists", "tuple of arrays", "list of arrays"])
def test_new_rows_without_blanks_may_come_as_a_list(form):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] > 0
    blank = X.copy()
    blank[::7, 1] = np.nan
    found = LGCPClassifier().fit(blank.tolist(), y)
    np.testing.assert_array_equal(found.predict_proba(form(X[:5])), found.predict_proba(X[:5]))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        found.predict_proba(sparse.csr_array(X))


# Everything that a classifier can do.


def test_contributions_to_rows_of_a_table_add_up():
    frame, y = penguins()
    model = fitted(frame, y)
    reasons = model.contributions(frame[:7], top=3)
    np.testing.assert_allclose(reasons.shares.sum(axis=2) + reasons.rest, model.class_scores(frame[:7]))
    again = model.loo_contributions([0, 5], top=2)
    np.testing.assert_allclose(again.shares.sum(axis=2) + again.rest, model.loo_class_scores()[[0, 5]])


def test_forgetting_a_row_equals_a_fit_without_it():
    frame, y = penguins()
    model = fitted(frame, y)
    rows = np.setdiff1d(np.arange(len(y)), [3, 40])
    model.forget([3, 40])
    other = LGCPClassifier(model.kernel_, selection=None, mean=dict(zip(BIRDS, model.mean_.tolist(), strict=True)))
    other.fit(model.columns_.points(frame.iloc[rows]), y[rows])
    queries, _ = penguins(seed=1)
    wanted = other.predict_proba(model.columns_.points(queries))
    np.testing.assert_allclose(model.predict_proba(queries), wanted, rtol=1e-6)


def test_rows_that_come_later_with_levels_that_nobody_has_seen():
    frame, y = penguins()
    model = fitted(frame[:80], y[:80])
    later = frame[80:].assign(island="Dumont")
    model.partial_fit(later, y[80:])
    assert len(model.y_fit_) == 90
    assert np.isfinite(model.predict_proba(later.assign(sex="unknown", bill=np.nan))).all()


def test_quality_sets_and_leave_one_out():
    frame, y = penguins()
    y[11] = BIRDS[(BIRDS.index(y[11]) + 1) % 3]
    model = fitted(frame, y, selection_part=0.5, random_state=0)
    assert model.label_quality()["rank"][11] < 12
    assert model.predict_set(frame, 0.9).shape == (90, 3)
    assert model.loo_predict_proba().shape == (90, 3)
    assert fitted(frame, y, selection="loo_error").predict(frame).shape == (90,)


def test_few_labels_of_a_table():
    frame, truth = penguins(120)
    y = np.where(np.arange(120) % 6 == 0, truth, None)
    model = SLGCPClassifier(missing_label=None).fit(frame, y)
    assert model.columns_.n_categories == 3 + 1 + 3
    assert np.mean(model.transduction_ == truth) > 0.7
    assert model.predict(frame.assign(island="Dumont")).shape == (120,)


def test_usual_transformers_in_front_keep_working():
    frame, y = penguins()
    ahead = make_column_transformer(
        (SimpleImputer(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), make_column_selector(dtype_exclude="number")),
    )
    assert make_pipeline(ahead, LGCPClassifier()).fit(frame, y).score(frame, y) > 0.8
    codes = make_column_transformer((OrdinalEncoder(), ["island"]), remainder="passthrough").set_output(
        transform="pandas"
    )
    model = make_pipeline(codes, LGCPClassifier(categorical_features=["ordinalencoder__island"])).fit(frame, y)
    assert model[-1].columns_.columns[0].kind == "category"


def test_skrub_in_front_keeps_working():
    skrub = pytest.importorskip("skrub")
    frame, y = penguins()
    assert make_pipeline(skrub.TableVectorizer(), LGCPClassifier()).fit(frame, y).score(frame, y) > 0.8


def test_names_of_columns_are_checked():
    frame, y = penguins()
    model = fitted(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"sex": "gender"}))
    with pytest.raises(ValueError, match="more than one column 'a'"):
        LGCPClassifier().fit(pd.DataFrame([["x", 1], ["y", 2]], columns=["a", "a"]), [0, 1])


def test_no_library_of_frames_is_needed():
    done = run_without(
        ("pandas", "polars", "pyarrow"),
        "import math\n"
        "from coxfield import LGCPClassifier\n"
        "X = [['u', 0.0], ['u', math.nan], ['v', 1.0], ['v', 1.1]]\n"
        "print(LGCPClassifier().fit(X, [0, 0, 1, 1]).columns_.summary)\n",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 category, 1 number, blanks in 1\n"


def test_a_category_as_an_expected_mismatch():
    """The squared exponential on the columns is exp(-mismatches / l^2)."""
    frame = pd.DataFrame({"a": list("xyxz"), "b": list("uuvv")})
    found = points(frame)
    mismatches = (frame.to_numpy()[:, None] != frame.to_numpy()[None]).sum(axis=2)
    np.testing.assert_allclose(np.exp(-squares(found) / 2), np.exp(-mismatches))
    assert math.isclose(squares(found)[0, 3], 4)

"""Ordinary tables in parts: what one machine does with the whole table."""

import datetime as dt
import pickle
from functools import cache

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

import dask
from coxfield import LGCPClassifier
from coxfield.dask import DaskLGCPClassifier
from coxfield.dask.chunks import Recipe
from coxfield.dask.tables import Orders, between, median
from coxfield.estimators.tables import RIDGE, STEPS
from coxfield.kernels import Member
from dask import dataframe as dd
from tolerances import assert_close

# The weights solve the concave problem to a gradient of 1e-6 nats; sums in another order move them by less.
SOLVED = 1e-6
PART, PARTS = 40, 3
KERNEL = {"kernel": RBF(2.0), "selection": None}
BANK = {"kernel": [Member(RBF(1.5), "standardised", alphas=(0.0, 0.5)), Member(RBF(2.0), alphas=(0.0,))]}


def part(k, n=PART):
    """Rows of every kind of column, with blanks; the first part has no level "c", and no rows with blank numbers."""
    rng = np.random.default_rng(k)
    kind = rng.integers(3, size=n)
    number = kind + rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "number": number,
            "follows": number + 0.3 * rng.normal(size=n),
            "nullable": pd.array(kind + rng.integers(5, size=n), dtype="Int64"),
            "word": np.array(["a", "b", "a" if k == 0 else "c"], dtype=object)[kind],
            "category": pd.Categorical(rng.choice(["x", "y"], n), ["x", "y", "z"]),
            "ordered": pd.Categorical.from_codes(kind, ["low", "middle", "high"], ordered=True),
            "boolean": rng.random(n) < 0.5,
            "answer": rng.choice(["yes", "no"], n),
            "date": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 24 * 800, n), "h"),
            "iso": [str(dt.date(2020, 1, 1) + dt.timedelta(int(days))) for days in rng.integers(0, 300, n)],
            "text": [f"{value:.2f}" for value in rng.normal(size=n)],
            "void": np.nan,
        }
    )
    for name in ("word", "date", "iso") if k == 0 else ("number", "follows", "nullable", "word", "date", "iso"):
        frame.loc[rng.random(n) < 0.15, name] = None
    return frame


def labels(k, n=PART):
    kind = np.random.default_rng(k).integers(3, size=n)
    return pd.Series(np.array(["one", "three", "two"])[kind])


X = pd.concat([part(k) for k in range(PARTS)], ignore_index=True)
Y = pd.concat([labels(k) for k in range(PARTS)], ignore_index=True).to_numpy()
QUERIES = part(9, 30).assign(word=lambda frame: frame["word"].where(frame.index != 3, "never"))
FRAMES = {
    "read": lambda: dd.from_map(part, range(PARTS), meta=part(0)[:0]),
    "held": lambda: dd.from_pandas(X, npartitions=PARTS, sort=False).persist(),
}


def lazy_queries():
    return dd.from_pandas(QUERIES, npartitions=2)


def classes():
    return da.from_array(Y, chunks=PART)


def by(options):
    """Options of both classifiers: the default bank of the one on Dask is the simple one."""
    return options if options else {"bank": "simple"}


@cache
def both(how="read", which="mixture"):
    options = {"mixture": {}, "kernel": KERNEL, "bank": BANK}[which]
    return LGCPClassifier(**by(options)).fit(X, Y), DaskLGCPClassifier(**options).fit(FRAMES[how](), classes())


def fresh(which):
    return tuple(map(pickle.loads, map(pickle.dumps, both(which=which))))


def assert_same(here, there):
    found, expected = there.predict_proba(lazy_queries()).compute(), here.predict_proba(QUERIES)
    np.testing.assert_allclose(found, expected, rtol=0, atol=SOLVED)


def assert_same_columns(there, here):
    """Gaussians are learned from the same rows, by sums that a BLAS may take in another order in another place."""
    assert there.columns_.columns == here.columns_.columns
    found, expected = there.columns_.joint, here.columns_.joint
    if expected is None:
        assert found is None
        return
    terms, d = STEPS * len(X), len(expected.centre)
    for name in ("centre", "scale", "covariance"):
        values = np.array(getattr(expected, name))
        scale = np.abs(values) if name != "covariance" else 1.0
        assert_close(getattr(found, name), values, terms=terms, condition=(d + RIDGE) / RIDGE, scale=scale)


def test_columns_are_those_of_the_whole_table():
    here, there = both()
    assert_same_columns(there, here)
    assert there.columns_.summary == here.columns_.summary
    levels = {column.name: column.levels for column in there.columns_.columns}
    assert "c" in levels["word"]
    assert "z" not in levels["category"]


@pytest.mark.parametrize("how", FRAMES)
def test_points_are_those_of_the_whole_table(how):
    here, there = both(how, "kernel")
    # A blank number is S_mo (S_oo + r I)^-1 z_o, and the trace of a covariance in units of the scales is about d.
    d = here.columns_.n_numbers
    how_close = {"terms": STEPS * d, "condition": (d + RIDGE) / RIDGE, "scale": np.abs(here.X_fit_).max(axis=0)}
    assert_close(there.X_fit_.compute(), here.X_fit_, **how_close)


@pytest.mark.parametrize("which", ["mixture", "kernel", "bank"])
@pytest.mark.parametrize("how", FRAMES)
def test_predictions(how, which):
    here, there = both(how, which)
    assert_same(here, there)
    assert there.predict(lazy_queries()).compute().tolist() == here.predict(QUERIES).tolist()
    left_out = there.loo_predict_proba().compute()
    np.testing.assert_allclose(left_out, here.loo_predict_proba(), rtol=0, atol=SOLVED)


def test_what_was_read_is_read_again_and_what_was_held_is_held():
    assert all(isinstance(chunk, Recipe) for _, chunk, *_ in both("read")[1]._shards.references)
    in_memory = dd.from_pandas(part(1, 3000), npartitions=2)  # too large to be carried by tasks
    clf = DaskLGCPClassifier(**KERNEL).fit(in_memory, in_memory["answer"])
    assert not any(isinstance(chunk, Recipe) for _, chunk, *_ in clf._shards.references)


def test_reasons_sets_and_the_worth_of_columns():
    here, there = both()
    (found,), expected = dask.compute(there.contributions(lazy_queries(), top=3)), here.contributions(QUERIES, top=3)
    np.testing.assert_allclose(found.shares, expected.shares, rtol=0, atol=SOLVED * np.abs(expected.shares).max())
    found, expected = (clf.feature_importance(60, random_state=1) for clf in (there, here))
    assert found["column"].tolist() == list(X.columns)
    for name in ("importance", "standard_error"):
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=SOLVED)
    found, expected = there.set_p_values(lazy_queries()).compute(), here.set_p_values(QUERIES)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("which", ["kernel", "mixture"])
def test_rows_that_come_and_go(which):
    here, there = fresh(which)
    more, of_more = part(5, 8), labels(5, 8).to_numpy()
    here.partial_fit(more, of_more)
    there.partial_fit(dd.from_pandas(more, npartitions=2), da.from_array(of_more, chunks=4))
    assert_same(here, there)
    gone = [0, PART + 3, len(X) + 2]
    assert_same(here.forget(gone), there.forget(gone))
    assert_same(here.reselect(), there.reselect())


def test_a_chunk_with_a_word_among_its_numbers_is_named():
    wrong = X.assign(text=X["text"].where(X.index != 2 * PART + 10, "oops"))
    with pytest.raises(ValueError, match="chunk 2: Column 'text' of X holds text, 'oops' in row 10, where numbers"):
        DaskLGCPClassifier(**KERNEL).fit(dd.from_pandas(wrong, npartitions=PARTS), classes())
    queries = dd.from_pandas(QUERIES.assign(number="many"), npartitions=2)
    with pytest.raises(ValueError, match=r"chunk [01]: Column 'number' of X holds text, 'many' in row 0"):
        both(which="kernel")[1].predict(queries).compute()


def test_what_cannot_be_a_column_is_said():
    words = [f"a text of many words, number {k}" for k in range(len(X))]
    with pytest.raises(ValueError, match="Column 'novel' of X holds text, 120 different values in 120 rows"):
        DaskLGCPClassifier(**KERNEL).fit(dd.from_pandas(X.assign(novel=words), npartitions=PARTS), classes())
    named = dd.from_pandas(X.assign(code=[f"n{k}" for k in range(len(X))]), npartitions=PARTS)
    with pytest.warns(UserWarning, match="column 'code' of X has another word in nearly every row") as warned:
        clf = DaskLGCPClassifier(**KERNEL).fit(named, classes())
    assert warned[0].filename == __file__
    assert clf.columns_.columns[-1].kind == "id"
    with pytest.raises(ValueError, match="no column of X can be used: 'void' is empty"):
        DaskLGCPClassifier(**KERNEL).fit(FRAMES["read"]()[["void"]], classes())
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        DaskLGCPClassifier(**KERNEL).fit(dd.from_pandas(X[:0], npartitions=1), da.zeros(0))
    with pytest.raises(ValueError, match="categorical_features names 'absent', which is not a column"):
        DaskLGCPClassifier(**KERNEL, categorical_features=["absent"]).fit(FRAMES["read"](), classes())


def test_a_part_with_other_columns_than_it_promised():
    wrong = dd.from_map(lambda k: part(k).iloc[:, : 12 - k], range(PARTS), meta=part(0)[:0], enforce_metadata=False)
    with pytest.raises(
        ValueError, match=r"chunk [12] of X has the shape \(40, 1[01]\), where 12 columns were promised"
    ):
        DaskLGCPClassifier(**KERNEL).fit(wrong, classes())


def test_categories_that_dask_does_not_know():
    frame = FRAMES["read"]()
    frame = frame.assign(category=frame["category"].cat.as_unknown(), ordered=frame["ordered"].cat.as_unknown())
    assert_same_columns(DaskLGCPClassifier(**KERNEL).fit(frame, classes()), both()[0])

    def turned(k):
        order = ["high", "low", "middle"] if k == 1 else ["low", "middle", "high"]
        return part(k).assign(ordered=lambda rows: rows["ordered"].cat.reorder_categories(order))

    wrong = dd.from_map(turned, range(PARTS), meta=frame._meta, enforce_metadata=False)
    with pytest.raises(ValueError, match=r"'ordered' of X has the ordered levels .* so their order is not known"):
        DaskLGCPClassifier(**KERNEL).fit(wrong, classes())


def test_numbers_of_a_frame_may_be_blank_later():
    names = ["number", "follows"]
    numbers, queries = X[names].fillna(0.5), QUERIES[names]
    assert queries.isna().any().any()
    here = LGCPClassifier(**KERNEL).fit(numbers, Y)
    there = DaskLGCPClassifier(**KERNEL).fit(dd.from_pandas(numbers, npartitions=PARTS), classes())
    assert there.columns_ is None
    found, expected = there.predict_proba(dd.from_pandas(queries, npartitions=2)).compute(), here.predict_proba(queries)
    assert_close(found, expected, terms=len(X), condition=4 + 8 * np.square(numbers).sum(axis=1).max())
    array = DaskLGCPClassifier(**KERNEL).fit(da.from_array(numbers.to_numpy(), chunks=(PART, 2)), classes())
    with pytest.raises(ValueError, match="Input X contains NaN"):
        array.predict(queries.to_numpy())


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_columns_of_an_array_may_be_called_categories(dtype):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=len(Y)), rng.integers(4, size=len(Y))]).astype(dtype)
    rows[3, 0] = np.nan
    here = LGCPClassifier(**KERNEL, categorical_features=[1]).fit(rows, Y)
    there = DaskLGCPClassifier(**KERNEL, categorical_features=[1])
    there.fit(da.from_array(rows, chunks=(PART, 1)), classes())
    assert_same_columns(there, here)
    found, expected = there.predict_proba(rows), here.predict_proba(rows)
    assert found.dtype == expected.dtype == dtype
    assert_close(found, expected, terms=len(Y), condition=4 + 8 * np.nanmax(np.square(rows).sum(axis=1)))


def test_arrays_with_blanks_or_words_are_tables():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(len(Y), 2))
    rows[50, 1] = np.nan
    words = np.column_stack([rows.astype(object), rng.choice(["u", "v"], len(Y))])
    for table in (rows, words):
        here = LGCPClassifier(**KERNEL).fit(table, Y)
        there = DaskLGCPClassifier(**KERNEL).fit(da.from_array(table, chunks=(PART, table.shape[1])), classes())
        assert_same_columns(there, here)
        condition = 4 + 8 * np.nanmax(np.square(rows).sum(axis=1))
        assert_close(there.predict_proba(table), here.predict_proba(table), terms=len(Y), condition=condition)
    with pytest.raises(ValueError, match="Input X contains infinity: column 1 in row 50 of chunk 0"):
        DaskLGCPClassifier(**KERNEL).fit(da.from_array(np.where(np.isnan(rows), np.inf, rows)), Y)


NUMBERS = st.floats(-1e300, 1e300) | st.integers(-3, 3).map(float) | st.just(np.nan)


@given(st.lists(st.lists(NUMBERS, max_size=40), min_size=1, max_size=5))
def test_the_median_of_parts(parts):
    columns = [np.array(numbers, float) for numbers in parts]
    orders = [Orders.of(numbers) for numbers in columns]
    n, (low, high) = sum(each.n for each in orders), between(orders)
    counted = [(int((c <= low).sum()), *np.unique(c[(c > low) & (c <= high)], return_counts=True)) for c in columns]
    whole = np.concatenate(columns)
    assert n == np.count_nonzero(~np.isnan(whole))
    expected = np.median(whole[~np.isnan(whole)]) if n else np.nan
    np.testing.assert_array_equal(median(n, counted), expected)


def test_few_numbers_are_between_the_order_statistics():
    columns = np.random.default_rng(0).normal(size=(4, 10_000))
    low, high = between([Orders.of(numbers) for numbers in columns])
    # On each side of the median, each part leaves open how many of its numbers between two order statistics, about 100
    # numbers, are below a limit; and the limit may lie one order statistic farther away.
    assert np.count_nonzero((columns > low) & (columns <= high)) <= len(columns) * 2 * 2 * (100 + 1)

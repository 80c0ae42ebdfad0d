"""Units: which representation points are compared in, and what it does to them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler

from coxfield.graphs.units import LIMIT, AsGiven, NormalScores, Whitened, ZScores, units_for
from tolerances import assert_close

WINE = load_wine(return_X_y=True)[0]
KINDS = [ZScores, NormalScores, Whitened]


def test_pictures_stay_as_they_are_and_tables_do_not():
    assert units_for(load_digits(return_X_y=True)[0]) == (AsGiven(),)
    assert [type(one) for one in units_for(WINE)] == KINDS
    assert units_for(sparse.csr_array(WINE)) == (AsGiven(),)
    assert units_for(np.ones((5, 3))) == (AsGiven(),)
    assert units_for(WINE[:, :1]) == (AsGiven(),)


def test_a_scaler_in_front_changes_nothing():
    scaled = StandardScaler().fit_transform(WINE)
    assert [type(one) for one in units_for(scaled)] == KINDS
    for kind in KINDS:
        before, after = (kind.of(X, 13).place(X) for X in (WINE, scaled))
        np.testing.assert_allclose(after @ after.T, before @ before.T, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None)
@given(factors=st.lists(st.integers(-40, 40), min_size=13, max_size=13), offset=st.integers(-8, 8))
def test_factors_of_columns_change_nothing(kind, factors, offset):
    moved = (WINE + offset) * 2.0 ** np.array(factors)
    before, after = (kind.of(X, 13).place(X) for X in (WINE, moved))
    # Of a column that is far from 0, an offset takes digits; axes of equal variance may turn.
    np.testing.assert_allclose(after @ after.T, before @ before.T, atol=1e-6)


def test_an_outlier_changes_next_to_nothing():
    X = WINE.copy()
    X[17, 4] = 1e6
    for kind in KINDS:
        before, after = (np.delete(kind.of(one, 13).place(one), 17, axis=0) for one in (WINE, X))
        change = np.linalg.norm(after @ after.T - before @ before.T) / np.linalg.norm(before @ before.T)
        assert change < 0.05
    assert np.abs(ZScores.of(X, 13).place(X)).max() == LIMIT


def test_z_scores_of_a_plain_column():
    x = np.random.default_rng(0).normal(3.0, 2.0, size=(1000, 1))
    z = ZScores.of(x, 1)
    assert z.centre[0] == pytest.approx(3.0, abs=0.2)
    assert z.scale[0] == pytest.approx(2.0, rel=0.1)
    assert_close(z.place(x)[:5], (x[:5] - z.centre) / z.scale, terms=3, scale=5)


def test_normal_scores_are_those_of_middle_ranks():
    x = np.array([[3.0], [1.0], [1.0], [7.0], [2.0]])
    expected = stats.norm.ppf((stats.rankdata(x) - 0.5) / 5)
    assert_close(NormalScores.of(x, 1).place(x).ravel(), expected, terms=4, scale=2)
    new = NormalScores.of(x, 1).place(np.array([[-9.0], [99.0], [5.0]])).ravel()
    assert_close(new, [expected[1], expected[3], (expected[0] + expected[3]) / 2], terms=4, scale=2)


def test_whitened_scores_have_variances_below_one():
    white = Whitened.of(WINE, 13).place(WINE)
    z = ZScores.of(WINE, 13).place(WINE)
    values = np.linalg.eigvalsh(np.cov(z.T, bias=True))
    assert_close(np.sort(np.linalg.eigvalsh(np.cov(white.T, bias=True))), np.sort(values / (values + 1)), terms=1000)


@pytest.mark.parametrize("kind", [ZScores, NormalScores])
def test_categories_stay_as_they_are(kind):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(50, 2)) * [1.0, 1e4], np.eye(3)[rng.integers(3, size=50)]])
    assert len(units_for(X, 3)) == 3
    assert len(units_for(X[:, 2:], 3)) == 1  # categories alone have common units
    np.testing.assert_array_equal(kind.of(X, 2).place(X)[:, 2:], X[:, 2:])


@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_do_not_vary_say_nothing(kind):
    X = np.column_stack([WINE, np.full(178, 5.0), np.zeros(178)])
    with_them, without = (kind.of(one, one.shape[1]).place(one) for one in (X, WINE))
    np.testing.assert_allclose(with_them @ with_them.T, without @ without.T, atol=1e-9)


def test_a_value_that_few_rows_have_is_kept():
    X = np.zeros((500, 1))
    X[7] = 1
    assert np.ptp(ZScores.of(X, 1).place(X)) > 1


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_extreme_numbers(size):
    with np.errstate(all="raise", under="ignore"):
        for kind in KINDS:
            found = kind.of(WINE * size, 13).place(WINE * size)
            np.testing.assert_allclose(found @ found.T, (w := kind.of(WINE, 13).place(WINE)) @ w.T, atol=1e-6)

"""Labels and points: what is known, what is blank, and what is refused with which words."""

import re
from copy import copy
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.estimators.validation import (
    WIDEST,
    check_labelled_points,
    check_option,
    check_points,
    check_weights,
    class_numbers,
    complete_labels,
    known_class_numbers,
    like,
    separate_labels,
    shown_kernel,
)
from coxfield.kernels.protocol import PerClass

X = np.zeros((4, 2))
KNOWN = [True, False, True, False]
BLANKS = {
    "numbers": ([0, -1, 1, -1], -1, [0, 1]),
    "another number": ([-1, 7, 1, 7], 7, [-1, 1]),
    "numbers and NaN": ([0, np.nan, 1, np.nan], np.nan, [0, 1]),
    "NaN for None": ([0, None, 1, None], np.nan, [0, 1]),
    "None for NaN": (np.array([0, np.nan, 1, np.nan], np.float32), None, [0, 1]),
    "a narrow NaN": ([0.0, np.nan, 1.0, np.nan], np.float32("nan"), [0, 1]),
    "words and None": (["a", None, "b", None], None, ["a", "b"]),
    "words and nothing": (["a", "", "b", ""], "", ["a", "b"]),
    "words beside a number": (["a", -1, "b", -1], -1, ["a", "b"]),
    "words beside a number, as a tuple": (("a", -1, "b", -1), -1, ["a", "b"]),
    "words beside NaN": (["a", np.nan, "b", np.nan], None, ["a", "b"]),
    "objects": (np.array(["a", -1, "b", -1], dtype=object), -1, ["a", "b"]),
    "truth and None": (np.array([True, None, False, None], dtype=object), None, [True, False]),
    "pandas": (pd.Series(["a", None, "b", None]), None, ["a", "b"]),
    "pandas strings": (pd.Series(["a", None, "b", None], dtype="string"), None, ["a", "b"]),
    "pandas categories": (pd.Series(["a", None, "b", None], dtype="category"), None, ["a", "b"]),
    "pandas integers": (pd.Series([0, None, 1, None], dtype="Int64"), None, [0, 1]),
    "NaT": (np.array([0, pd.NaT, 1, pd.NaT], dtype=object), None, [0, 1]),
    "words beside NaT": (["a", pd.NaT, "b", pd.NaT], None, ["a", "b"]),
    "NaT of NumPy": (["a", np.datetime64("NaT"), "b", np.timedelta64("NaT")], np.nan, ["a", "b"]),
    "None for NaT": ([0, None, 1, None], pd.NaT, [0, 1]),
    "decimal": ([0, Decimal("nan"), 1, Decimal("nan")], None, [0, 1]),
    "polars": (pl.Series(["a", None, "b", None]), None, ["a", "b"]),
}


@pytest.mark.parametrize(("y", "missing", "labels"), BLANKS.values(), ids=BLANKS)
def test_known_labels_are_told_from_blanks_of_many_kinds(y, missing, labels):
    found, known = separate_labels(y, missing, X)
    assert known.tolist() == KNOWN
    assert found[known].tolist() == labels
    classes, codes = known_class_numbers(y, missing, X, LGCPClassifier())
    assert classes.tolist() == sorted(labels)
    assert codes.tolist() == [sorted(labels).index(labels[0]), -1, sorted(labels).index(labels[1]), -1]


def test_truth_is_not_taken_for_the_number_one():
    _, known = separate_labels(np.array([True, False, True, False]), 1, X)
    assert known.all()
    _, known = separate_labels([1, 0, 1, 0], 1, X)
    assert known.tolist() == [False, True, False, True]


DAYS = np.array(["2020-01-01", "NaT", "2021-01-01", "NaT"], dtype="datetime64[ns]")


@pytest.mark.parametrize("y", [DAYS, pd.Series(DAYS), DAYS - DAYS[0]], ids=["NumPy", "pandas", "durations"])
def test_days_that_are_not_known_are_no_class(y):
    classes, codes = known_class_numbers(y, None, X, LGCPClassifier())
    assert len(classes) == 2
    assert codes.tolist() == [0, -1, 1, -1]


def test_a_day_may_stand_for_unknown():
    days = np.array(["2020-01-01", "1900-01-01", "2021-01-01", "1900-01-01"], dtype="datetime64[ns]")
    _, known = separate_labels(days, np.datetime64("1900-01-01"), X)
    assert known.tolist() == KNOWN


@pytest.mark.parametrize(
    ("y", "shown"),
    [
        ([0, 1, np.nan, -1], "NaN"),
        (np.array(["a", "b", None, "c"], dtype=object), "None"),
        (np.array(["a", "b", pd.NaT, "c"], dtype=object), "NaT"),
        (np.array([0, 1, pd.NA, 2], dtype=object), "<NA>"),
        (np.array([0, 1, "NaT", 2], dtype="timedelta64[D]"), "NaT"),
    ],
)
def test_a_blank_that_stands_for_nothing_is_refused(y, shown):
    with pytest.raises(ValueError, match=f"y holds {shown} in row 2, but missing_label is -1: give missing_label=None"):
        separate_labels(y, -1, X)


BLANK = {
    "None": (["a", "b", None, "a"], "None"),
    "NaN": ([0.0, 1.0, np.nan, 0.0], "NaN"),
    "NaN among objects": (np.array(["a", "b", np.nan, "a"], dtype=object), "NaN"),
    "NA": (pd.Series(["a", "b", None, "a"], dtype="string"), "<NA>"),
    "NaT": (np.array([0, 1, pd.NaT, 0], dtype=object), "NaT"),
    "no day": (np.array(["2020-01-01", "2021-01-01", "NaT", "2020-01-01"], dtype="datetime64[D]"), "NaT"),
    "no duration": (np.array([0, 1, "NaT", 0], dtype="timedelta64[s]"), "NaT"),
}


@pytest.mark.parametrize(("y", "shown"), BLANK.values(), ids=BLANK)
def test_a_row_without_a_label_is_refused_where_all_must_be_known(y, shown):
    words = rf"Input y contains {shown} in row 2, where a class is needed: remove the row, or let SLGCPClassifier\("
    with pytest.raises(ValueError, match=words):
        complete_labels(y, X, LGCPClassifier())


@pytest.mark.parametrize("missing", [[-1], np.array([-1, 0]), np.array(-1), {-1: None}, {-1}, (None,), pd.Series([-1])])
def test_the_mark_of_unknown_labels_must_be_one_value(missing):
    with pytest.raises(ValueError, match=r"missing_label must be one value, such as -1, .*: give the one that marks"):
        separate_labels([0, 1, -1, 0], missing, X)


NOT_LABELS = {
    "complex": (
        np.array([0, 1j, 0, 1j]),
        r"y holds labels of type complex, 0j in row 0: write labels as text, integers",
    ),
    "complex in a list": ([0, 1j, 0, 1], r"y holds labels of type complex, 1j in row 1: write labels as text"),
    "periods": (
        pd.Series(pd.PeriodIndex(["2020", "2021"] * 2, freq="Y")),
        "y holds labels of type Period, .* in row 0: ",
    ),
    "times with a zone": (pd.Series(pd.date_range("2020", periods=4, tz="UTC")), "y holds labels of type Timestamp, "),
    "fractions": ([Fraction(1, 2), Fraction(1, 3)] * 2, r"y holds labels of type Fraction, Fraction\(1, 2\) in row 0"),
    "ragged lists": ([[0], [1, 2], [0], [1]], r"y holds labels of type list, \[0\] in row 0: write labels as text"),
    "records": (np.zeros(4, dtype=[("a", int)]), r"y holds labels of type tuple, \(0,\) in row 0: write labels as"),
    "arrays": (np.array([np.zeros(2), 0, 1, 1], dtype=object), "y holds labels of type ndarray, .* in row 0: write"),
    "columns": (np.eye(4), r"y should be a 1d array, got an array of shape \(4, 4\)"),
    "pairs": ([(0, 1)] * 4, r"y should be a 1d array, got an array of shape \(4, 2\)"),
    "text and numbers": (
        ["a", 1, "b", 1],
        "y holds text and other labels, 'a' in row 0 and 1 in row 1: write all labels",
    ),
    "huge": (
        [10**30, 1, 1, 1],
        "y holds the integer 1000000000000000000000000000000 in row 0, .*: write such labels as text",
    ),
    "larger than 64 bits": ([1, 2**64, 1, 1], "y holds the integer 18446744073709551616 in row 1, .* 64-bit integers"),
    "of both signs": ([-2, 2**63, 1, 1], "y holds the integer 9223372036854775808 in row 1, .* 64-bit integers"),
    "a zero byte at the end": (["a", "a\0", "b", "b"], "y holds 'a.x00' in row 1, which ends in a zero byte: write it"),
    "a zero byte of bytes": ([b"a", b"a\0", b"b", b"b"], "y holds b'a.x00' in row 1, which ends in a zero byte: write"),
    "infinity": ([0.0, np.inf, 1.0, 0.0], "Input y contains infinity in row 1, which names no class: remove the row"),
    "a set": ({0, 1, 2, 3}, "y must be a list or an array with one label per row, got a set: give a list"),
    "a mapping": ({0: 1, 1: 0, 2: 1, 3: 0}, "y must be a list or an array with one label per row, got a dict"),
    "a string": ("abab", "y must be a list or an array with one label per row, got a str"),
    "an iterator": (iter([0, 1, 0, 1]), "y must be a list or an array with one label per row, got a list_iterator"),
    "a number": (3, r"y should be a 1d array, got an array of shape \(\)"),
    "nothing": (None, "requires y to be passed, but the target y is None: give y"),
}


@pytest.mark.parametrize("find", [complete_labels, lambda y, X, one: known_class_numbers(y, -1, X, one)])
@pytest.mark.parametrize(("y", "words"), NOT_LABELS.values(), ids=NOT_LABELS)
def test_what_names_no_class_is_refused(find, y, words):
    y = copy(y)  # an iterator is used up
    with pytest.raises(ValueError, match=words):
        find(y, X, LGCPClassifier())


def test_bytes_and_quantities_get_the_sentence_of_scikit_learn():
    with pytest.raises(TypeError, match="Convert the labels to a string or integer format"):
        class_numbers(complete_labels([b"a", b"b"] * 2, X, LGCPClassifier()), LGCPClassifier())
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        class_numbers(complete_labels([1e300, 1.0] * 2, X, LGCPClassifier()), LGCPClassifier())


@pytest.mark.parametrize(
    "y",
    [["b", "a"] * 2, np.array([True, False] * 2, dtype=object), [1, 0] * 2, (2.0, 1.0) * 2, np.uint64([2**63, 1] * 2)],
)
def test_labels_of_one_kind_stay_what_they_are(y):
    found = complete_labels(y, X, LGCPClassifier())
    assert found.tolist() == list(y)
    assert found.dtype.kind != "O"


def test_a_column_of_labels_is_taken_with_a_warning():
    with pytest.warns(UserWarning, match="column-vector y was passed"):
        found, _ = separate_labels(np.array([[0], [1], [0], [-1]]), -1, X)
    assert found.tolist() == [0, 1, 0, -1]


def test_labels_must_be_as_many_as_points_and_some_of_them_known():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        separate_labels([0, 1], -1, X)
    with pytest.raises(ValueError, match=r"no point is labelled: every entry of y is missing_label=''"):
        known_class_numbers([""] * 4, "", X, LGCPClassifier())


def test_classes_are_sorted_and_numbered():
    classes, codes = class_numbers(np.array(["b", "a", "b"]), LGCPClassifier())
    assert classes.tolist() == ["a", "b"]
    assert codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (["a", "a"], "LGCPClassifier needs labels of at least two classes, got only one class: 'a'"),
        ([0.5, 0.7], "Unknown label type"),
    ],
)
def test_labels_that_make_no_two_classes_are_refused(y, words):
    with pytest.raises(ValueError, match=words):
        class_numbers(np.array(y), LGCPClassifier())


@pytest.mark.parametrize("y", [[3, 2**64 - 1, 3], np.array([3, 2**64 - 1, 3], dtype=np.uint64)], ids=["list", "array"])
def test_unsigned_integers_are_classes_also_beside_unknown_ones(y):
    X = np.zeros((4, 1))
    assert complete_labels(y, X[:3], None).tolist() == [3, 2**64 - 1, 3]
    classes, codes = known_class_numbers([*np.asarray(y, dtype=object), None], None, X, None)
    assert (classes.tolist(), codes.tolist()) == ([3, 2**64 - 1], [0, 1, 0, -1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", [2, 2.0, [2, 2, 2, 2], np.full(4, 2.0, np.float32)])
def test_weights_are_numbers_of_the_precision_of_the_points(weights, dtype):
    found = check_weights(weights, X.astype(dtype))
    assert found.tolist() == [2.0] * 4
    assert found.dtype == dtype


def test_no_weights_are_none():
    assert check_weights(None, X) is None


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, 2.0, 3.0], "inconsistent numbers of samples"),
        ([1.0, -2.0, 3.0, 1.0], "sample_weight must not be negative, got -2: leave such rows out instead"),
        ([0.0] * 4, "sample_weight is zero everywhere: at least one point must count"),
        (0, "sample_weight is zero everywhere"),
        ([[1.0]] * 4, r"1D array or scalar, got an array of shape \(4, 1\)"),
        ([1.0, np.nan, 1.0, 1.0], "sample_weight contains NaN"),
        ([1.0, np.inf, 1.0, 1.0], "sample_weight contains infinity"),
    ],
)
def test_what_is_no_weight_is_refused(weights, words):
    with pytest.raises(ValueError, match=words):
        check_weights(weights, X)


@pytest.mark.parametrize("thin", [False, True])
def test_points_become_as_sparse_or_as_dense_as_those_of_training(thin):
    data = np.array([[0.0, 1.0], [2.0, 0.0]])
    training = sparse.csr_array(X) if thin else X
    for given in (data, sparse.csr_array(data)):
        found = like(given, training)
        assert sparse.issparse(found) == thin
        np.testing.assert_array_equal(found.toarray() if thin else found, data)
        assert (found is given) == (sparse.issparse(given) == thin)


def test_kernels_are_shown_as_they_were_given():
    kernels, classes = PerClass.of([RBF(1.0), Matern(2.0)]), np.array(["a", "b"])
    assert shown_kernel(kernels, {"a": RBF(), "b": Matern()}, classes) == {"a": RBF(1.0), "b": Matern(2.0)}
    assert shown_kernel(PerClass.shared_by(RBF(3.0), 2), RBF(1.0), classes) == RBF(3.0)
    assert shown_kernel(PerClass.shared_by(RBF(3.0), 2), None, classes) == RBF(3.0)


def test_options_are_one_of_those_allowed():
    check_option("method", None, ("fast", None))
    with pytest.raises(ValueError, match="method must be one of 'fast', None; got 'slow'"):
        check_option("method", "slow", ("fast", None))


def wide(columns):
    """Four rows of a sparse matrix; each has one entry."""
    return sparse.csr_array((np.ones(4), np.array([0, 1, 2, columns - 1]), np.arange(5)), shape=(4, columns))


@pytest.mark.parametrize(
    "estimator",
    [LGCPClassifier(), LGCPClassifier(RBF(), selection=None), SLGCPClassifier(), SLGCPClassifier(inference="map")],
    ids=str,
)
def test_sparse_matrices_of_too_many_columns_are_refused_before_memory_is_asked_for(estimator):
    words = (
        "X has 5000000000 columns, and a fit holds many vectors of one number per column, of 37 GiB each: hash the "
        f"features into at most {WIDEST} columns, or leave out the empty ones (np.unique(X.indices, "
    )
    with pytest.raises(ValueError, match=re.escape(words)):
        estimator.fit(wide(5 * 10**9), [0, 1, 0, -1] if isinstance(estimator, SLGCPClassifier) else [0, 1, 0, 1])


def test_the_remedy_for_too_many_columns_works():
    X = wide(5 * 10**9)
    columns, indices = np.unique(X.indices, return_inverse=True)
    fewer = sparse.csr_array((X.data, indices, X.indptr), shape=(4, len(columns)))
    np.testing.assert_array_equal(check_points(LGCPClassifier(), fewer, accept_sparse="csr").toarray(), np.eye(4))


def test_the_largest_number_of_columns_is_taken():
    assert check_points(LGCPClassifier(), wide(WIDEST), accept_sparse="csr").shape == (4, WIDEST)


def test_a_graph_has_as_many_columns_as_points():
    """Of a graph, columns are no features. It is refused for another reason here: it is not square."""
    with pytest.raises(ValueError, match="precomputed affinities must be a square matrix"):
        SLGCPClassifier("precomputed").fit(wide(WIDEST + 1), [0, 1, 0, -1])


def test_points_come_with_their_labels():
    found, y = check_labelled_points(LGCPClassifier(), [[0, 1]] * 3, ["a", "b", "a"], dtype=np.float64)
    assert found.dtype == np.float64
    assert y.tolist() == ["a", "b", "a"]
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        check_labelled_points(LGCPClassifier(), [[0, 1]] * 3, ["a", "b"])


def test_new_points_are_compared_with_those_of_the_fit():
    estimator = LGCPClassifier()
    check_points(estimator, np.zeros((3, 2)))
    with pytest.raises(ValueError, match="X has 5 features, but LGCPClassifier is expecting 2 features as input"):
        check_points(estimator, np.zeros((3, 5)), reset=False)

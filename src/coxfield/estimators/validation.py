"""Checks of user input. Each error is one sentence that names the value and the remedy."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Collection, Iterator, Mapping, Set
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from coxfield.estimators.tables import TableColumns, as_rows, has_blanks, is_table
from coxfield.kernels.namespace import Library, as_numpy, is_dispatched
from coxfield.kernels.namespace import precision as precision_of
from coxfield.utils.numbers import power_of_two

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.protocol import PerClass


# Data frames of pandas and polars: which column cannot be used as a feature, and what to do about it.
#
# scikit-learn says what it found. These functions say where: its messages name types, and users know columns. Rows are
# counted from 0. Neither package is imported here. If it is not loaded, no argument is a data frame of it.


def refuse_columns(X) -> None:
    """Refuse a data frame without columns, with two columns of one name, or with a column of dates or times.

    These are refused before scikit-learn sees them, because it turns dates into numbers in some frames.
    """
    refuse_frame(X)
    if not _is_frame(X):
        return
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        if dtype.is_temporal() if hasattr(dtype, "is_temporal") else dtype.kind in "mM":
            raise ValueError(_not_numbers(X, name, f"is of type {dtype}"))


def refuse_frame(X) -> None:
    """Refuse a table without rows or columns, or with two columns of one name."""
    if isinstance(X, _type("polars", "LazyFrame")):
        raise ValueError("X is a LazyFrame, which holds no rows yet: give X.collect()")
    if not is_table(X):
        return
    names = list(getattr(X, "column_names", X.columns))  # those of pyarrow have the columns themselves in `columns`
    if not names:
        raise ValueError(f"X has no columns, its shape is {X.shape}: give at least one feature")
    if len(set(names)) < len(names):
        repeated = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"X has more than one column {repeated!r}: rename or remove one")


def trouble(X) -> str | None:
    """A sentence on the first column of a data frame that is not finite numbers; None if there is none, or no frame."""
    if not _is_frame(X):
        return None
    return next(filter(None, (_trouble(X, name, column) for name, column in _columns(X))), None)


def _type(package: str, name: str) -> Any:
    return getattr(sys.modules.get(package), name, ())


def _is_polars(X) -> bool:
    return isinstance(X, _type("polars", "DataFrame"))


def _is_frame(X) -> bool:
    return _is_polars(X) or isinstance(X, _type("pandas", "DataFrame"))


def _columns(X) -> Iterator[tuple[Any, Any]]:
    return ((column.name, column) for column in X.iter_columns()) if _is_polars(X) else X.items()


def _trouble(X, name, column) -> str | None:
    if getattr(column.dtype, "kind", "") == "c":
        return (
            f"Complex data not supported: column {name!r} of X holds complex numbers: give their real and imaginary "
            "parts as two columns"
        )
    try:
        numbers = np.asarray(column.to_list(), float) if _is_polars(X) else column.to_numpy(float, na_value=np.nan)
    except (TypeError, ValueError, OverflowError):
        return _not_numbers(X, name, _first_word(column))
    if numbers.ndim > 1:
        return _not_numbers(X, name, f"is of type {column.dtype}")
    if np.isfinite(numbers).all():
        return None
    row = int(np.flatnonzero(~np.isfinite(numbers))[0])
    what, found = ("NaN", "is blank") if np.isnan(numbers[row]) else ("infinity", f"holds {numbers[row]:g}")
    return (
        f"Input X contains {what}: column {name!r} {found} in row {row}, where a finite number is needed: fill in a "
        "number, or remove the row"
    )


def _first_word(column) -> str:
    """What a column holds that is no number, and in which row."""
    blanks = (None, _type("pandas", "NA"))
    for row, value in enumerate(column.to_list()):
        try:
            float("nan" if any(value is blank for blank in blanks) else value)
        except (TypeError, ValueError, OverflowError):
            kind = "text" if isinstance(value, str) else f"a value of type {type(value).__name__}"
            return f"holds {kind}, {reprlib.repr(value)} in row {row}"
    return f"is of type {column.dtype}"


def _not_numbers(X, name, found: str) -> str:
    without = f"X.drop({name!r})" if _is_polars(X) else f"X.drop(columns={[name]!r})"
    return f"Column {name!r} of X {found}, where numbers are needed: encode it as numbers, or leave it out, {without}"


# Labels that users give: which of them are known, and the class number of each.
#
# Each error is one sentence that names the label, its row, counted from 0, and the remedy.


INTEGERS = range(-(2**63), 2**63)  # that NumPy holds beside each other
UNSIGNED = range(2**64)  # likewise
KINDS = "biufSUmM"  # of arrays whose values can name classes
NAMES = (str, bytes, Real, np.bool_, np.datetime64, np.timedelta64)  # types of values that can


def complete_labels(y, X, estimator) -> NDArray:
    """Labels of all rows of X. A row without a label is refused."""
    _require(y, estimator)
    y = _column(y)
    check_consistent_length(X, y)
    blank = _blanks(y)
    if blank.any():
        row = int(blank.argmax())
        raise ValueError(
            f"Input y contains {_shown(y[row])} in row {row}, where a class is needed: remove the row, or let "
            "SLGCPClassifier(missing_label=None) label it"
        )
    return _usable(y, ~blank)


def separate_labels(y, missing_label, X) -> tuple[NDArray, NDArray]:
    """Labels as an array, and which of them are known.

    None, NaN and NaT mean the same, because data frames turn one into the other.
    """
    if isinstance(missing_label, Collection) and not isinstance(missing_label, str | bytes):
        raise ValueError(
            f"missing_label must be one value, such as -1, 'unknown' or None, got {_brief(missing_label)}: give "
            "the one that marks unknown labels in y"
        )
    y = _column(y)
    check_consistent_length(X, y)
    missing = _blanks(y)
    if not _is_blank(missing_label):
        if missing.any():
            row = int(missing.argmax())
            raise ValueError(
                f"y holds {_shown(y[row])} in row {row}, but missing_label is {missing_label!r}: give "
                "missing_label=None if that stands for unknown"
            )
        missing = _marked(y, missing_label)
    return _usable(y, ~missing), ~missing


def class_numbers(y, estimator) -> tuple[NDArray, NDArray]:
    """The classes, at least two, and the class number of each label."""
    with np.errstate(invalid="ignore"):  # numbers that are too large for integers are refused as quantities
        check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        name = type(estimator).__name__
        raise ValueError(f"{name} needs labels of at least two classes, got only one class: {classes.tolist()[0]!r}")
    return classes, codes


def announced_classes(classes, known: NDArray) -> NDArray:
    """Classes that a user announces, in the type of the known ones; none if `classes` is None."""
    if classes is None:
        return known[:0]
    listed = _column(classes)
    if _blanks(listed).any():
        raise ValueError("classes holds a blank value, which names no class: remove it")
    found = np.unique(_usable(listed, np.ones(len(listed), bool)))
    if (found.dtype.kind in "US") != (known.dtype.kind in "US"):
        raise ValueError(
            f"classes holds {_shown(found[0])!r}, but the known classes are such as {known.tolist()[0]!r}: write all "
            "as text, or none"
        )
    return found


def numbers_among(y: NDArray, classes: NDArray) -> NDArray:
    """The class number of each label; a label that is no class is refused."""
    different, codes = np.unique(y, return_inverse=True)
    strange = (
        ~np.isin(different, classes)
        if (different.dtype.kind in "US") == (classes.dtype.kind in "US")
        else (np.ones(len(different), bool))
    )
    if strange.any():
        label = different[strange].tolist()[0]
        raise ValueError(
            f"y holds the class {label!r}, which is new: announce it by classes=[{label!r}], or correct the label; "
            f"known are {_brief(classes.tolist())}"
        )
    return np.searchsorted(classes, different)[codes]


def known_class_numbers(y, missing_label, X, estimator, announced=None) -> tuple[NDArray, NDArray]:
    """The classes and the class number of each row, -1 where the label is missing.

    There are at least two classes with a label, unless classes are announced: then any number of rows may have one.
    """
    _require(y, estimator)
    y, known = separate_labels(y, missing_label, X)
    if announced is not None:
        return _with_announced(y, known, missing_label, announced)
    if not known.any():
        raise ValueError(
            f"no point is labelled: every entry of y is missing_label={missing_label!r}; label at least one "
            "of each class, or give another missing_label"
        )
    classes, numbers = class_numbers(y[known], estimator)
    codes = np.full(len(known), -1)
    codes[known] = numbers
    return classes, codes


def _with_announced(y: NDArray, known: NDArray, missing_label, announced) -> tuple[NDArray, NDArray]:
    """The announced classes and those of the labels, and the class number of each row."""
    listed = _column(announced)
    marks = np.flatnonzero([_equal(label, missing_label) for label in _listed(listed)])
    if len(marks):
        raise ValueError(
            f"classes holds missing_label={missing_label!r}, which marks unknown labels: remove it, or give another "
            "missing_label"
        )
    labels = y[known]
    if len(labels):
        check_classification_targets(labels)
    else:
        labels = _usable(listed, np.ones(len(listed), bool))[:0]
    named = announced_classes(announced, labels) if len(listed) else labels[:0]
    classes = np.union1d(named, labels)
    codes = np.full(len(known), -1)
    codes[known] = np.searchsorted(classes, labels)
    return classes, codes


def _require(y, estimator) -> None:
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None: give y")


def _column(y) -> NDArray:
    """Labels as a vector. Those of a list stay what they are: NumPy would turn -1 among strings into "-1"."""
    if isinstance(y, str | bytes | Set | Mapping | Iterator):
        raise ValueError(f"y must be a list or an array with one label per row, got a {type(y).__name__}: give a list")
    y = as_numpy(y)
    if isinstance(y, list | tuple) or getattr(getattr(y, "dtype", None), "kind", None) == "c":
        y = np.asarray(y, dtype=object)
    return column_or_1d(y, warn=True)


def _listed(y: NDArray) -> list:
    """Labels one by one. Dates stay dates: some of them would become integers."""
    return list(y) if y.dtype.kind in "mM" else y.tolist()


def _blanks(y: NDArray) -> NDArray:
    if y.dtype.kind in "biuSU":  # all values of these types are labels
        return np.zeros(len(y), dtype=bool)
    return np.array([_is_blank(label) for label in _listed(y)], dtype=bool)


def _is_blank(label) -> bool:
    """Whether a label is None or pandas.NA, or differs from itself: NaN and NaT of all kinds do."""
    if label is None or label is getattr(sys.modules.get("pandas"), "NA", None):
        return True
    try:
        return bool(label != label)
    except (ArithmeticError, TypeError, ValueError):  # no single value
        return False


def _marked(y: NDArray, missing_label) -> NDArray:
    """Where labels are the mark of unknown ones."""
    if y.dtype.kind == "i" and type(missing_label) is int and abs(missing_label) <= np.iinfo(y.dtype).max:
        return y == missing_label
    return np.array([_equal(label, missing_label) for label in _listed(y)], dtype=bool)


def _equal(label, missing_label) -> bool:
    """Whether a label is the mark of unknown labels. True is not the number 1."""
    try:
        return not isinstance(label, bool) and bool(label == missing_label)
    except (TypeError, ValueError):
        return False


def _usable(y: NDArray, known: NDArray) -> NDArray:
    """Labels in an array that can be sorted. Where a label is not known, there may be any other one."""
    rows = np.flatnonzero(known)
    if not len(rows):
        return y
    if y.dtype.kind not in KINDS:
        labels = _of_one_type(y[rows].tolist(), rows)
        y = np.full(len(y), labels[0], dtype=labels.dtype)
        y[rows] = labels
    if y.dtype.kind == "f" and not np.isfinite(y[rows]).all():
        row = rows[~np.isfinite(y[rows])][0]
        raise ValueError(
            f"Input y contains infinity in row {row}, which names no class: remove the row, or write its class as an "
            "integer or text"
        )
    return y


def _of_one_type(labels: list, rows: NDArray) -> NDArray:
    """Labels of Python as an array. They must be all text or all something else that can be sorted."""
    unsigned = all(type(label) is int and label in UNSIGNED for label in labels) and max(labels) not in INTEGERS
    for label, row in zip(labels, rows, strict=True):
        if not isinstance(label, NAMES):
            raise ValueError(_no_name(label, row))
        if isinstance(label, str | bytes) and label and label[-1] in ("\0", 0):  # arrays lose it
            raise ValueError(f"y holds {_brief(label)} in row {row}, which ends in a zero byte: write it without")
        if isinstance(label, int) and label not in INTEGERS and not unsigned:
            raise ValueError(
                f"y holds the integer {_brief(label)} in row {row}, which is beyond 64-bit integers: write such "
                "labels as text"
            )
    words = [isinstance(label, str) for label in labels]
    if len(set(words)) > 1:
        word, other = words.index(True), words.index(False)
        raise ValueError(
            f"y holds text and other labels, {labels[word]!r} in row {rows[word]} and {labels[other]!r} in row "
            f"{rows[other]}: write all labels as text, or none"
        )
    found = np.array(labels, dtype=np.uint64 if unsigned else None)
    if found.dtype.kind not in KINDS:
        raise ValueError(_no_name(labels[0], rows[0]))
    return found


def _no_name(label, row: int) -> str:
    return (
        f"y holds labels of type {type(label).__name__}, {_brief(label)} in row {row}: write labels as text, "
        "integers or booleans"
    )


def _brief(value) -> str:
    """A value of any kind in one short line."""
    return " ".join(reprlib.repr(value).split())


def _shown(label) -> str:
    return "NaN" if str(label) == "nan" else str(label)


EXTREME_WEIGHT = 2.0**64  # beyond it, or below its reciprocal, nobody counts points
WIDEST = 2**25  # columns of a sparse matrix; a fit takes some hundred bytes for each, whether it is empty or not


def check_weights(sample_weight, X, precision=None) -> NDArray | None:
    """Weights as an array, in the precision of X by default, or None if every point counts once.

    Of extreme weights only the proportions count: their sums would overflow or vanish.
    """
    if sample_weight is None:
        return None
    sample_weight = as_numpy(sample_weight)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(X.shape[0], float(sample_weight))
    if isinstance(sample_weight, list | tuple):  # some versions of scikit-learn take no lists where they dispatch
        sample_weight = np.asarray(sample_weight)
    weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got an array of shape {weights.shape}")
    check_consistent_length(X, weights)
    if (weights < 0).any():
        raise ValueError(f"sample_weight must not be negative, got {weights.min():g}: leave such rows out instead")
    if not (weights > 0).any():
        raise ValueError("sample_weight is zero everywhere: at least one point must count")
    return _in_proportion(weights).astype(precision_of(X) if precision is None else precision)


def check_added_weights(sample_weight, X) -> NDArray | None:
    """Weights of rows that join others. Extreme ones are refused: their proportions to the others would be lost."""
    weights = None if sample_weight is None or not X.shape[0] else check_weights(sample_weight, X)
    if weights is not None:
        largest = float(np.max(sample_weight))
        if not 1 / EXTREME_WEIGHT <= largest <= EXTREME_WEIGHT:
            raise ValueError(
                f"sample_weight up to {largest:.3g} cannot be compared with the weights of the rows that are there: "
                f"give weights between {1 / EXTREME_WEIGHT:.2g} and {EXTREME_WEIGHT:.2g}"
            )
    return weights


def _in_proportion(weights: NDArray) -> NDArray:
    """Weights divided by a power of two if the largest is extreme; a weight above 0 stays above 0."""
    if not 1 / EXTREME_WEIGHT <= weights.max() <= EXTREME_WEIGHT:
        for _ in range(2):  # no power of two is small enough for subnormal weights
            weights = weights / power_of_two(float(weights.max()))
    return np.where(weights > 0, np.maximum(weights, np.finfo(np.float32).tiny), 0)


def check_points(estimator, X, *, reset: bool = True, **options):
    """Points as scikit-learn's `validate_data` returns them, with its `options`; `reset` is for fit.

    Of a data frame, the sentence names the column that is wrong.
    """
    if reset:
        _check_width(estimator, X)
    _check_dispatch(estimator, X)
    tags = get_tags(estimator).input_tags
    if tags.categorical and not tags.pairwise:
        X = as_rows(X)
        columns = _columns_of(estimator, X, reset)
        if columns is not None:
            return _table_points(estimator, columns, X, reset, options)
    refuse_columns(X)
    try:
        with np.errstate(invalid="ignore", over="ignore"):  # scikit-learn adds all numbers up to see if one is infinite
            return validate_data(estimator, X, reset=reset, **options)
    except (TypeError, ValueError, OverflowError):
        sentence = trouble(X)
        if sentence is None:
            raise
    raise ValueError(sentence)


def _columns_of(estimator, X, reset: bool) -> TableColumns | None:
    """How the columns of a table become points; None if there is nothing to do. At the fit, the estimator keeps it."""
    if reset:
        estimator.__dict__.pop("columns_", None)
        refuse_frame(X)
        columns = TableColumns.of(X, estimator.categorical_features)
        if columns is not None:
            estimator.columns_ = columns
        return columns
    columns = estimator.columns_
    if columns is not None or not has_blanks(X):
        return columns
    points = getattr(estimator, "X_fit_", None)  # it may have to be put together from many blocks
    if not isinstance(points, np.ndarray):
        return columns
    validate_data(estimator, X, reset=False, skip_check_array=True)
    names = getattr(estimator, "feature_names_in_", range(points.shape[1]))
    return TableColumns.of_numbers(points, list(names))  # blanks that come after a fit without any


def _table_points(estimator, columns: TableColumns, X, reset: bool, options: dict):
    """Points of a table, in the precision that `options` ask for."""
    validate_data(estimator, X, reset=reset, skip_check_array=True)  # names and number of columns
    if not (is_table(X) or isinstance(X, np.ndarray)):  # a list of rows without text or blanks
        X = check_array(X, dtype=None, ensure_all_finite=False, input_name="X")
    X = columns.points(X)
    check_array(X, input_name="X")
    allowed = np.atleast_1d(np.asarray(options.get("dtype", X.dtype), dtype=object))
    return X if X.dtype in list(allowed) else X.astype(allowed[0])


def _check_dispatch(estimator, X) -> None:
    """Refuse arrays of other libraries for estimators that can use only those of NumPy."""
    if is_dispatched(X) and not get_tags(estimator).array_api_support:
        raise TypeError(
            f"{type(estimator).__name__} needs NumPy arrays, but X holds {Library.of(X)}: convert X to NumPy, or leave "
            "scikit-learn's array_api_dispatch off"
        )


def _check_width(estimator, X) -> None:
    """Refuse a sparse matrix with so many columns that numbers per column do not fit into memory."""
    if sparse.issparse(X) and X.shape[1] > WIDEST and not get_tags(estimator).input_tags.pairwise:
        raise ValueError(
            f"X has {X.shape[1]} columns, and a fit holds many vectors of one number per column, of "
            f"{8 * X.shape[1] / 2**30:.2g} GiB each: hash the features into at most {WIDEST} columns, or leave out the "
            "empty ones (np.unique(X.indices, return_inverse=True) numbers the others)"
        )


def check_labelled_points(estimator, X, y, **options) -> tuple[Any, NDArray]:
    """Points as from `check_points`, and one known label for each."""
    X = check_points(estimator, X, **options)
    return X, complete_labels(y, X, estimator)


def check_share(name: str, value) -> None:
    """Refuse what is not a share above 0 and at most 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) <= 1.0:
        raise ValueError(f"{name} must be a number above 0 and at most 1, got {value!r}")


def like(X, training):
    """X made sparse or dense like the training points, because distances need both in the same form."""
    if sparse.issparse(X) == sparse.issparse(training):
        return X
    return X.toarray() if sparse.issparse(X) else sparse.csr_array(X)


def shown_kernel(kernels: PerClass, given, classes: NDArray):
    """The kernels as users see them: one, or a mapping class -> kernel where they gave a mapping."""
    return dict(zip(classes.tolist(), kernels, strict=True)) if isinstance(given, Mapping) else kernels[0]


def check_option(name: str, value, allowed) -> None:
    """Refuse a value that is not allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}")

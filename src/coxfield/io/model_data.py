"""Fitted models as data: a tree that JSON can hold, with arrays beside it, and what is required of them.

Numbers, names and lists are themselves. Everything else is a mapping whose first key says what it is, such as
``{"array": "3.npy"}`` or ``{"type": "RBF", "parts": {"length_scale": 1.0}}``. Types are those of the lists below and no
others. To make a tree an object again is to call the constructors of these types, which compute nothing. What the
parts are worth is for `model_check` to say, before anything is computed with them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA, FastICA, TruncatedSVD
from sklearn.gaussian_process import kernels
from sklearn.kernel_approximation import AdditiveChi2Sampler, RBFSampler
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection

from coxfield.estimators.tables import Column, Joint, TableColumns
from coxfield.kernels.mixture import Ladder, Mixture
from coxfield.kernels.transforms import Beside, Compression, Member, NormalScores, Transformer, Units, Whitening

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Requirements on what a model file holds. A failed one is a clause of a sentence, such as 'X_fit_ is not an array'.


MOST_LETTERS = 80  # of a value that a clause quotes


class Unsound(ValueError):  # noqa: N818  # not an error that users see: `load` makes a sentence of it
    """A model file does not hold what `fit` makes. The message is a clause that says why."""


def require(condition: bool, clause: str) -> None:
    """Raise `Unsound` with a clause if a condition does not hold."""
    if not condition:
        raise Unsound(clause)


def quoted(value: Any) -> str:
    """A value in a clause: on one line, and short.

    Examples
    --------
    >>> quoted("a b")
    "'a b'"
    """
    return brief(repr(value), MOST_LETTERS)


def brief(text: str, most: int) -> str:
    """A text in letters that can be written everywhere, on one line, and not longer than `most`."""
    text = " ".join(text.split()).encode("ascii", "backslashreplace").decode()
    return text if len(text) <= most else f"{text[:most]}..."


def is_number(value: Any) -> bool:
    """Whether a value is one finite number.

    Examples
    --------
    >>> is_number(1.5), is_number(2), is_number(float("nan")), is_number(True), is_number("1")
    (True, True, False, False, False)
    """
    return type(value) in (int, float) and math.isfinite(value)


def is_integer(value: Any) -> bool:
    """Whether a value is one integer."""
    return type(value) is int


def is_text(value: Any) -> bool:
    """Whether a value is a string that can be written to a file."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def require_array(value: Any, what: str, shape: tuple[int | None, ...], *, kinds: str = "f") -> NDArray:
    """Require an array of finite numbers of some `kinds`, as in ``dtype.kind``; None is any length."""
    require(type(value) is np.ndarray, f"{what} is not an array")
    require(value.dtype.kind in kinds and value.dtype.isnative, f"{what} is an array of type {quoted(value.dtype.str)}")
    fits = len(shape) == value.ndim and all(
        wanted in (None, length) for wanted, length in zip(shape, value.shape, strict=True)
    )
    shown = ", ".join("any" if length is None else str(length) for length in shape)
    require(fits, f"{what} has the shape {value.shape}, not ({shown})")
    require(bool(np.isfinite(value).all()), f"{what} holds numbers that are not finite")
    return value


def require_arrays(parts: dict[str, Any], wanted: dict[str, str], sizes: dict[str, int], of: str) -> dict[str, int]:
    """Require the arrays of a table, and return all lengths.

    Parameters
    ----------
    parts : dict
        Values by name.
    wanted : dict
        For each name the shape, in letters, and words: "positive", "nonnegative", "ascending", "mask" for booleans,
        "codes c" for integers from 0 to below the length c, "optional" for what may be None. So "fa nonnegative" is a
        matrix without negative numbers. Arrays with a common letter have that length in common.
    sizes : dict
        Lengths that are known already, by letter.
    of : str
        What a clause calls the owner, such as "of the mixture".
    """
    sizes = dict(sizes)
    for name, (shape, *words) in ((name, text.split()) for name, text in wanted.items()):
        value, what = parts.get(name), f"{name}{of}"
        if value is None and "optional" in words:
            continue
        kinds = "b" if "mask" in words else "iu" if "codes" in words else "f"
        array = require_array(value, what, tuple(map(sizes.get, shape)), kinds=kinds)
        sizes.update(zip(shape, array.shape, strict=True))
        if "positive" in words:
            require(bool((array > 0).all()), f"{what} holds numbers that are not positive")
        if "nonnegative" in words:
            require(bool((array >= 0).all()), f"{what} holds negative numbers")
        if "ascending" in words:
            require(bool((np.diff(array) > 0).all()), f"{what} is not ascending")
        if "codes" in words:
            count = sizes[words[words.index("codes") + 1]]
            inside = not array.size or (int(array.min()) >= 0 and int(array.max()) < count)
            require(inside, f"{what} holds numbers outside of 0 to {count - 1}")
    return sizes


RECORDS = (Column, Joint, Ladder, Member, Mixture, TableColumns, Transformer)
KERNELS = tuple(
    kind
    for _, kind in inspect.getmembers(kernels, inspect.isclass)
    if issubclass(kind, kernels.Kernel) and kind.__module__ == kernels.__name__ and not inspect.isabstract(kind)
)
#: Fitted arrays of each representation: n points, d features before and w coordinates after. `require_arrays` says
#: what the words mean.
FITTED: dict[type, dict[str, str]] = {
    Compression: {"centre_": "d", "scale_": "d positive"},
    NormalScores: {"values_": "kd", "scores_": "kd", "slopes_": "d positive"},
    Units: {"units_": "d positive"},
    Whitening: {
        "matrix_": "dw",
        "origin_": "d",
        "class_means_": "cw",
        "removal_": "n nonnegative",
        "moved_points_": "mw",
        "moved_": "m codes n ascending",
    },
    StandardScaler: {"mean_": "d optional", "scale_": "d positive optional"},
    MinMaxScaler: {"min_": "d", "scale_": "d positive"},
    MaxAbsScaler: {"scale_": "d positive"},
    RobustScaler: {"center_": "d optional", "scale_": "d positive optional"},
    PowerTransformer: {"lambdas_": "d"},
    QuantileTransformer: {"quantiles_": "qd", "references_": "q"},
    PCA: {"components_": "wd", "mean_": "d", "explained_variance_": "w nonnegative"},
    FastICA: {"components_": "wd", "mean_": "d optional"},
    TruncatedSVD: {"components_": "wd"},
    GaussianRandomProjection: {"components_": "wd"},
    RBFSampler: {"random_weights_": "dw", "random_offset_": "w"},
}
#: What a model file may hold as a representation; those after the table learn nothing that is an array.
TRANSFORMERS = (
    *FITTED,
    *(AdditiveChi2Sampler, Beside, FunctionTransformer, Normalizer, Pipeline, PolynomialFeatures),
)
NAMES = ", ".join(sorted(kind.__name__ for kind in TRANSFORMERS if kind.__module__.startswith("sklearn.")))
TYPES: dict[str, type] = {kind.__name__: kind for kind in (*RECORDS, *KERNELS, *TRANSFORMERS)}
SPARSE = {kind.__name__: kind for kind in (sparse.csr_array, sparse.csr_matrix)}
#: Functions of one number that `FunctionTransformer` may have.
FUNCTIONS = {name: each for name, each in vars(np).items() if isinstance(each, np.ufunc) and each.nin == each.nout == 1}
LARGEST_INTEGER = 2**63  # NumPy computes with smaller ones
LAST_LETTER = 0x10FFFF  # the largest number of a letter in Unicode


def parts_of(thing: Any) -> dict[str, Any]:
    """What the constructor of a thing takes; of a transformer, also what `fit` has left.

    A ladder has its kernel. The covariance is recognised again when it is read.
    """
    if isinstance(thing, kernels.Kernel):
        return thing.get_params(deep=False)
    if type(thing) not in RECORDS:
        return vars(thing)
    parts = {field.name: getattr(thing, field.name) for field in fields(thing)}
    return {**parts, "covariance": thing.covariance.kernel} if isinstance(thing, Ladder) else parts


class Writer:
    """Makes data of values. Arrays are numbered in the order in which they are met; the same one is written once."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray] = {}
        self._known: dict[int, str] = {}

    def __call__(self, value: Any) -> Any:
        """The data of a value."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, str):
            return str(value)
        if value is None or isinstance(value, bool | int | float):
            return value
        if type(value) is list:
            return list(map(self, value))
        if type(value) is tuple:
            return {"tuple": list(map(self, value))}
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if hasattr(value, "__array__") and not sparse.issparse(value):  # names of columns from a data frame
            return self._array(np.asarray(value))
        return self._thing(value)

    def parts(self, parts: dict[str, Any]) -> dict[str, Any]:
        """The data of all parts, in an order that does not depend on how they were made."""
        return {name: self(parts[name]) for name in sorted(parts)}

    def _mapping(self, mapping: Mapping) -> Any:
        """Keys and values. Classes that are given the same kernel share what is learned, so it is written once."""
        first: dict[int, int] = {}
        pairs = []
        for number, (key, value) in enumerate(mapping.items()):
            known = first.setdefault(id(value), number) if isinstance(value, kernels.Kernel) else number
            pairs.append([self(key), self(value) if known == number else {"same": known}])
        return {"mapping": pairs}

    def _array(self, array: NDArray) -> Any:
        if array.dtype == object:
            return {"texts": self(array.tolist())}
        if id(array) not in self._known:
            self._known[id(array)] = name = f"{len(self.arrays)}.npy"
            self.arrays[name] = array
        return {"array": self._known[id(array)]}

    def _thing(self, value: Any) -> Any:
        kind = type(value)
        if TYPES.get(kind.__name__) is kind:
            return {"type": kind.__name__, "parts": self.parts(parts_of(value))}
        if SPARSE.get(kind.__name__) is kind:
            parts = {name: self(getattr(value, name)) for name in ("data", "indices", "indptr")}
            return {"sparse": kind.__name__, **parts, "shape": list(map(int, value.shape))}
        if any(value is function for function in FUNCTIONS.values()):
            return {"function": value.__name__}
        if kind is np.random.RandomState:
            return {"random": list(map(self, value.get_state()))}
        stranger = value if inspect.isroutine(value) or inspect.isclass(value) else kind
        raise stranger_error(f"{stranger.__module__}.{stranger.__qualname__}")


def stranger_error(name: str) -> Unsound:
    """What is said of a type that is not on the list."""
    return Unsound(
        f"it contains {name}, which a model file does not hold for safety (use kernels of "
        f"sklearn.gaussian_process.kernels, and of the transformers {NAMES})"
    )


class Reader:
    """Makes values of data. `load` gives the array of a name; the same one is loaded once."""

    def __init__(self, load: Callable[[str], NDArray]) -> None:
        self._load = load
        self._known: dict[str, NDArray] = {}

    def __call__(self, data: Any) -> Any:
        """The value of some data."""
        match data:
            case None | bool() | float():
                return data
            case int():
                require(abs(data) < LARGEST_INTEGER, f"it holds the integer {quoted(data)}, which is too large")
                return data
            case str():
                require(is_text(data), f"it holds {quoted(data)}, which is not text")
                return data
            case list():
                return list(map(self, data))
            case {"tuple": list(items)}:
                return tuple(map(self, items))
            case {"mapping": list(pairs)}:
                return self._mapping(pairs)
            case {"array": str(name)}:
                return self._array(name)
            case {"texts": list(texts)} if all(map(is_text, texts)):
                return np.array([*texts, None], dtype=object)[:-1]
            case {"function": str(name)} if name in FUNCTIONS:
                return FUNCTIONS[name]
            case {"random": [_, _, _, _, _] as state}:
                return self._random(state)
            case {"sparse": str(name)} if name in SPARSE:
                return self._sparse(SPARSE[name], data)
            case {"type": str(name), "parts": dict(parts)}:
                return self._thing(name, {key: self(part) for key, part in parts.items()})
        raise Unsound(f"it holds {quoted(data)}, which is not a part of a model")

    def _mapping(self, pairs: list) -> dict:
        good = all(isinstance(pair, list) and len(pair) == 2 and not isinstance(pair[0], list | dict) for pair in pairs)
        require(good, "a mapping in it does not have keys")
        values: list = []
        for _, value in pairs:
            match value:
                case {"same": int(number)} if number < len(values) and isinstance(values[number], kernels.Kernel):
                    values.append(values[number])
                case _:
                    values.append(self(value))
        return dict(zip((self(key) for key, _ in pairs), values, strict=True))

    def _array(self, name: str) -> Any:
        if name not in self._known:
            array = self._known[name] = self._load(name)
            if array.dtype.kind == "U":  # NumPy would make strings of other numbers that crash Python
                letters = np.ascontiguousarray(array).view(np.uint32)
                require(bool((letters <= LAST_LETTER).all()), "an array in it holds text that cannot be read")
                require(all(map(is_text, array.ravel().tolist())), "an array in it holds text that cannot be read")
        array = self._known[name]
        return array if array.ndim else array.item()

    def _random(self, state: list) -> Any:
        try:
            found = np.random.RandomState(0)
            found.set_state(tuple(map(self, state)))
        except (TypeError, ValueError, OverflowError) as error:
            raise Unsound("a random state in it is not one of NumPy") from error
        return found

    def _sparse(self, kind: Callable, data: dict) -> Any:
        """A sparse matrix that refers to rows and columns that it has: SciPy would read other memory."""
        try:
            parts = tuple(self(data[name]) for name in ("data", "indices", "indptr"))
            integers = all(part.dtype.kind == "i" and part.dtype.isnative for part in parts[1:])
            found = kind(parts, shape=tuple(map(int, self(data["shape"]))))
            found.check_format(full_check=True)
        except Exception as error:  # SciPy says it in many ways
            raise Unsound("a sparse matrix in it has parts that do not fit together") from error
        require(integers and found.data.dtype.isnative, "a sparse matrix in it has parts that do not fit together")
        return found

    def _thing(self, name: str, parts: dict[str, Any]) -> Any:
        if name not in TYPES:
            raise stranger_error(name if name.isidentifier() and name.isascii() else quoted(name))
        kind = TYPES[name]
        given = kind._get_param_names() if kind in TRANSFORMERS else list(parts)  # type: ignore[attr-defined]
        try:
            made = kind(**{key: part for key, part in parts.items() if key in given})
        except TypeError as error:
            raise Unsound(f"a {name} in it does not have the parts of one") from error
        left = {key: part for key, part in parts.items() if key not in given}
        hidden = [key for key in left if hasattr(kind, key)]
        require(not hidden, f"a {name} in it has a part {quoted(hidden)} that hides a method")
        vars(made).update(left)
        return made

"""One program for the arrays of NumPy, torch, CuPy and every library of the array API standard.

Points, distances and tiles of covariances stay in the library of the points, on their device. Whatever has one number
per point or per point and class comes home to NumPy: class sums, logarithms, labels and weights. So all that follows
from class sums is written once.

NumPy and libraries with the same argument can write results into memory that is there already. `into` uses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn import get_config

if TYPE_CHECKING:
    from numpy.typing import NDArray


def is_dispatched(value) -> bool:
    """Whether a value is an array of another library than NumPy, and scikit-learn is told to compute there."""
    return bool(get_config()["array_api_dispatch"]) and is_foreign(value)


def is_foreign(value) -> bool:
    """Whether a value is an array of another library than NumPy.

    Examples
    --------
    >>> is_foreign(np.zeros(2)), is_foreign(np.float64(2.0)), is_foreign([0.0, 1.0])
    (False, False, False)
    """
    return hasattr(value, "dtype") and hasattr(value, "device") and not isinstance(value, np.ndarray | np.generic)


def as_numpy(value) -> Any:
    """An array of any library as one of NumPy, if scikit-learn dispatches; other values are returned unchanged."""
    return to_numpy(value) if is_dispatched(value) else value


def to_numpy(array) -> NDArray:
    """An array of any library and any device as one of NumPy."""
    if not is_foreign(array):
        return np.asarray(array)
    if hasattr(array, "detach"):  # a tensor that remembers how it was computed
        array = array.detach()
    xp = _compat().array_namespace(array)
    cpu = xp.Device("CPU_DEVICE") if _name(xp) == "array_api_strict" else "cpu"
    return np.asarray(_compat().to_device(array, cpu))


def at_home(X) -> Any:
    """Points as NumPy or SciPy have them; those that are already there are returned unchanged."""
    return to_numpy(X) if is_foreign(X) else X


def detached(X) -> Any:
    """A tensor without its history, which would be kept for derivatives."""
    return X.detach() if hasattr(X, "detach") else X


def _compat() -> Any:
    try:
        import array_api_compat
    except ImportError:
        raise ImportError(
            "arrays of other libraries than NumPy need array-api-compat: pip install 'coxfield[arrays]'"
        ) from None
    return array_api_compat


def _name(xp) -> str:
    return xp.__name__.rpartition(".")[2]


def _refuse(array, why: str) -> None:
    raise TypeError(f"{why}, got {type(array).__module__}.{type(array).__qualname__}")


@dataclass(frozen=True)
class Library:
    """An array library and a device of it."""

    xp: Any
    """Its functions, with the names of the array API standard."""
    device: Any

    @classmethod
    def of(cls, array) -> Library:
        """The library of an array, and its device. Sparse, lazy and complex arrays of other libraries are refused."""
        if not is_foreign(array):
            return NUMPY
        compat = _compat()
        if "sparse" in str(getattr(array, "layout", "")) or not compat.is_array_api_obj(array):
            _refuse(array, "sparse arrays must be those of SciPy; give others as dense arrays")
        if compat.is_lazy_array(array) or not compat.is_writeable_array(array):
            _refuse(array, "arrays must be those of torch, CuPy or NumPy; convert others to one of them")
        xp = compat.array_namespace(array)
        if xp.isdtype(array.dtype, "complex floating"):
            raise ValueError(f"Complex data not supported, got {array.dtype}: give real and imaginary parts as columns")
        return cls(xp, compat.device(array))

    @property
    def name(self) -> str:
        return _name(self.xp)

    @property
    def foreign(self) -> bool:
        """Whether it is another library than NumPy."""
        return self.xp is not np

    def __str__(self) -> str:
        return f"{self.name} arrays on {self.device}"

    @cached_property
    def double(self) -> Any:
        """Double precision; single precision on devices that have no other."""
        if not self.foreign:
            return np.dtype(np.float64)
        held = self.xp.__array_namespace_info__().dtypes(device=self.device, kind="real floating")
        return held.get("float64", self.xp.float32)

    @property
    def floats(self) -> list:
        """The precisions in which points may be given, the one for all other types first."""
        return list(dict.fromkeys((self.double, self.xp.float32 if self.foreign else np.dtype(np.float32))))

    def array(self, values, dtype=None) -> Any:
        """Numbers of NumPy on the device; integers if the values are, otherwise in double precision by default."""
        values = np.array(values, order="C")  # a copy, because some libraries would share the memory
        if dtype is None and values.dtype.kind == "f":
            dtype = self.double
        return self.xp.asarray(values, dtype=dtype, device=self.device)

    def finite(self, values: NDArray, dtype) -> Any:
        """Numbers of NumPy on the device in another precision, where none becomes infinite."""
        largest = float(self.xp.finfo(dtype).max)
        return self.array(np.clip(values, -largest, largest), dtype)


NUMPY = Library(np, "cpu")


def precision(array) -> np.dtype:
    """The dtype of an array of floats, as NumPy has it."""
    if not is_foreign(array):
        return array.dtype
    return np.dtype(np.float32 if "float32" in str(array.dtype) else np.float64)


def like(values: NDArray, array) -> Any:
    """Numbers of NumPy in the library, on the device and in the precision of an array."""
    if not is_foreign(array):
        return values.astype(array.dtype, copy=False)
    return Library.of(array).array(values, array.dtype)


def into(name: str, *arguments, out) -> Any:
    """A function of an array library by its name, written into `out` where the library can do that."""
    xp = np if isinstance(out, np.ndarray) else _compat().array_namespace(out)
    function = getattr(xp, name)
    return function(*arguments) if _name(xp) == "array_api_strict" else function(*arguments, out=out)


def at_least(values, least: float) -> Any:
    """Raise all numbers to a least one, in place where the library can do that."""
    limit = least if isinstance(values, np.ndarray) else like(np.asarray(least, dtype=float), values)
    return into("maximum", values, limit, out=values)


def doubled(X) -> Any:
    """Points in double precision, where their device has it."""
    if not is_foreign(X):
        return X.astype(np.float64, copy=False)
    library = Library.of(X)
    return library.xp.astype(X, library.double, copy=False)


def rows_of(X, rows) -> Any:
    """Some rows of an array of any library, or of a sparse array: by a slice, by numbers, or by a mask of NumPy."""
    if not is_foreign(X):
        return X[rows]
    if isinstance(rows, slice):
        return X[slice(*rows.indices(X.shape[0])), ...]
    rows = np.asarray(rows)
    library = Library.of(X)
    return library.xp.take(X, library.array(np.flatnonzero(rows) if rows.dtype == bool else rows), axis=0)


def stacked(parts) -> Any:
    """The rows of several arrays, dense or sparse, as one."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return Library.of(parts[0]).xp.concat(list(parts)) if is_foreign(parts[0]) else np.concatenate(parts)


def cross_out(tile, leave_out: NDArray, start: int, value: float) -> Any:
    """A tile with `value` where a row meets the column that it must leave out, in place where the library can do that.

    Parameters
    ----------
    tile : array of shape (rows, columns)
    leave_out : integer array of shape (rows,), or boolean array of shape (rows, all columns)
        The column that each row must not see, -1 for none, in the same numbering as `start`. Tiles of NumPy may leave
        out several columns of a row.
    start : int
        Number of the first column of the tile.
    value : float

    Examples
    --------
    >>> cross_out(np.ones((3, 2)), np.array([5, 6, -1]), 5, 0.0).tolist()
    [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> cross_out(np.ones((2, 2)), np.array([[True, False, True], [False, True, True]]), 1, 0.0).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    if leave_out.ndim == 2:
        np.copyto(tile, value, where=leave_out[:, start : start + tile.shape[1]])
        return tile
    inside = (leave_out >= start) & (leave_out < start + tile.shape[1])
    if not inside.any():
        return tile
    if isinstance(tile, np.ndarray):
        rows = np.flatnonzero(inside)
        tile[rows, leave_out[rows] - start] = value
        return tile
    library = Library.of(tile)
    if library.name != "array_api_strict":  # the standard has no assignment to listed entries, but other libraries do
        rows = np.flatnonzero(inside)
        tile[library.array(rows), library.array(leave_out[rows] - start)] = value
        return tile
    columns = library.array(np.where(inside, leave_out - start, -1))
    here = columns[:, None] == library.array(np.arange(tile.shape[1]))[None, :]
    return library.xp.where(here, library.xp.asarray(value, dtype=tile.dtype, device=library.device), tile)

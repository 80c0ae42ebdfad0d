"""Array libraries other than NumPy: which one an array belongs to, and how numbers go there and come back.

Everything else in this room uses only functions of the array API standard, so that one program runs in all libraries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
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
        """The library of an array, and its device. Sparse, lazy and complex arrays are refused."""
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
        """Name of the library."""
        return _name(self.xp)

    def __str__(self) -> str:
        return f"{self.name} arrays on {self.device}"

    @cached_property
    def double(self) -> Any:
        """Double precision; single precision on devices that have no other."""
        held = self.xp.__array_namespace_info__().dtypes(device=self.device, kind="real floating")
        return held.get("float64", self.xp.float32)

    @property
    def floats(self) -> list:
        """The precisions in which points may be given, the one for all other types first."""
        return list(dict.fromkeys((self.double, self.xp.float32)))

    @property
    def largest_log(self) -> float:
        """The exponential of more than this may overflow in sums."""
        return 700.0 if self.double != self.xp.float32 else 80.0

    def array(self, values, dtype=None) -> Any:
        """Numbers of NumPy on the device; integers if the values are, otherwise in double precision by default."""
        values = np.array(values, order="C")  # a copy, because some libraries would share the memory
        if dtype is None and values.dtype.kind == "f":
            dtype = self.double
        return self.xp.asarray(values, dtype=dtype, device=self.device)

    def zeros(self, *shape: int) -> Any:
        """Zeros in double precision."""
        return self.xp.zeros(shape, dtype=self.double, device=self.device)

    def doubled(self, array) -> Any:
        """An array in double precision."""
        return self.xp.astype(array, self.double, copy=False)

    def finite(self, values, dtype) -> Any:
        """Numbers in another precision, where none becomes infinite."""
        largest = float(self.xp.finfo(dtype).max)
        return self.xp.astype(self.xp.clip(values, min=-largest, max=largest), dtype, copy=False)

    def precision(self, array) -> np.dtype:
        """The dtype of an array of floats, as NumPy has it."""
        return np.dtype(np.float32 if array.dtype == self.xp.float32 else np.float64)

"""Requirements on what a model file holds. A failed one is a clause of a sentence, such as 'X_fit_ is no array'."""

from __future__ import annotations

from dataclasses import fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

MOST_LETTERS = 80  # of a value that a clause quotes
LAST_LETTER = 0x10FFFF  # the largest number of a letter in Unicode


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
    text = " ".join(repr(value).split()).encode("ascii", "backslashreplace").decode()
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}..."


def is_number(value: Any) -> bool:
    """Whether a value is one finite number.

    Examples
    --------
    >>> is_number(1.5), is_number(np.float32(2)), is_number(float("nan")), is_number(True), is_number("1")
    (True, True, False, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and bool(np.isfinite(float(value)))


def is_integer(value: Any) -> bool:
    """Whether a value is one integer."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def is_text(value: Any) -> bool:
    """Whether a value is a string that can be written to a file."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def require_keys(mapping: Any, keys: Iterable[str], what: str) -> None:
    """Require a mapping with at least these keys, all of them strings."""
    require(type(mapping) is dict and all(isinstance(key, str) for key in mapping), f"{what} is no mapping of names")
    missing = [key for key in keys if key not in mapping]
    require(not missing, f"{what} has no {', '.join(missing)}")


def require_fields(thing: Any, kind: type, what: str) -> None:
    """Require an instance of a dataclass that holds its fields and nothing else.

    An attribute that is no field could hide a method.
    """
    require(type(thing) is kind, f"{what} is a {type(thing).__name__}, not a {kind.__name__}")
    expected = {field.name for field in fields(kind)}
    require(vars(thing).keys() == expected, f"{what} does not have the parts of a {kind.__name__}")


def require_array(value: Any, what: str, shape: tuple[int | None, ...], *, kinds: str = "f") -> NDArray:
    """Require an array of finite numbers, and return it.

    Parameters
    ----------
    value : object
    what : str
        What it is called in a clause.
    shape : tuple
        None for a length that may be anything.
    kinds : str
        The kinds of numbers that are allowed, as in ``dtype.kind``.
    """
    require(type(value) is np.ndarray, f"{what} is no array")
    require(value.dtype.kind in kinds and value.dtype.isnative, f"{what} is an array of type {quoted(value.dtype.str)}")
    fits = len(shape) == value.ndim and all(
        wanted in (None, length) for wanted, length in zip(shape, value.shape, strict=True)
    )
    shown = ", ".join("any" if length is None else str(length) for length in shape)
    require(fits, f"{what} has the shape {value.shape}, not ({shown})")
    require(bool(np.isfinite(value).all()), f"{what} holds numbers that are not finite")
    return value


def require_positive(value: Any, what: str, shape: tuple[int | None, ...], *, zero: bool = False) -> NDArray:
    """Require an array of positive finite numbers, or of such numbers and zeros, and return it."""
    found = require_array(value, what, shape)
    if zero:
        require(bool((found >= 0).all()), f"{what} holds negative numbers")
    else:
        require(bool((found > 0).all()), f"{what} holds numbers that are not positive")
    return found


def require_letters(value: NDArray, what: str) -> None:
    """Require that an array of text holds letters; NumPy would make strings of other numbers that crash Python."""
    numbers = np.ascontiguousarray(value).view(np.uint32)
    require(bool((numbers <= LAST_LETTER).all()), f"{what} holds text that cannot be read")


def require_codes(value: Any, what: str, length: int, count: int) -> NDArray:
    """Require an array of numbers from 0 to `count` - 1, and return it."""
    found = require_array(value, what, (length,), kinds="iu")
    inside = not len(found) or (int(found.min()) >= 0 and int(found.max()) < count)
    require(inside, f"{what} holds numbers outside of 0 to {count - 1}")
    return found

"""Requirements on what a model file holds. A failed one is a clause of a sentence, such as 'X_fit_ is not an array'."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

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

"""`PerClass`: one value that says which class uses which kernel, or which covariance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

LARGEST = 1e100  # of a mean: sums with other terms must not overflow
T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class PerClass(Generic[T]):
    """Different things, each used by one or more classes.

    Examples
    --------
    >>> kernels = PerClass.of(["long", "short", "long"])
    >>> kernels.distinct, kernels.owner.tolist(), kernels[2], kernels.classes(0).tolist()
    (('long', 'short'), [0, 1, 0], 'long', [0, 2])
    >>> list(kernels.map(str.upper))
    ['LONG', 'SHORT', 'LONG']
    """

    distinct: tuple[T, ...]
    owner: NDArray
    """For each class, the number of its thing in `distinct`."""

    @classmethod
    def of(cls, things: Sequence[T]) -> PerClass[T]:
        """One thing per class; equal ones are shared."""
        return cls._merged(things, _equal)

    @classmethod
    def of_objects(cls, things: Sequence[T]) -> PerClass[T]:
        """One thing per class; classes share a thing only if it is the same object.

        This is for learning. Kernels that are equal at the start may differ after learning. A user who wants classes to
        share the learned parameters gives them the same object. This is the only place where identity has a meaning.
        """
        return cls._merged(things, lambda one, other: one is other)

    @classmethod
    def shared_by(cls, thing: T, n_classes: int) -> PerClass[T]:
        """One thing for all classes."""
        return cls((thing,), np.zeros(n_classes, dtype=int))

    @classmethod
    def _merged(cls, things: Sequence[T], same: Callable[[T, T], bool]) -> PerClass[T]:
        distinct: list[T] = []
        owner = []
        for thing in things:
            number = next((k for k, other in enumerate(distinct) if same(thing, other)), len(distinct))
            distinct += [thing] * (number == len(distinct))
            owner.append(number)
        return cls(tuple(distinct), np.array(owner, dtype=int))

    def __len__(self) -> int:
        return len(self.owner)

    def __getitem__(self, c: int) -> T:
        return self.distinct[self.owner[c]]

    def __iter__(self) -> Iterator[T]:
        return (self.distinct[k] for k in self.owner)

    @property
    def shared(self) -> bool:
        """Whether all classes use the same thing."""
        return len(self.distinct) == 1

    def classes(self, k: int) -> NDArray:
        """The classes that use `distinct[k]`, ascending."""
        return np.flatnonzero(self.owner == k)

    def map(self, function: Callable[[T], U]) -> PerClass[U]:
        """The same value with each distinct thing replaced by the result of `function`."""
        return PerClass(tuple(map(function, self.distinct)), self.owner)


def _equal(one, other) -> bool:
    """Whether two things are equal. Things that hold arrays cannot say so, and are equal only to themselves."""
    try:
        return one is other or bool(one == other)
    except ValueError:
        return False


def class_kernels(kernel, classes: NDArray, *, by_object: bool = False) -> PerClass:
    """One kernel per class, from a kernel or from a mapping class -> kernel.

    Parameters
    ----------
    kernel : kernel or mapping class -> kernel
    classes : array of shape (n_classes,)
    by_object : bool
        Whether classes share a kernel only if they are given the same object; see `PerClass.of_objects`.
    """
    if not isinstance(kernel, Mapping):
        return PerClass.shared_by(kernel, len(classes))
    refuse_strangers(kernel, classes, "kernel")
    missing = [label for label in classes.tolist() if label not in kernel]
    if missing:
        raise ValueError(f"kernel has no entry for the class {missing[0]!r}: give one for each of {classes.tolist()}")
    kernels = [kernel[label] for label in classes.tolist()]
    return PerClass.of_objects(kernels) if by_object else PerClass.of(kernels)


def class_values(values, classes: NDArray, name: str, default: float) -> NDArray:
    """One finite number per class, from a number or a mapping class -> number."""
    if isinstance(values, Mapping):
        refuse_strangers(values, classes, name)
    try:
        if isinstance(values, Mapping):
            numbers = np.array([values.get(label, default) for label in classes.tolist()], dtype=float)
        else:
            numbers = np.array(np.broadcast_to(np.asarray(values, dtype=float), len(classes)))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, or a mapping class -> number, got {values!r}") from None
    if not (np.abs(numbers) <= LARGEST).all():
        what = f"between {-LARGEST:g} and {LARGEST:g}" if np.isfinite(numbers).all() else "finite"
        raise ValueError(f"{name} must be {what}, got {values!r}")
    return numbers


def refuse_strangers(mapping: Mapping, classes: NDArray, name: str) -> None:
    """Refuse a mapping that names unknown classes."""
    strangers = [key for key in mapping if not _among(key, classes.tolist())]
    if strangers:
        raise ValueError(f"{name} names the class {strangers[0]!r}, but y holds only {classes.tolist()}")


def _among(key, classes: list) -> bool:
    """Whether a key is one of the classes. `pandas.NA` cannot even be compared."""
    try:
        return key in classes
    except TypeError:
        return False

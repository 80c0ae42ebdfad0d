"""`PerClass`: one value that says which class uses which kernel, or which covariance."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from scipy import sparse

from coxfield.kernels.namespace import at_home

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


# Errors at certain points, and which rows of the user's data these points are.
#
# A kernel or a transformer is called far below the estimators, on blocks of rows in another order. There only the
# points themselves are known, so that is what the error keeps. Those who have the data in the user's order open
# `rows_named`.


SHOWN = 3  # features of a point that a sentence shows


class PointsError(ValueError):
    """Something that a user gave fails at certain points."""

    _said: tuple[str, str]
    _points: tuple
    _rows: list[tuple[str, int] | None]

    @classmethod
    def at(cls, what: str, points: Sequence, remedy: str) -> PointsError:
        """The error '<what> for <points>: <remedy>'; each point is an array with one row."""
        error = cls()
        error._said, error._points, error._rows = (what, remedy), tuple(points), [None] * len(points)
        error._write()
        return error

    def name_rows(self, sets: Mapping[str, Any]) -> None:
        """Say which rows of some sets of points these are. Points that are in none of the sets stay as they are."""
        sets = {name: at_home(X() if callable(X) else X) for name, X in sets.items()}
        different = list({id(X): name for name, X in sets.items()}.values())
        for k, point in enumerate(self._points):
            # Of two points the first is one that is asked about, and the second one that is known: the last set.
            names = different if k == 0 else different[::-1]
            found = ((name, _row_of(point, sets[name])) for name in names)
            self._rows[k] = next(((name, row) for name, row in found if row is not None), self._rows[k])
        self._write()

    def _write(self) -> None:
        what, remedy = self._said
        self.args = (f"{what} for {self._where()}: {remedy}",)

    def _where(self) -> str:
        named = [row for row in self._rows if row is not None]
        if not named:
            return f"the point{'s' * (len(self._points) > 1)} {' and '.join(map(_features, self._points))}"
        if len(named) == 2 and named[0][0] == named[1][0]:
            (name, first), (_, second) = named
            return f"rows {first} and {second} of the {name}" if first != second else f"{_row(*named[0])} and itself"
        both = zip(self._rows, self._points, strict=True)
        return " and ".join(f"the point {_features(point)}" if row is None else _row(*row) for row, point in both)


@contextmanager
def rows_named(sets: Mapping[str, Any]) -> Iterator[None]:
    """A context in which errors at points say which rows they are.

    Parameters
    ----------
    sets : mapping name -> points, or a function that returns them
        Points in the order in which the user knows them, such as {"queries": X, "training points": X_fit}. The points
        that are known come last.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> with rows_named({"training points": X}):
    ...     raise PointsError.at("MyKernel() is nan", (X[1:], X[:1]), "correct it")
    Traceback (most recent call last):
        ...
    coxfield.kernels.per_class.PointsError: MyKernel() is nan for rows 1 and 0 of the training points: correct it
    """
    try:
        yield
    except PointsError as error:
        error.name_rows(sets)
        raise


def _row_of(point, X) -> int | None:
    """The first row of X that is the point, None if there is none."""
    if sparse.issparse(X) != sparse.issparse(point) or X.shape[1] != point.shape[1]:
        return None
    if sparse.issparse(X):
        X, point = sparse.csr_array(X), sparse.csr_array(point)
        same = (X[:, point.indices].toarray() == point.data).all(axis=1) & (np.diff(X.indptr) == point.nnz)
    else:
        same = (point == X).all(axis=1)
    return int(same.argmax()) if same.any() else None


def _row(name: str, row: int) -> str:
    return f"row {row} of the {name}"


def _features(point) -> str:
    """The first features of a point."""
    features = point[:, :SHOWN].toarray() if sparse.issparse(point) else point[:, :SHOWN]
    more = [] if point.shape[1] <= SHOWN else ["..."]
    return f"({', '.join([*(f'{value:.4g}' for value in features[0].tolist()), *more])})"

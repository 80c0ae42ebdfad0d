"""What everything else asks of a covariance function, and which class uses which.

A `Covariance` is a function C(x, x'). To compute values, bind it to points. `KernelPoints` hold points in the form
that the covariance needs, and give values between their points and others of the same covariance. Class sums, label
fields, selection and permanents use these methods and no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np
from scipy import sparse

from coxfield.kernels.namespace import NUMPY, at_home, cross_out, doubled
from coxfield.utils.numbers import logs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from coxfield.kernels.namespace import Library


TOLERABLE = 0.03  # an error in a squared distance; if it may be larger, distances are computed again with care


class Covariance:
    """A covariance function C(x, x')."""

    kernel: Any
    """The object that users see: a kernel of scikit-learn, or the covariance itself."""

    def bind(self, X, rows: NDArray | None = None) -> Any:
        """`KernelPoints`: rows of X, all by default, in the form from which values are computed."""
        raise NotImplementedError

    def diagonal(self, X) -> NDArray:
        """C(x, x) for each row; one entry stands for all rows of a stationary covariance."""
        return self.bind(X).diagonal()

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Any:
        """The covariance with its free length scales and its signal variance multiplied."""
        raise NotImplementedError

    @property
    def stationary(self) -> bool:
        """Whether only x - x' counts. Then C(x, x) is the same for all points."""
        raise NotImplementedError

    def check_nonnegative(self) -> None:
        """Raise ValueError if the covariance may take negative values, which Theorem 2 does not allow."""
        raise NotImplementedError


class KernelPoints:
    """Points bound to a covariance. The first methods are a covariance's own; those below follow from them.

    Values come in three forms. `tile` is fast. `log_tile` is in the log domain: nothing underflows, and rounding does
    not change which point is the nearest. `walk` hands values to sums, relative to the largest value of each row.

    Tiles are arrays in the library of the points. Everything else is NumPy.
    """

    covariance: Any
    """The `Covariance`."""
    dtype: Any
    """Precision of a tile, as NumPy has it."""

    def __len__(self) -> int:
        raise NotImplementedError

    def __getitem__(self, rows) -> Self:
        """Some of the points, by a slice or an array of row numbers; the latter hold nothing of the others."""
        raise NotImplementedError

    def at(self, X) -> Any:
        """Other points, in the same form as these."""
        raise NotImplementedError

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Any:
        """The same points under the rescaled covariance."""
        raise NotImplementedError

    def diagonal(self) -> NDArray:
        """C(x, x) for each point; one entry stands for all points of a stationary covariance."""
        raise NotImplementedError

    def tile(self, columns: Any, out: NDArray | None = None) -> Any:
        """Covariances between these points and others. `out` is an array that may be used for the result."""
        raise NotImplementedError

    def pairs(self, rows: NDArray, columns: Any, of_columns: NDArray) -> NDArray:
        """C between listed pairs of these points and others, in double precision."""
        raise NotImplementedError

    def neighbours(self, count: int) -> NDArray:
        """For each point, `count` other points whose covariance with it is likely to be large, shape (n, count)."""
        raise NotImplementedError

    def differentiate(self, columns: Any, weights: NDArray, leave_out: NDArray) -> Differentiated:
        """Weighted sums of C over `columns`, with their derivatives by the free parameters of the kernel.

        Parameters
        ----------
        columns : KernelPoints
        weights : array, one entry per column
        leave_out : integer array, one entry per point
            A column that the point must not see, -1 for none.
        """
        raise NotImplementedError

    def diagonal_gradient(self, weights: NDArray) -> NDArray:
        """Sum over the points x_j of weights_j dC(x_j, x_j) / d theta, one entry per free parameter of the kernel."""
        raise NotImplementedError

    # What only covariances that are learned, listed, or functions of a distance need to write themselves.

    @property
    def library(self) -> Library:
        """Where tiles are."""
        return NUMPY

    def links(self) -> sparse.csr_array | None:
        """All covariances between different points that are not 0, if they are listed; None if they are not.

        The matrix is symmetric and has no diagonal. Do not write to it.
        """
        return None

    def left_out(self, rows: NDArray) -> Any:
        """These points as queries from which the covariance has learned nothing.

        Parameters
        ----------
        rows : integer array, one entry per point
            The row of each point among the labelled points that the covariance was learned from, -1 for none.
        """
        return self

    def error(self, columns: Any) -> NDArray:
        """Bound on the error that rounding leaves in the squared distances of each point, in units of the length scale.

        It is 0 where `precisely` has no better values.
        """
        return np.zeros(len(self))

    def imprecise(self, columns: Any, factor: float = 1.0) -> NDArray:
        """Whether cancellation spoils the row of each point in a tile, so that `precisely` should be used.

        `factor` asks the same of the covariance with its length scales multiplied.
        """
        return self.error(columns) > TOLERABLE * factor**2

    def precisely(self) -> Any:
        """The same points, whose `walk` is right to the last digit, and takes longer."""
        return self

    def log_tile(self, columns: Any) -> NDArray:
        """Logarithms of the covariances between these points and others, in double precision."""
        return logs_of(self.tile(columns).astype(float, copy=False))

    def walk(self, columns: Any, factors: NDArray, leave_out: NDArray, sink: Sink) -> NDArray:
        """Hand the tiles for each factor of the length scale to `sink`, relative to a value of each row.

        Parameters
        ----------
        columns : KernelPoints
        factors : array of shape (K,)
            Factors of the free length scales, taken one after the other.
        leave_out : integer array of shape (n,)
            For each point a column that it must not see, -1 for none.
        sink : Sink

        Returns
        -------
        array of shape (K, n)
            Logarithms of the numbers by which the values of each row were divided.
        """
        tops = np.empty((len(factors), len(self)))
        for k, logs in enumerate(self.log_tiles_at(columns, factors)):
            logs = cross_out(logs, leave_out, 0, -np.inf)
            top = logs.max(axis=1, initial=-np.inf)
            tops[k] = np.where(np.isneginf(top), 0, top)
            sink.add(k, 0, np.exp(logs - tops[k][:, None]))
        return tops

    def tiles_at(self, columns: Any, factors: NDArray) -> Iterator[Any]:
        """`tile` for one factor of the length scales after the other."""
        for factor in factors:
            yield self.rescaled(factor).tile(columns.rescaled(factor))

    def log_tiles_at(self, columns: Any, factors: NDArray) -> Iterator[NDArray]:
        """`log_tile` for one factor of the length scales after the other."""
        for factor in factors:
            yield self.rescaled(factor).log_tile(columns.rescaled(factor))

    def pairs_at(self, rows: NDArray, columns: Any, of_columns: NDArray, factors: NDArray) -> Iterator[NDArray]:
        """`pairs` for one factor of the length scale after the other."""
        for factor in factors:
            yield self.rescaled(factor).pairs(rows, columns.rescaled(factor), of_columns)

    def paths(self, columns: Any, weights: Any) -> list[Path]:
        """The sums over `columns` of which class sums consist; `weights` are their `engine.store.ClassWeights`."""
        return [Path(self, columns, None, [[weights]])]

    def total(self, sums: Sequence[LogSums]) -> LogSums:
        """The class sums of these points from the sums of `paths`, with one layer."""
        return sums[0]


class Sink(Protocol):
    """The receiver of the tiles of `KernelPoints.walk`."""

    def add(self, k: int, start: int, tile: NDArray) -> None:
        """Receive a tile of factor k whose first column is `start`; the tile may be overwritten afterwards."""

    def add_entries(self, k: int, at: NDArray, columns: NDArray, values: NDArray) -> None:
        """Receive single values of factor k: their rows, their columns, and the values."""

    def rescale(self, scale: NDArray) -> None:
        """Multiply what was received so far by a number for each factor and row, shape (K, n)."""


@dataclass(frozen=True)
class Path:
    """Sums over columns at some length scales, with one or more weights of the columns for each."""

    rows: Any
    columns: Any
    factors: NDArray | None
    """Factors of the length scales; None for the covariance as it is, whose values may be negative."""
    weights: Sequence[Sequence[Any]]
    """`ClassWeights` of each layer of each factor."""
    numbers: NDArray | None = None
    """The number of each column among those of the points, ascending, if not all are summed over."""

    def columns_of(self, numbers: NDArray) -> NDArray:
        """The columns of some points, -1 for those that are not summed over."""
        if self.numbers is None:
            return numbers
        place = np.searchsorted(self.numbers, numbers)
        found = np.append(self.numbers, -1)[place] == numbers
        return np.where(found & (numbers >= 0), place, -1)


@dataclass(frozen=True)
class LogSums:
    """Sums S = sums * exp(top), so that nothing underflows. Those over two sets of columns add: an online log-sum-exp.

    A row has one top for all classes, or one for each class if all its sums have vanished.
    """

    top: NDArray
    """Shape (factors, n, 1) or (factors, n, n_classes)."""
    sums: NDArray
    """Shape (factors, layers, n, n_classes)."""

    def __add__(self, other: LogSums) -> LogSums:
        top = np.maximum(self._reached, other._reached)
        mine, others = (np.exp(np.minimum(each.top - top, 0))[:, None] * each.sums for each in (self, other))
        return LogSums(np.where(top == LOWEST, 0, top), mine + others)

    @property
    def _reached(self) -> NDArray:
        """The tops of sums that have a term; those of others must not count when sums are added."""
        there = (self.sums != 0).any(axis=1)
        return np.where(there if self.top.shape[2] > 1 else there.any(axis=2, keepdims=True), self.top, LOWEST)

    @property
    def logs(self) -> NDArray:
        """log S; -inf where S is not positive."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.sums > 0, np.log(self.sums), -np.inf) + self.top[:, None]

    @property
    def values(self) -> NDArray:
        """S itself, limited so that it is a number."""
        with np.errstate(over="ignore"):
            return np.clip(self.sums * np.exp(np.minimum(self.top, LARGEST_LOG))[:, None], -LARGEST, LARGEST)


LOWEST = float(np.finfo(float).min)
LARGEST_LOG = 700.0  # exp of more than this overflows
LARGEST = float(np.exp(LARGEST_LOG))


class Differentiated(Protocol):
    """Weighted sums of covariances, one per point, with their derivatives by the parameters of the kernel."""

    @property
    def sums(self) -> NDArray:
        """The sums."""

    def gradient(self, rows: NDArray) -> NDArray:
        """Sum over the points j of rows_j dsums_j / d theta, one entry per free parameter of the kernel."""


# Covariances of all pairs of points, plain and precise.


def values(rows: KernelPoints, columns: KernelPoints) -> NDArray:
    """C between all pairs: a tile, computed in the log domain where rounding spoils it.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.kernels.radial import recognise
    >>> points = recognise(2.0 * RBF(1.0), 1).bind(np.array([[0.0], [1.0]]))
    >>> values(points, points).round(4).tolist()
    [[2.0, 1.2131], [1.2131, 2.0]]
    """
    tile = rows.tile(columns)
    again = np.flatnonzero(rows.imprecise(columns))
    if again.size:
        tile[again] = np.exp(rows[again].log_tile(columns))
    return tile


def bind_precisely(covariance: Covariance, X) -> KernelPoints:
    """Bind all rows of X, in double precision if single precision is too coarse for this covariance."""
    for data in (X, doubled(X)):
        bound = covariance.bind(data)
        if not bound.imprecise(bound).any():
            break
    return bound


# Which class uses which kernel, or which covariance.


LARGEST_MEAN = 1e100  # sums with other terms must not overflow
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
    if not (np.abs(numbers) <= LARGEST_MEAN).all():
        what = f"between {-LARGEST_MEAN:g} and {LARGEST_MEAN:g}" if np.isfinite(numbers).all() else "finite"
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
    coxfield.kernels.protocol.PointsError: MyKernel() is nan for rows 1 and 0 of the training points: correct it
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

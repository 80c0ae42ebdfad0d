"""Covariances that the package does not have, written against the interface alone.

They show that a sum of covariances, and a covariance of a fixed set of points addressed by row number, need nothing but
their two classes.
"""

from dataclasses import dataclass

import numpy as np

from coxfield.kernels.protocol import KernelPoints


@dataclass(frozen=True)
class SumCovariance:
    """C = w_1 C_1 + w_2 C_2 + ..., of any covariances."""

    members: tuple
    weights: tuple

    @property
    def kernel(self):
        return self

    def bind(self, X, rows=None):
        return SumPoints(self, tuple(member.bind(X, rows) for member in self.members))

    def diagonal(self, X):
        return sum(w * member.diagonal(X) for w, member in zip(self.weights, self.members, strict=True))

    def rescaled(self, length=1.0, variance=1.0):
        members = tuple(member.rescaled(length) for member in self.members)
        return SumCovariance(members, tuple(variance * w for w in self.weights))

    @property
    def stationary(self):
        return all(member.stationary for member in self.members)

    def check_nonnegative(self):
        for member in self.members:
            member.check_nonnegative()


@dataclass(frozen=True)
class SumPoints(KernelPoints):
    covariance: SumCovariance
    members: tuple

    def _sum(self, function):
        return sum(w * function(member) for w, member in zip(self.covariance.weights, self.members, strict=True))

    def _with(self, columns, function):
        parts = zip(self.covariance.weights, self.members, columns.members, strict=True)
        return [(w, function(mine, theirs)) for w, mine, theirs in parts]

    def _each(self, function):
        return SumPoints(self.covariance, tuple(map(function, self.members)))

    @property
    def dtype(self):
        return np.result_type(*(member.dtype for member in self.members))

    def __len__(self):
        return len(self.members[0])

    def __getitem__(self, rows):
        return self._each(lambda member: member[rows])

    def at(self, X):
        return self._each(lambda member: member.at(X))

    def rescaled(self, length=1.0, variance=1.0):
        members = tuple(member.rescaled(length) for member in self.members)
        return SumPoints(self.covariance.rescaled(length, variance), members)

    def diagonal(self):
        return self._sum(lambda member: member.diagonal())

    def tile(self, columns, out=None):
        return sum(w * tile for w, tile in self._with(columns, lambda a, b: a.tile(b)))

    def error(self, columns):
        return np.max([error for _, error in self._with(columns, lambda a, b: a.error(b))], axis=0)

    def log_tile(self, columns):
        logs = self._with(columns, lambda a, b: a.log_tile(b))
        return np.logaddexp.reduce([np.log(w) + of for w, of in logs])

    def pairs(self, rows, columns, of_columns):
        return sum(w * values for w, values in self._with(columns, lambda a, b: a.pairs(rows, b, of_columns)))

    def neighbours(self, count):
        return self.members[0].neighbours(count)


@dataclass(frozen=True)
class RowCovariance:
    """Covariances between a fixed set of points; a point is given as its row number, in a single column."""

    matrix: np.ndarray

    @property
    def kernel(self):
        return self

    def bind(self, X, rows=None):
        return RowPoints(self, _numbers(X if rows is None else X[rows]))

    def diagonal(self, X):
        return np.diagonal(self.matrix)[_numbers(X)]

    def rescaled(self, length=1.0, variance=1.0):
        return RowCovariance(variance * self.matrix)

    @property
    def stationary(self):
        return False

    def check_nonnegative(self):
        if (self.matrix < 0).any():
            raise ValueError("the matrix has negative entries")


@dataclass(frozen=True)
class RowPoints(KernelPoints):
    covariance: RowCovariance
    rows: np.ndarray
    dtype = np.dtype(float)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, rows):
        return RowPoints(self.covariance, self.rows[rows])

    def at(self, X):
        return RowPoints(self.covariance, _numbers(X))

    def rescaled(self, length=1.0, variance=1.0):
        return RowPoints(self.covariance.rescaled(length, variance), self.rows)

    def diagonal(self):
        return np.diagonal(self.covariance.matrix)[self.rows]

    def tile(self, columns, out=None):
        return self.covariance.matrix[np.ix_(self.rows, columns.rows)]

    def pairs(self, rows, columns, of_columns):
        return self.covariance.matrix[self.rows[rows], columns.rows[of_columns]]

    def neighbours(self, count):
        values = self.tile(self)
        np.fill_diagonal(values, -np.inf)
        return np.argpartition(values, -count, axis=1)[:, -count:]


def _numbers(X):
    return np.asarray(X)[:, 0].astype(int)

"""The sweep of `exact` with every number as a sign and a logarithm, for alpha and entries of any size.

The terms of an alpha-permanent of n rows are powers of alpha up to the n-th. If alpha is 1e-300, all but the first
power are too small for a floating point number, although a higher power may be the only term there is. So the sweep
adds logarithms. It takes about ten times as long as the plain one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.permanents.subsets import walks

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Signed:
    """Numbers as their signs, and the logarithms of their absolute values."""

    signs: NDArray
    logs: NDArray

    @classmethod
    def of(cls, values) -> Signed:
        """Numbers as floating point has them."""
        with np.errstate(divide="ignore"):
            return cls(np.sign(values), np.log(np.abs(values)))

    @classmethod
    def zeros(cls, shape) -> Signed:
        """As many zeros."""
        return cls(np.zeros(shape), np.full(shape, -np.inf))

    def __getitem__(self, key) -> Signed:
        return Signed(self.signs[key], self.logs[key])

    def __setitem__(self, key, value: Signed) -> None:
        self.signs[key], self.logs[key] = value.signs, value.logs

    def __mul__(self, other: Signed) -> Signed:
        return Signed(self.signs * other.signs, self.logs + other.logs)

    def __add__(self, other: Signed) -> Signed:
        signs, logs = np.stack([self.signs, other.signs]), np.stack([self.logs, other.logs])
        return Signed(signs, logs).sum(axis=0)

    def sum(self, axis: int) -> Signed:
        """Sums along an axis, relative to the largest summand of each."""
        top = self.logs.max(axis=axis, keepdims=True, initial=-np.inf)
        top[np.isneginf(top)] = 0
        sums = Signed.of((self.signs * np.exp(self.logs - top)).sum(axis=axis))
        return Signed(sums.signs, sums.logs + top.squeeze(axis))


def log_sweep(A: NDArray, alpha: float) -> tuple[Signed, list[Signed]]:
    """The alpha-permanent and the arrays F_s, as `exact` has them."""
    n, entries, weight = len(A), Signed.of(A), Signed.of(alpha)
    closed = Signed.of((np.arange(2**n) == 0).astype(float))
    opened = []
    for s in range(n):
        unused, used = closed[::2], closed[1::2]
        F = Signed.zeros((len(unused.logs), n - s))
        F[:, 0] = weight * unused
        for k, reached, before in walks(n - 1 - s):
            F[reached, 1 + k] = (F[before] * entries[s:, s + 1 + k]).sum(axis=1)
        closed = used + (F * entries[s:, s]).sum(axis=1)
        opened.append(F)
    return closed[0], opened


def log_gradient(A: NDArray, alpha: float, opened: list[Signed]) -> Signed:
    """The derivatives of the alpha-permanent with respect to the entries of A: `log_sweep` backwards."""
    n, entries, weight = len(A), Signed.of(A), Signed.of(alpha)
    gradient, closed_bar = Signed.zeros((n, n)), Signed.of(np.ones(1))
    for s in reversed(range(n)):
        F = opened[s]
        gradient[s:, s] += (F * closed_bar[:, None]).sum(axis=0)
        F_bar = closed_bar[:, None] * entries[s:, s]
        for k, reached, before in reversed(list(walks(n - 1 - s))):
            reached_bar = F_bar[reached, 1 + k][:, None]
            gradient[s:, s + 1 + k] += (F[before] * reached_bar).sum(axis=0)
            F_bar[before] += reached_bar * entries[s:, s + 1 + k]
        opening = weight * F_bar[:, 0]
        signs, logs = zip((opening.signs, opening.logs), (closed_bar.signs, closed_bar.logs), strict=True)
        closed_bar = Signed(np.stack(signs, axis=1).ravel(), np.stack(logs, axis=1).ravel())
    return gradient

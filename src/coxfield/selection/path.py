"""What a selection tried and which candidate it chose. All selections share this type and its rule for ties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIGITS = 12  # criteria are rounded to these decimals, because equal sums in different orders differ by rounding


@dataclass(frozen=True)
class SelectionPath:
    """The results of each candidate.

    Examples
    --------
    >>> tried = {"factor": [4.0, 2.0, 1.0], "error": [0.2, 0.1, 0.1], "loss": [0.5, 0.4, 0.3]}
    >>> SelectionPath(tried, criteria=("error", "loss")).best, SelectionPath(tried, criteria=("error",)).best
    (2, 1)
    """

    columns: dict[str, NDArray]
    """Named arrays with one entry per candidate. The first is "factor", the factor of the length scales."""
    criteria: tuple[str, ...]
    """The columns that decide, most important first. The least value wins; NaN never wins."""

    @classmethod
    def of(cls, rows: list[dict[str, float]], criteria: tuple[str, ...]) -> SelectionPath:
        """From one row per candidate; the candidates are put in order, longest length scale first."""
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {"factor": np.zeros(0)}
        return cls(columns, criteria).sorted()

    def __len__(self) -> int:
        return len(self.columns["factor"])

    def __getitem__(self, name: str) -> NDArray:
        return np.asarray(self.columns[name])

    def sorted(self) -> SelectionPath:
        """Longest length scale first; candidates of equal length scale stay in their order."""
        order = np.argsort(-self["factor"], kind="stable")
        return SelectionPath({name: self[name][order] for name in self.columns}, self.criteria)

    @property
    def best(self) -> int:
        """Number of the winner: least in the first criterion, then in the next ones, then the longest length scale.

        With few labels, errors are coarse and ties are common. Among equals, the longest length scale gives the
        smoothest answer.
        """
        keys = [np.round(self[name].astype(float), DIGITS) for name in reversed(self.criteria)]
        return int(np.lexsort(keys)[0])  # NaN sorts last, and equals stay in order

    def chosen(self, name: str) -> float:
        """An entry of the winner."""
        return float(self[name][self.best])

    def joined(self, other: SelectionPath) -> SelectionPath:
        """Both paths as one."""
        both = {name: np.concatenate([self[name], other[name]]) for name in self.columns}
        return SelectionPath(both, self.criteria).sorted()

    def table(self, length_scale: float = 1.0) -> dict[str, NDArray]:
        """The path as users see it: "length_scale" in place of "factor", and "chosen"."""
        columns = {name: self[name] for name in self.columns if name != "factor"}
        with np.errstate(over="ignore"):
            length_scales = np.minimum(self["factor"] * length_scale, np.finfo(float).max)
        return {
            "length_scale": length_scales,
            **columns,
            "chosen": np.arange(len(self)) == self.best,
        }

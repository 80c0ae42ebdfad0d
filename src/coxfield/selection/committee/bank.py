"""The members: heat covariances of several graphs at several times, and linear covariances, as unit features.

A number for each choice was settled on the data sets of `coxfield reproduce table-few-labels`, and holds for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coxfield.graphs.affinity import Ties
from coxfield.graphs.heat import Heat, time_of_rank

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from coxfield.graphs.linear import Axes
    from coxfield.graphs.modes import Modes

# Few neighbours follow thin shapes, and many follow clouds. With one scale and a sharp rule, ties do not cross gaps.
TIES = (Ties(5), Ties(40), Ties(10, sharpness=4.0, common=True), Ties(10, sharpness=10.0, common=True))
MULTIPLES = (1.2, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # of Q - 1: effective ranks
LEAST_MODES = 64
MODES_PER_CLASS = 6
RESOLVED = 0.6  # effective ranks up to this share of the modes are those of all modes
SHRINKAGES = (0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Member:
    """One covariance of the bank."""

    source: int
    """Number of its graph; -1 for linear covariances."""
    rank: float
    """Effective rank."""
    parameter: float
    """The time t of a heat covariance, or the shrinkage h of a linear one."""
    means: bool
    """Whether it takes negative values, so that it speaks by class means: without mode 0, or linear."""


def n_modes(n_points: int, n_classes: int) -> int:
    """How many modes of a graph are computed."""
    return min(n_points, max(LEAST_MODES, MODES_PER_CLASS * (n_classes - 1)))


def graph_members(source: int, modes: Modes, n_classes: int) -> Iterator[tuple[Member, NDArray]]:
    """Heat covariances of a graph, with and without mode 0, and their features."""
    if len(modes) < 2:
        return
    n = len(modes.vectors)
    most = min(n / 4, RESOLVED * len(modes)) if len(modes) < n else n / 4
    ranks = [(n_classes - 1) * multiple for multiple in MULTIPLES]
    ranks = [rank for rank in ranks if rank <= most] or ranks[:1]
    times: dict[float, float] = {}
    for rank in ranks:
        times.setdefault(time_of_rank(modes.values, rank), rank)  # a graph that falls apart repeats its longest time
    for time, rank in times.items():
        for centred in (False, True):
            yield Member(source, rank, time, centred), Heat(modes, time, centred).features()


def linear_members(axes: Axes, coordinates: NDArray) -> Iterator[tuple[Member, NDArray]]:
    """Linear covariances at several shrinkages, and their features."""
    if not axes.variances.any():
        return
    for share in SHRINKAGES:
        yield Member(-1, axes.rank(share), share, True), axes.features(coordinates, share)

"""How the time of a computation grows with the number of training points N, and whether it grows as promised.

A promise such as O(N³) is about large N. At small N the parts of lower order, and the efficiency of the BLAS, still
change with N, and the time grows more slowly. So a promise states from which N on it can be seen, and only times from
there on are judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import make_moons

from coxfield import plotting, threads
from coxfield_paper.report.blocks import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LARGEST = 3  # sizes, the largest ones, that an exponent is fitted to
TOLERANCE = 0.25  # of an exponent: times of single runs scatter by about this much over a factor of four in N
PATIENCE = 1.0  # seconds to repeat in: the least time of several runs is the least disturbed one
REPEATS = 5


def prediction_cost(classifier, n: int) -> dict[str, Any]:
    """Least processor seconds to fit n points with a known length scale and to predict one, on one thread."""
    X, y = make_moons(n, noise=0.2, random_state=0)
    times: list[float] = []
    with threads.small_steps():
        while not times or (len(times) < REPEATS and sum(times) < PATIENCE):
            start = process_time()
            classifier.fit(X, y).predict_proba(X[:1])
            times.append(process_time() - start)
    return {"seconds": min(times), "runs": len(times)}


@dataclass(frozen=True)
class Promise:
    """A growth like a power of N that can be seen from some N on."""

    power: int
    start: int

    def __str__(self) -> str:
        """The promise as a formula for matplotlib."""
        return "$O(N)$" if self.power == 1 else f"$O(N^{self.power})$"


@dataclass(frozen=True)
class Growth:
    """Seconds that something takes at each number of training points.

    Examples
    --------
    >>> growth = Growth("LGCP", (10, 100, 1000), (0.1, 1.0, 10.0))
    >>> round(growth.exponent(), 6), growth.exponent(start=100)
    (1.0, None)
    """

    name: str
    sizes: tuple[int, ...]
    """In ascending order."""
    seconds: tuple[float, ...]

    def exponent(self, start: int = 0) -> float | None:
        """Slope of log seconds against log N over the largest sizes from `start` on; None if there are too few."""
        sizes = [size for size in self.sizes if size >= start][-LARGEST:]
        if len(sizes) < LARGEST:
            return None
        return float(np.polyfit(np.log(sizes), np.log(self.seconds[-LARGEST:]), 1)[0])

    def verdict(self, promise: Promise) -> Verdict:
        """Whether the times grow as promised, faster than promised, or not yet as promised at these sizes."""
        exponent = self.exponent(promise.start)
        if exponent is None or exponent < promise.power - TOLERANCE:
            return Verdict.NOT_SEEN
        return Verdict.BORNE_OUT if exponent <= promise.power + TOLERANCE else Verdict.NOT_BORNE_OUT

    def finding(self, promise: Promise) -> str:
        """What was measured, beside what the promise needs."""
        exponent = self.exponent(promise.start)
        if exponent is None:
            return (
                f"{self.name}: the exponent {promise.power} needs {LARGEST} sizes from N = {promise.start:,} on, and "
                f"the largest size timed is {self.sizes[-1]:,}"
            )
        reach = f"from N = {self.sizes[-LARGEST]:,} to {self.sizes[-1]:,}"
        return f"{self.name}: measured exponent {exponent:.2f} {reach}, where {promise.power} ± {TOLERANCE} is needed"


def picture(growths: Sequence[Growth], promises: Mapping[str, Promise]):
    """Seconds against N on logarithmic axes; dotted lines show what was promised."""
    drawn = plotting.figure(7, 4.8)
    axes = drawn.subplots()
    axes.set(xscale="log", yscale="log", xlabel="training points N", ylabel="seconds to predict one point")
    for number, growth in enumerate(growths):
        promise = promises.get(growth.name)
        exponent = growth.exponent(promise.start if promise else 0)
        measured = "" if exponent is None else f", measured $N^{{{exponent:.1f}}}$"
        look: dict[str, Any] = {"color": plotting.COLOURS[number], "marker": plotting.MARKERS[number]}
        axes.plot(growth.sizes, growth.seconds, label=growth.name + measured, **look)
        if promise:
            _draw_promise(axes, growth, promise, plotting.COLOURS[number])
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False, columnspacing=1.2)
    return drawn


def _draw_promise(axes, growth: Growth, promise: Promise, colour: str) -> None:
    """The promised growth through the last point, moved up a little so that it can be seen."""
    sizes = np.array(growth.sizes[-LARGEST:])
    promised = 1.6 * growth.seconds[-1] * (sizes / sizes[-1]) ** promise.power
    axes.plot(sizes, promised, ":", color=colour)
    axes.annotate(
        str(promise), (sizes[-1], promised[-1]), (0, 4), textcoords="offset points", ha="center", color=colour
    )

"""What predicting one point costs as training points grow in number: LGCP beside the four-cycle approximation."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import make_moons
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from coxfield import LGCPClassifier, PermanentalClassifier, plotting
from coxfield.apps.report.blocks import Claim, Figure
from coxfield.apps.report.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coxfield.apps.report.records import Record

KERNEL = RBF(0.2)
LINEAR, CUBIC = "LGCP", "permanental, 4 cycles"
CLASSIFIERS = {
    LINEAR: lambda: LGCPClassifier(KERNEL, selection=None, n_jobs=1),
    CUBIC: lambda: PermanentalClassifier(KERNEL, selection=None, method="cyclic", cycles=4),
}
# LGCP shows its growth only where the overheads are small beside it.
SIZES = {LINEAR: (1000, 4000, 16_000, 64_000, 256_000), CUBIC: (250, 500, 1000, 2000, 4000)}
QUICK_LARGEST = {LINEAR: 256_000, CUBIC: 1000}
PROMISED = {LINEAR: 1, CUBIC: 3}  # the paper's exponents
LARGEST = 3  # sizes, the largest ones, that the growth is measured by
SLACK = 0.5  # of an exponent: nearer to the paper's than to the next whole one
PATIENCE = 1.0  # seconds to repeat in: the least time of several runs is the least disturbed one
REPEATS = 5


def cost(classifier: str, n: int) -> dict[str, Any]:
    """Least seconds to predict one point from n with a known length scale, set-up included, on one thread."""
    X, y = make_moons(n, noise=0.2, random_state=0)
    times: list[float] = []
    with threadpool_limits(1):
        while not times or (len(times) < REPEATS and sum(times) < PATIENCE):
            start = perf_counter()
            CLASSIFIERS[classifier]().fit(X, y).predict_proba(X[:1])
            times.append(perf_counter() - start)
    return {"seconds": min(times), "runs": len(times)}


def tasks(quick: bool) -> list[Task]:
    """One task for each classifier and number of points, alone because its time is what counts."""
    return [
        Task(name(classifier, n), cost, {"classifier": classifier, "n": n}, alone=True)
        for classifier, sizes in SIZES.items()
        for n in sizes
        if not quick or n <= QUICK_LARGEST[classifier]
    ]


def name(classifier: str, n: int) -> str:
    """The name of a task."""
    return f"appendix/cost/{classifier}/{n}"


@dataclass(frozen=True)
class Growth:
    """Seconds that a classifier takes at each number of training points.

    Examples
    --------
    >>> Growth("LGCP", (10, 100, 1000), (0.1, 1.0, 10.0)).exponent
    1.0
    """

    classifier: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float | None:
        """Slope of log seconds against log points over the largest sizes; None of too few."""
        if len(self.sizes) < LARGEST:
            return None
        logs = np.log(self.sizes[-LARGEST:]), np.log(self.seconds[-LARGEST:])
        return float(round(np.polyfit(*logs, 1)[0], 2))


def growths(found: Mapping[str, Record]) -> list[Growth]:
    """The growth of each classifier that has been timed."""
    timed = []
    for classifier, sizes in SIZES.items():
        records = {n: found[name(classifier, n)] for n in sizes if name(classifier, n) in found}
        seconds = {n: record.result["seconds"] for n, record in records.items() if record.done}
        if seconds:
            timed.append(Growth(classifier, tuple(seconds), tuple(seconds.values())))
    return timed


def figure(found: Mapping[str, Record]) -> list[Figure]:
    """Seconds against points for both classifiers, or nothing when nothing was timed."""
    timed = growths(found)
    if not timed:
        return []
    return [
        Figure(
            caption="Time to predict one point with a known length scale, set-up included, on one thread. Dotted: the "
            f"paper's O(N) and O(N³). Exponents are fitted to the {LARGEST} largest numbers of points.",
            figure=picture(timed),
            description="On logarithmic axes the time of LGCP rises along the line of slope one, that of the "
            "four-cycle permanental classifier far more steeply.",
            name="permanental_cost",
        )
    ]


def picture(timed: list[Growth]):
    """Both growths on logarithmic axes, with the paper's beside them."""
    drawn = plotting.figure(7, 4.8)
    axes = drawn.subplots()
    axes.set(xscale="log", yscale="log", xlabel="training points N", ylabel="seconds to predict one point")
    for growth in timed:
        number = list(SIZES).index(growth.classifier)
        measured = "" if growth.exponent is None else f", measured $N^{{{growth.exponent:.1f}}}$"
        look = {"color": plotting.COLOURS[number], "marker": plotting.MARKERS[number]}
        axes.plot(growth.sizes, growth.seconds, label=growth.classifier + measured, **look)
        _draw_promise(axes, growth, plotting.COLOURS[number])
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False, columnspacing=1.2)
    return drawn


def _draw_promise(axes, growth: Growth, colour: str) -> None:
    """The paper's growth through the time at the largest number of points, a little above so as to be seen."""
    power = PROMISED[growth.classifier]
    sizes = np.array(growth.sizes[-LARGEST:])
    promised = 1.6 * growth.seconds[-1] * (sizes / sizes[-1]) ** power
    axes.plot(sizes, promised, ":", color=colour)
    label = "$O(N)$" if power == 1 else f"$O(N^{power})$"
    axes.annotate(label, (sizes[-1], promised[-1]), (0, 4), textcoords="offset points", ha="center", color=colour)


def claim(found: Mapping[str, Record]) -> Claim:
    """Whether the times grow as the paper says: LGCP like N, the four-cycle approximation like its cube at most."""
    statement = "Prediction takes O(N³) for the four-cycle approximation, as compared to O(N) for LGCP"
    exponents = {growth.classifier: growth.exponent for growth in growths(found)}
    linear, cubic = exponents.get(LINEAR), exponents.get(CUBIC)
    if linear is None or cubic is None:
        return Claim(statement, "too few numbers of points were timed", None)
    holds = linear < PROMISED[LINEAR] + SLACK < cubic < PROMISED[CUBIC] + SLACK
    return Claim(statement, f"measured exponents: {cubic:.2f} for four cycles, {linear:.2f} for LGCP", holds)

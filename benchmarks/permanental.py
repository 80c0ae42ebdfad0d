"""How prediction grows with the number of training points: the permanental classifier's O(N^3) beside LGCP's O(N).

What is timed is everything that predicting one point takes when the length scale is known: arranging or calibrating the
training points, and the prediction. That is what the paper's O(N^3) and O(N) count. On one thread, so that the growth
is the algorithm's.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import make_moons
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from benchmarks.harness import Row, seconds, show
from coxfield import LGCPClassifier, PermanentalClassifier

SIZES = (125, 250, 500, 1000, 2000, 4000)
LINEAR_SIZES = (*SIZES, 16_000, 64_000, 256_000)  # LGCP shows its growth only where the overheads are small beside it
QUICK = 500
KERNEL = RBF(0.2)
PROMISED = {"LGCP": "at most 1.1", "permanental, 4 cycles": "at most 3.1"}


@dataclass(frozen=True)
class Growth:
    """Seconds that a classifier takes at each number of training points."""

    name: str
    sizes: np.ndarray
    seconds: np.ndarray

    @property
    def exponent(self):
        """Slope of log seconds against log points over the three largest sizes."""
        return float(np.polyfit(np.log(self.sizes[-3:]), np.log(self.seconds[-3:]), 1)[0])

    def rows(self):
        """The three largest sizes and the exponent, for the table."""
        shown = zip(self.sizes[-3:], self.seconds[-3:], strict=True)
        yield from (Row(f"{self.name}, N = {n:,}", f"{1000 * time:,.1f} ms") for n, time in shown)
        yield Row(f"{self.name}, growth", f"N^{self.exponent:.2f}", PROMISED.get(self.name, ""))


def permanental(cycles):
    return PermanentalClassifier(KERNEL, selection=None, method="cyclic", cycles=cycles)


def measure(name, classifier, sizes):
    times = []
    for n in sizes:
        X, y = make_moons(n, noise=0.2, random_state=0)
        times.append(seconds(lambda X=X, y=y: classifier.fit(X, y).predict_proba(X[:1]), repeats=5 if n <= 1000 else 3))
    return Growth(name, np.array(sizes), np.array(times))


def draw(growths, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4.2), layout="constrained")
    axes = figure.add_subplot(
        xlabel="training points N", ylabel="seconds to predict one point", title="Set-up included"
    )
    axes.set(xscale="log", yscale="log")
    colours = ("#0072B2", "#009E73", "#E69F00", "#D55E00")  # Okabe-Ito
    for growth, colour, marker in zip(growths, colours, "osD^", strict=True):
        label = f"{growth.name}: $N^{{{growth.exponent:.1f}}}$"
        axes.plot(growth.sizes, growth.seconds, marker=marker, color=colour, label=label)
    for power, growth in ((1, growths[0]), (3, growths[-1])):
        reach = growth.sizes[-3:]
        guide = 2 * growth.seconds[-1] * (reach / reach[-1]) ** power
        axes.plot(reach, guide, ":", color="0.3")
        axes.annotate(
            f"$N^{power}$" if power > 1 else "$N$",
            (reach[1], guide[1]),
            (-4, 4),
            textcoords="offset points",
            ha="right",
        )
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=150)


def run(quick=False, plot=None):
    with threadpool_limits(1):
        lgcp = measure("LGCP", LGCPClassifier(KERNEL, selection=None, n_jobs=1), _sizes(LINEAR_SIZES, quick))
        growths = [
            lgcp,
            *(measure(f"permanental, {m} cycles", permanental(m), _sizes(SIZES, quick)) for m in (2, 3, 4)),
        ]
    show("Predicting one point, set-up included", [row for growth in growths for row in growth.rows()])
    if plot is not None:
        draw(growths, plot)


def _sizes(sizes, quick):
    return tuple(n for n in sizes if n <= QUICK) if quick else sizes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--plot", help="file for a plot, such as docs/images/permanental_growth.png")
    options = parser.parse_args()
    run(options.quick, options.plot)

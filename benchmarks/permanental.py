"""How prediction grows with the number of training points: the permanental classifier's O(N^3) beside LGCP's O(N).

What is timed is everything that predicting one point takes when the length scale is known: arranging or calibrating the
training points, and the prediction. That is what the paper's O(N^3) and O(N) count. Single-threaded, so that the growth
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
KERNEL = RBF(0.2)
PICTURE = "docs/images/permanental_growth.png"


@dataclass(frozen=True)
class Growth:
    """Seconds of each classifier at each number of training points."""

    sizes: np.ndarray
    seconds: dict[str, np.ndarray]

    def exponent(self, name):
        """Slope of log seconds against log points over the larger half of the sizes."""
        upper = slice(len(self.sizes) // 2, None)
        return np.polyfit(np.log(self.sizes[upper]), np.log(self.seconds[name][upper]), 1)[0]


def classifiers():
    return {
        "LGCP": LGCPClassifier(KERNEL, selection=None, n_jobs=1),
        "permanental, 2 cycles": PermanentalClassifier(KERNEL, selection=None, method="cyclic", cycles=2),
        "permanental, 3 cycles": PermanentalClassifier(KERNEL, selection=None, method="cyclic", cycles=3),
        "permanental, 4 cycles": PermanentalClassifier(KERNEL, selection=None, method="cyclic", cycles=4),
    }


def measure(sizes):
    times = {name: [] for name in classifiers()}
    for n in sizes:
        X, y = make_moons(n, noise=0.2, random_state=0)
        for name, classifier in classifiers().items():
            times[name].append(
                seconds(lambda c=classifier, X=X, y=y: c.fit(X, y).predict_proba(X[:1]), repeats=5 if n <= 1000 else 2)
            )
    return Growth(np.array(sizes), {name: np.array(values) for name, values in times.items()})


def draw(growth, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4.2), layout="constrained")
    axes = figure.add_subplot(
        xlabel="training points N", ylabel="seconds to predict one point", xscale="log", yscale="log"
    )
    colours = ("#0072B2", "#009E73", "#E69F00", "#D55E00")  # Okabe-Ito
    for (name, times), colour, marker in zip(growth.seconds.items(), colours, "osD^", strict=True):
        axes.plot(
            growth.sizes, times, marker=marker, color=colour, label=f"{name}: $N^{{{growth.exponent(name):.1f}}}$"
        )
    largest = growth.sizes[-1]
    for power, name in ((3, "permanental, 4 cycles"), (1, "LGCP")):
        line = growth.seconds[name][-1] * (growth.sizes / largest) ** power
        axes.plot(growth.sizes[-3:], line[-3:], ":", color="0.4", label=f"slope {power}")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=150)


def run(quick=False, plot=None):
    with threadpool_limits(1):
        growth = measure(SIZES[:3] if quick else SIZES)
    promises = {"LGCP": "at most 1", "permanental, 4 cycles": "at most 3"}
    rows = []
    for name, times in growth.seconds.items():
        text = ", ".join(f"{1000 * value:.1f}" for value in times)
        rows.append(Row(f"{name}: ms at N = {', '.join(map(str, growth.sizes))}", text))
        rows.append(
            Row(f"{name}: exponent over the larger sizes", f"{growth.exponent(name):.2f}", promises.get(name, ""))
        )
    show("Predicting one point, set-up included", rows)
    if plot is not None:
        draw(growth, plot)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--plot", help=f"file for the plot, such as {PICTURE}")
    options = parser.parse_args()
    run(options.quick, options.plot)

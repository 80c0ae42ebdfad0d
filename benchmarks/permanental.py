"""How prediction grows with the number of training points: the permanental classifier's O(N^3) beside LGCP's O(N).

What is timed is everything that predicting one point takes if the length scale is known: the preparation of the
training points, and the prediction. That is what the paper's O(N^3) and O(N) count. On one thread, so that the growth
is that of the algorithm. The measurement is that of `coxfield reproduce appendix`; here shorter cycles are timed too.
"""

import argparse
from pathlib import Path

from benchmarks.harness import Row, show
from coxfield import LGCPClassifier, PermanentalClassifier
from coxfield.plotting import encode
from coxfield_paper.studies.growth import Growth, picture, prediction_cost
from coxfield_paper.studies.permanental import CUBIC, KERNEL, LINEAR, PROMISES, SIZES

PROMISED = {LINEAR: "at most 1.25", CUBIC: "at most 3.25"}
QUICK = {LINEAR: 16_000, CUBIC: 1000}  # largest sizes


def permanental(cycles):
    return PermanentalClassifier(KERNEL, selection=None, method="cyclic", cycles=cycles)


def measure(name, classifier, sizes):
    times = (prediction_cost(classifier, n)["seconds"] for n in sizes)
    return Growth(name, tuple(sizes), tuple(times))


def rows(growth):
    """The three largest sizes and the exponent, for the table."""
    for n, time in list(zip(growth.sizes, growth.seconds, strict=True))[-3:]:
        yield Row(f"{growth.name}, N = {n:,}", f"{1000 * time:,.1f} ms")
    yield Row(f"{growth.name}, growth", f"N^{growth.exponent():.2f}", PROMISED.get(growth.name, ""))


def run(quick=False, plot=None):
    linear, cubic = ([n for n in SIZES[kind] if not quick or n <= QUICK[kind]] for kind in (LINEAR, CUBIC))
    if quick:
        linear = [1000, *linear]
    growths = [
        measure(LINEAR, LGCPClassifier(KERNEL, selection=None, n_jobs=1), linear),
        *(measure(f"permanental, {cycles} cycles", permanental(cycles), cubic) for cycles in (2, 3, 4)),
    ]
    show("Predicting one point, set-up included", [row for growth in growths for row in rows(growth)])
    if plot is not None:
        plot.write_bytes(encode(picture(growths, PROMISES), plot))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--plot", type=Path, help="file for a plot, such as docs/images/permanental_growth.png")
    options = parser.parse_args()
    run(options.quick, options.plot)

"""Training rows that come and go: `partial_fit` and `forget` beside a fit and a prediction, one call and many."""

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from benchmarks.harness import Row, images, show
from coxfield import LGCPClassifier
from coxfield.datasets import make_circles
from coxfield.plotting import encode, figure, plot_points, plot_probability

QUERIES = 100
CALLS = 100  # in a sequence
ADDED, FORGOTTEN = 100, 10  # rows per call


def clocks(work):
    """Wall and processor seconds of one run."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return np.array([time.perf_counter() - wall, time.process_time() - processor])


def least(work, repeats):
    """Least wall and least processor seconds of several runs."""
    return np.min([clocks(work) for _ in range(repeats)], axis=0)


def sequence(work, calls):
    """Wall and processor seconds per call: of the first call, and of one among many."""
    first = clocks(lambda: work(0))
    rest = clocks(lambda: [work(call) for call in range(1, calls)])
    return first, (first + rest) / calls


def coming_and_going(clf, new, y_new, calls):
    """Name -> seconds of `forget` and `partial_fit`, of the first call and per call of a sequence."""
    rng, found = np.random.default_rng(0), {}

    def forget(_):
        clf.forget(rng.choice(len(clf.y_fit_), FORGOTTEN, replace=False))

    def add(call):
        some = slice(call * ADDED, (call + 1) * ADDED)
        clf.partial_fit(new[some], y_new[some])

    for what, work in ((f"forget {FORGOTTEN} rows", forget), (f"partial_fit of {ADDED} rows", add)):
        found[f"{what}, first call"], found[f"{what}, per call of {calls}"] = sequence(work, calls)
    return found


def table(title, base, of_base, found, promise=""):
    """Seconds, and how many times longer the base takes, by wall time and by processor time."""
    rows = [Row(of_base, f"{base[0]:.3f} s, {base[1]:.3f} s")]
    for what, spent in found.items():
        rows.append(Row(what, f"{1000 * spent[0]:.2f} ms, {1000 * spent[1]:.2f} ms"))
        wall, processor = base / spent
        rows.append(Row(f"    {of_base} / that", f"{wall:.0f}, {processor:.0f}", promise))
    show(f"{title}; wall time, processor time", rows)


def one_kernel(quick):
    n_train, calls = (6000, 20) if quick else (60_000, CALLS)
    X, y, Z = images(n_train, 10_000, np.float32)
    clf = LGCPClassifier(RBF(2.0), selection=None).fit(X, y)
    clf.predict(Z[:QUERIES])
    base = least(lambda: LGCPClassifier(RBF(2.0), selection=None).fit(X, y).predict(Z[:QUERIES]), 3)
    found = coming_and_going(clf, Z, clf.predict(Z[: calls * ADDED]), calls)
    before = least(lambda: clf.predict(Z[:QUERIES]), 3)
    single = LGCPClassifier(RBF(2.0), selection=None).fit(clf.X_fit_, clf.classes_[clf.y_fit_])
    after = least(lambda: single.predict(Z[:QUERIES]), 3)
    title = f"Live data, {n_train:,} x 784, float32, one kernel"
    table(title, base, f"fit and predict {QUERIES}", found, "at least 100")
    ratio = before / after
    show("Prediction after all these calls", [Row("beside that of a new fit", f"{ratio[0]:.2f}, {ratio[1]:.2f}")])


def mixture(quick):
    n_train, calls = (500, 5) if quick else (10_000, 20)
    X, y, Z = images(n_train, 10_000, np.float32)
    clf = LGCPClassifier()
    chosen = clocks(lambda: clf.fit(X, y))
    means = dict(zip(clf.classes_.tolist(), clf.mean_.tolist(), strict=True))

    def held():
        """A fit with the mixture given: nothing is chosen."""
        return LGCPClassifier(clf.kernel_, mean=means, selection=None).fit(X, y)

    base = least(lambda: held().predict(Z[:QUERIES]), 2)
    labels = clf.predict(Z[: calls * ADDED])
    found = coming_and_going(clf, Z, labels, calls)
    title = f"Live data, {n_train:,} x 784, float32, a mixture of {len(clf.mixture_['weight'])} members"
    table(title, base, f"fit with the mixture given, and predict {QUERIES}", found)
    show("The fit that has chosen the mixture", [Row("seconds", f"{chosen[0]:.1f} s, {chosen[1]:.1f} s")])


def picture(path):
    """Draw how the probability of a class changes when rows come and when rows leave."""
    X, y = make_circles(2, 90, random_state=0)
    right, y = X[:, 0] > 0, np.array(["inner", "outer"])[y]
    clf = LGCPClassifier(RBF(0.3), selection=None).fit(X[~right], y[~right])
    steps = {
        "fit to the left half": lambda: None,
        "partial_fit with the right half": lambda: clf.partial_fit(X[right], y[right]),
        "forget the lower half": lambda: clf.forget(clf.X_fit_[:, 1] < 0),
    }
    drawn = figure(12, 3.4)
    for ax, (title, step) in zip(drawn.subplots(1, 3, sharex=True, sharey=True), steps.items(), strict=True):
        step()
        plot_probability(clf, X, ax, label="outer")
        plot_points(clf.X_fit_, clf.classes_[clf.y_fit_], ax)
        ax.set_title(title)
    path.write_bytes(encode(drawn, path))


def run(quick=False):
    one_kernel(quick)
    mixture(quick)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--picture", type=Path, help="draw rows that come and go to this file instead")
    options = parser.parse_args()
    run(options.quick) if options.picture is None else picture(options.picture)

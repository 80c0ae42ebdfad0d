"""Reasons: `contributions` beside `class_scores`, in time, memory and digits."""

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.gaussian_process.kernels import RBF

from benchmarks.harness import Row, images, peak_megabytes, show
from coxfield import LGCPClassifier
from coxfield.datasets import load_synth
from coxfield.plotting import encode, figure, plot_reasons

TOP = 10
ROUNDS = 5  # the two calls take turns, so that both meet the same disturbances


def clocks(work):
    """Wall and processor seconds of one run."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def compare(clf, Z, rounds):
    """Least wall and processor seconds of `class_scores` and of `contributions`."""
    clf.contributions(Z[:10], TOP)
    found = [(clocks(lambda: clf.class_scores(Z)), clocks(lambda: clf.contributions(Z, TOP))) for _ in range(rounds)]
    return np.min(found, axis=0)


def largest_gap(clf, Z):
    """How far shares and rest are from the scores, beside the sum of the sizes of all terms."""
    reasons, scores = clf.contributions(Z, TOP), clf.class_scores(Z).astype(float)
    gap = np.abs(reasons.shares.sum(axis=2) + reasons.rest - scores)
    return np.max(gap / (np.abs(scores) + np.abs(reasons.shares).sum(axis=2)))


def measure(title, clf, Z, rounds, promised=False):
    scores, reasons = compare(clf, Z, rounds)
    wall, processor = reasons / scores
    memory = peak_megabytes(lambda: clf.contributions(Z, TOP))
    rows = [
        Row("class_scores", f"{scores[0]:.2f} s, {scores[1]:.2f} s"),
        Row("contributions", f"{reasons[0]:.2f} s, {reasons[1]:.2f} s"),
        Row("contributions / class_scores", f"{wall:.2f}, {processor:.2f}", "at most 1.5" if promised else ""),
        Row("peak extra memory of contributions", f"{memory:.0f} MB", "below 1000 MB" if promised else ""),
        Row("largest gap to class_scores", f"{largest_gap(clf, Z):.0e}"),
    ]
    show(f"{title}, top {TOP}; wall time, processor time", rows)


def run(quick=False):
    n_train, n_test = (6000, 100) if quick else (60_000, 1000)
    X, y, Z = images(n_train, n_test, np.float32)
    rounds = 2 if quick else ROUNDS
    for scale in (2.0, 0.75):  # many rows are heard, or few
        clf = LGCPClassifier(RBF(scale), selection=None).fit(X, y)
        title = f"Reasons, {n_train:,} x {n_test:,} x 784, float32, length scale {scale}"
        measure(title, clf, Z, rounds, promised=True)
    few = min(n_train // 6, 10_000)
    double = LGCPClassifier(RBF(2.0), selection=None).fit(X[:few].astype(float), y[:few])
    measure(f"Reasons, {few:,} x {n_test:,} x 784, float64", double, Z.astype(float), 2)
    few = min(n_train // 12, 5000)
    mixture = LGCPClassifier().fit(X[:few], y[:few])
    members = len(mixture.mixture_["weight"])
    measure(f"Reasons, {few:,} x {n_test:,} x 784, float32, {members} members", mixture, Z, 2)


def picture(path):
    """Draw a query beside its witnesses: in the plane, among digits, and in a table of wines."""
    drawn = figure(15, 4.6)
    plane, digits, wines = drawn.subplots(1, 3, width_ratios=[1, 1.15, 1])
    X, y, *_ = load_synth(return_X_y=True)
    plot_reasons(LGCPClassifier().fit(X, y), [0.02, 0.45], 6, ax=plane)
    X, y = load_digits(return_X_y=True)
    clf, new = LGCPClassifier().fit(X[:-100], y[:-100]), X[-100:]
    unsure = clf.predict_proba(new).max(axis=1).argmin()
    plot_reasons(clf, new[unsure], 4, ax=digits)
    wine = load_wine()
    clf = LGCPClassifier().fit(wine.data[1:], wine.target[1:])
    names = [f"wine {k}" for k in range(1, len(wine.data))]
    plot_reasons(clf, wine.data[0], 4, ax=wines, names=["A", "B", "C"], ids=names)
    path.write_bytes(encode(drawn, path))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--picture", type=Path, help="draw reasons to this file instead")
    options = parser.parse_args()
    run(options.quick) if options.picture is None else picture(options.picture)

"""Few labels among many points: the default classifier beside LabelSpreading, its growth, and all of MNIST.

`python -m benchmarks.many_points digits` measures the first alone, `growth` whole fits of parts of MNIST, and `draws`
the errors on all of it.
"""

import io
import resource
import sys
import time
from contextlib import redirect_stderr

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading

from benchmarks.few_labels import some_labels
from benchmarks.harness import Row, console, seconds, show
from coxfield import SLGCPClassifier
from coxfield.datasets import DatasetUnavailableError, fetch_mnist
from coxfield.graphs.neighbours import Search

SIZES = (2000, 5000, 10_000, 20_000, 40_000, 70_000)
DRAWS = 30
CLASSES = 10


def run(quick=False):
    digits()
    try:
        X, truth = all_images()
    except DatasetUnavailableError as error:
        console.print(f"MNIST is not available, so the larger part is left out: {error}")
        return
    growth(X, truth, SIZES[:2] if quick else SIZES)
    if not quick:
        recall(X)
        draws(X, truth)
        new_points(X, truth)


def digits():
    """Whole fits on scikit-learn's digits."""
    X, truth = load_digits(return_X_y=True)
    y = some_labels(truth, 5, np.random.default_rng(0))
    clf, clock = SLGCPClassifier(), time.process_time
    ours = seconds(lambda: clf.fit(X, y), 5, clock)
    again = seconds(lambda: clf.relabel(y), 5, clock)
    theirs = seconds(lambda: LabelSpreading(kernel="knn").fit(X, y), 5, clock)
    rows = [
        Row("SLGCPClassifier().fit", f"{ours:.3f} s", "at most 5 s"),
        Row("LabelSpreading(kernel='knn').fit", f"{theirs:.3f} s"),
        Row("ours / theirs", f"{ours / theirs:.1f}", "at most 10"),
        Row("relabel / theirs", f"{again / theirs:.1f}", "at most 2"),
    ]
    show("Few labels, scikit-learn's digits, 1,797 x 64, 50 labels, 10 classes, processor time", rows)


def all_images():
    """All 70,000 digits of MNIST in an order that mixes training and test part, pixels in [0, 1], float32."""
    data = fetch_mnist()
    X = np.concatenate([data.X_train, data.X_test]).astype(np.float32) / np.float32(255)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], np.concatenate([data.y_train, data.y_test]).astype(int)[order]


def recall(X, some=500):
    """How many of the nearest neighbours are found among the candidates."""
    rows = np.random.default_rng(0).choice(len(X), some, replace=False)
    found = Search.among(X).of_all(40).index[rows]
    exact = NearestNeighbors(n_neighbors=41, algorithm="brute").fit(X).kneighbors(X[rows], return_distance=False)[:, 1:]
    rows = []
    for k in (5, 10, 40):
        share = np.mean([np.isin(near[:k], one[:k]).mean() for near, one in zip(exact, found, strict=True)])
        rows.append(Row(f"of the {k} nearest", f"{100 * share:.1f} %"))
    show("MNIST, neighbours that are found", rows)


def growth(X, truth, sizes):
    """The processor time of a whole fit against the number of points, with the steps at the largest size."""
    times = []
    for n in sizes:
        y = some_labels(truth[:n], 10, np.random.default_rng(0))
        start, wall, words = time.process_time(), time.perf_counter(), io.StringIO()
        with redirect_stderr(words):
            classifier = SLGCPClassifier(verbose=1).fit(X[:n], y)
        times.append(time.process_time() - start)
        wall = time.perf_counter() - wall
        wrong = 100 * np.mean(classifier.transduction_ != truth[:n], where=y < 0)
        console.print(f"{n:,} points: {times[-1]:.1f} s, on the clock {wall:.1f} s, error {wrong:.2f} %")
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    steps = [line.rsplit(": ", 1) for line in words.getvalue().splitlines()]
    shares = [Row(what, taken) for what, taken in steps if taken.endswith(" s")]
    rows = [
        *(Row(f"{n:,} points", f"{taken:.1f} s") for n, taken in zip(sizes, times, strict=True)),
        Row("exponent of the growth", f"{slope:.2f}"),
        *shares,
        Row("on the clock", f"{wall:.1f} s", "at most 60 s"),
        Row("peak of the whole process", f"{peak():.0f} MB", "at most 4,000 MB"),
    ]
    title = f"Whole fits of MNIST, 784 features, float32, 100 labels, up to {sizes[-1]:,} points"
    show(f"{title}: processor times, and steps on the clock", rows)


def draws(X, truth):
    """Errors over draws of labels, with and without known class shares. What does not depend on labels is made once."""
    clf = SLGCPClassifier(classes=[]).fit(X, np.full(len(X), -1))
    right = dict(enumerate(np.bincount(truth) / len(truth)))
    rows, times = [], []
    for per_class, stated, promise in ((10, None, 4.8), (1, None, 16.0), (1, right, 13.0)):
        clf.set_params(class_prior=stated)
        errors = []
        for seed in range(DRAWS):
            y = some_labels(truth, per_class, np.random.default_rng(seed))
            start = time.process_time()
            clf.relabel(y)
            times.append(time.process_time() - start)
            errors.append(100 * np.mean(clf.transduction_ != truth, where=y < 0))
        value = f"{np.mean(errors):.2f} %, standard error {np.std(errors, ddof=1) / np.sqrt(DRAWS):.2f}"
        known = "" if stated is None else ", known shares"
        rows.append(Row(f"{per_class * CLASSES} labels{known}", value, f"at most {promise} %"))
    rows.append(Row("relabel, processor time, median", f"{np.median(times):.2f} s", "at most 1 s"))
    show(f"MNIST, {len(X):,} points: error on unlabelled points, mean of {DRAWS} stratified draws", rows)


def new_points(X, truth, n_graph=60_000, n_draws=5):
    """Points that were not in the graph, beside the same points when they were."""
    clfs = [SLGCPClassifier(classes=[]).fit(part, np.full(len(part), -1)) for part in (X[:n_graph], X)]
    errors = []
    for seed in range(n_draws):
        y = some_labels(truth[:n_graph], 10, np.random.default_rng(seed))
        later = clfs[0].relabel(y).predict(X[n_graph:])
        inside = clfs[1].relabel(np.concatenate([y, np.full(len(X) - n_graph, -1)])).transduction_[n_graph:]
        errors.append([100 * np.mean(one != truth[n_graph:]) for one in (later, inside)])
    outside, transductive = np.mean(errors, axis=0)
    rows = [
        Row("new points", f"{outside:.2f} %"),
        Row("the same points in the graph", f"{transductive:.2f} %"),
        Row("difference", f"{outside - transductive:.2f} points", "at most 0.5"),
    ]
    show(f"MNIST, {n_graph:,} points in the graph, {len(X) - n_graph:,} new ones, 100 labels, {n_draws} draws", rows)


def peak():
    """The most memory that this process has had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    if sys.argv[1:] == ["digits"]:
        digits()
    elif sys.argv[1:] == ["growth"]:
        growth(*all_images(), SIZES)
    elif sys.argv[1:] == ["draws"]:
        draws(*all_images())
    else:
        run()

"""Fits and predictions of tables with very many rows: growth, what sampling costs, many classes, a rare class, Dask.

`python -m benchmarks.many_rows growth` and so on for each part; `--help` names them. Each fit has a process of its own,
so that its largest memory is known. Results are added to `benchmarks/results/many_rows.jsonl` as they come.
"""

import argparse
import json
import multiprocessing
import os
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from rich.table import Table
from sklearn.metrics import log_loss

from benchmarks.harness import Row, console, show
from coxfield import LGCPClassifier
from coxfield.selection.mixture import learn
from coxfield_paper.studies.data_sets import load

RESULTS = Path(__file__).parent / "results" / "many_rows.jsonl"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "many_rows.png"
SIZES = (2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
N_TEST = 10_000
SEEDS = 10
REAL = ("satimage", "pendigits", "digits", "made 0", "made 1", "made 2")
KINDS = ("mixtures", "satimage with noise")


def mixtures(n, seed=0, spread=0.62, n_classes=5, per_class=4):
    """Rows of 20 columns from 20 normal distributions, four for each of five classes."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes * per_class, 20)) * spread
    which = rng.integers(len(centres), size=n)
    return centres[which] + rng.normal(size=(n, 20)), which % n_classes


def satimage_with_noise(n, seed=0):
    """Rows of satimage repeated, with normal noise of half a standard deviation in each column."""
    X, y, *_ = load("satimage")
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(X), size=n)
    return X[rows] + rng.normal(size=(n, X.shape[1])) * (X.std(axis=0) / 2), y[rows]


def data_of(name, seed=0):
    """A set in parts for training and for tests."""
    made = {"mixtures": mixtures, "satimage with noise": satimage_with_noise}
    kind, _, size = name.partition(":")
    if kind in made:
        X, y = made[kind](int(size) + N_TEST, seed)
        return X[:-N_TEST], y[:-N_TEST], X[-N_TEST:], y[-N_TEST:]
    if name.startswith("made "):
        which = int(name[5:])
        X, y = mixtures(20_000 + N_TEST, which + 1, (0.5, 0.62, 0.9)[which], (2, 5, 10)[which])
        return X[:-N_TEST], y[:-N_TEST], X[-N_TEST:], y[-N_TEST:]
    return load(name, seed)


def boosted():
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(early_stopping=True, random_state=0)


class Light:
    """LightGBM with early stopping on a tenth of the rows."""

    def fit(self, X, y):
        """The trees until they get no better."""
        from lightgbm import LGBMClassifier, early_stopping

        kept = np.random.default_rng(0).random(len(y)) < 0.9
        self.model = LGBMClassifier(n_estimators=1000, verbose=-1, random_state=0, n_jobs=2)
        rest = [(X[~kept], y[~kept])]
        self.model.fit(X[kept], y[kept], eval_set=rest, callbacks=[early_stopping(10, verbose=False)])
        return self

    def predict_proba(self, X):
        """Probabilities of the classes."""
        return self.model.predict_proba(X)


METHODS = {
    "ours": lambda **options: LGCPClassifier(**options),
    "boosted trees": lambda **_: boosted(),
    "LightGBM": lambda **_: Light(),
}


def measured(name, method="ours", seed=0, many=None, **options):
    """Fit and predict in a process of its own: what it took and how good it is."""
    # In the processes of a `multiprocessing.Pool`, joblib allows one thread only.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        found = pool.submit(_measure, name, method, seed, many, options).result()
    record = {"data": name, "method": method, "seed": seed, "many": many, **options, **found}
    with RESULTS.open("a") as file:
        file.write(json.dumps(record) + "\n")
    return record


def _measure(name, method, seed, many, options):
    if many is not None:
        learn.MANY = many
    X, y, Z, truth = data_of(name, seed)
    clf = METHODS[method](**options)
    start, work = time.perf_counter(), time.process_time()
    clf.fit(X, y)
    fitted, worked = time.perf_counter(), time.process_time()
    P = clf.predict_proba(Z)
    asked = time.perf_counter()
    classes = np.unique(y)
    return {
        "fit": round(fitted - start, 2),
        "processor": round(worked - work, 2),
        "predict": round(asked - fitted, 2),
        "log_loss": round(float(log_loss(truth, P, labels=classes)), 5),
        "error": round(float(np.mean(classes[P.argmax(axis=1)] != truth)), 5),
        "gigabytes": round(_peak(), 2),
    }


def _peak():
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 2**20


def growth(largest=1_000_000, kinds=KINDS, threads=(2, 1)):
    """Time of a fit from 2,000 rows on, beside boosted trees."""
    sizes = [n for n in SIZES if n <= largest]
    for kind in kinds:
        table = Table("rows", "method", "fit s", "log loss", "error %", "predict s", "GB", title=kind)
        times = defaultdict(list)
        for n in sizes:
            ours = [("ours", {"n_jobs": jobs}) for jobs in threads]
            for method, options in [*ours, ("boosted trees", {}), ("LightGBM", {})]:
                found = measured(f"{kind}:{n}", method, **options)
                label = f"{method}, {options['n_jobs']} threads" if options else method
                times[label].append(found["fit"])
                cells = (found["fit"], found["log_loss"], 100 * found["error"], found["predict"], found["gigabytes"])
                table.add_row(f"{n:,}", label, *(f"{cell:.4g}" for cell in cells))
        console.print(table)
        far = [k for k, n in enumerate(sizes) if n >= 20_000]
        for label, taken in times.items():
            if len(far) > 1:
                slope = np.polyfit(np.log(np.array(sizes)[far]), np.log(np.array(taken)[far]), 1)[0]
                console.print(f"{kind}, {label}: exponent {slope:.2f} from 20,000 rows on")
        draw(kind, sizes, times)


def draw(kind, sizes, times):
    """The time of a fit against the number of rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for label, taken in times.items():
        axes.loglog(
            sizes[: len(taken)], taken, "o-", label=f"LGCPClassifier, {label[6:]}" if "ours" in label else label
        )
    axes.set(xlabel="rows", ylabel="seconds of a fit", title=f"{kind}, 20 columns" if kind == KINDS[0] else kind)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(PICTURE if kind == KINDS[0] else PICTURE.with_stem("many_rows_satimage"), dpi=120)


def sampling(seeds=SEEDS, names=REAL):
    """A fit to samples beside the fit to all pairs. Sets below 10,000 rows are sampled here only."""
    table = Table("set", "exact", "sampled, mean", "ratio, mean", "worst", "fit s, exact", "sampled")
    for name in names:
        exact = measured(name, exact=True)
        drawn = [measured(name, many=1000, random_state=seed) for seed in range(seeds)]
        ratio = np.array([each["log_loss"] for each in drawn]) / exact["log_loss"]
        cells = (exact["log_loss"], ratio.mean() * exact["log_loss"], ratio.mean(), ratio.max(), exact["fit"])
        table.add_row(name, *(f"{cell:.4f}" for cell in cells[:4]), str(exact["fit"]), f"{drawn[0]['fit']}")
    console.print(table)


def mnist(seeds=3, exact=False):
    """MNIST, all automatic: sampled, and all pairs if asked for."""
    table = Table("fit", "seconds", "GB", "log loss", "error %", "predict s")
    for seed in range(seeds):
        _add(table, f"sampled, seed {seed}", measured("MNIST", random_state=seed))
    if exact:
        _add(table, "all pairs", measured("MNIST", exact=True))
    console.print(table)


def determinism(n=20_000):
    """Fits with the same seed on one thread, on two, and on two again; and one with another seed."""
    X, y, Z, truth = data_of(f"mixtures:{n}")
    table, first = Table("threads", "seed", "log loss", "largest change of a probability", "of a weight"), None
    for n_jobs, seed in ((1, 0), (2, 0), (2, 0), (1, 1)):
        clf = LGCPClassifier(random_state=seed, n_jobs=n_jobs).fit(X, y)
        P, weights = clf.predict_proba(Z), clf.mixture_["weight"]
        first = (P, weights) if first is None else first
        apart = np.abs(weights / first[1] - 1).max() if weights.shape == first[1].shape else np.inf
        table.add_row(
            str(n_jobs), str(seed), f"{log_loss(truth, P):.5f}", f"{np.abs(P - first[0]).max():.1g}", f"{apart:.1g}"
        )
    console.print(table)


def _add(table, label, found):
    cells = (found["fit"], found["gigabytes"], found["log_loss"], 100 * found["error"], found["predict"])
    table.add_row(label, *(f"{cell:.4g}" for cell in cells))


def prediction(n=1_000_000, some=2000):
    """Predictions of 10,000 rows from a million, and some of them from all pairs in double precision."""
    X, y, Z, truth = data_of(f"mixtures:{n}")
    clf, found, spent = LGCPClassifier(), [], []
    asked = {"near cells": (Z, False), "one row": (Z[:1], False), "exact": (Z[:some], True)}
    clf.fit(X, y)
    for rows, exact in asked.values():
        start, work = time.perf_counter(), time.process_time()
        found.append(clf.set_params(exact=exact).predict_proba(rows))
        spent.append((time.perf_counter() - start, time.process_time() - work))
    P, _, exact = found
    ours, best = (log_loss(truth[:some], each[:some], labels=clf.classes_) for each in (P, exact))
    drawn = np.sum(exact * np.log(exact / P[:some]), axis=1).mean()
    table = [
        Row("near cells", f"{clf.fit_report_['near_cells']}"),
        Row(f"{len(Z):,} rows, and processor time", "{:.1f} s, {:.1f} s".format(*spent[0]), "10 s"),
        Row("one row", f"{1000 * spent[1][0]:.0f} ms"),
        Row(f"exact=True, {some:,} rows, and processor time", "{:.1f} s, {:.1f} s".format(*spent[2])),
        Row(f"log loss of these {some:,}, and exact", f"{ours:.5f}, {best:.5f}", "1 %"),
        Row("growth of the log loss if labels follow the exact probabilities", f"{100 * drawn / best:.2f} %", "1 %"),
        Row("largest change of a probability", f"{np.abs(P[:some] - exact).max():.1g}"),
        Row("log loss of all", f"{log_loss(truth, P, labels=clf.classes_):.4f}"),
        Row("peak", f"{_peak():.2f} GB"),
    ]
    show(f"Predictions from {n:,} rows of 20 columns", table)


def _classes(n_classes, n=50_000):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n_classes, 20)) * (1.5 if n_classes > 100 else 0.7)
    y = np.arange(n + 2000) % n_classes
    X = centres[y] + rng.normal(size=(len(y), 20)) * 0.8
    start = time.perf_counter()
    clf = LGCPClassifier().fit(X[:n], y[:n])
    taken = time.perf_counter() - start
    return taken, _peak(), np.mean(clf.predict(X[n:]) != y[n:])


def classes():
    """A thousand classes of 50 rows beside ten classes with the same number of rows."""
    found = {}
    for n_classes in (10, 1000):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            found[n_classes] = pool.submit(_classes, n_classes).result()
    table = [
        Row(f"{n_classes} classes: s, GB, error", f"{taken:.1f}, {peak:.2f}, {error:.4f}")
        for n_classes, (taken, peak, error) in found.items()
    ]
    show("50,000 rows of 20 columns", [*table, Row("ratio", f"{found[1000][0] / found[10][0]:.2f}", "5")])


def imbalance(seeds=SEEDS, n=200_000, rare=20):
    """Recall of a class of one row in 10,000, sampled and by all pairs of 20,000 rows with all rare ones."""
    table = Table("seed", "sampled", "exact on a tenth of the common rows")
    total = np.zeros(2)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        centre = rng.normal(size=20)
        centre *= 4 / np.linalg.norm(centre)
        X, y = rng.normal(size=(n, 20)), np.zeros(n, int)
        y[:rare], X[:rare] = 1, X[:rare] + centre
        Z = rng.normal(size=(500, 20)) + centre
        some = np.arange(n) < n // 10
        drawn = LGCPClassifier(random_state=seed).fit(X, y)
        small = LGCPClassifier(exact=True).fit(
            X[some], y[some], np.where(y[some] == 1, 1.0, (n - rare) / (some.sum() - rare))
        )
        recalls = [np.mean(clf.predict(Z) == 1) for clf in (drawn, small)]
        total += recalls
        table.add_row(str(seed), *(f"{recall:.3f}" for recall in recalls))
    table.add_row("mean", *(f"{each / seeds:.3f}" for each in total))
    console.print(table)


def on_dask(n=4_000_000, rows=250_000, limit=1024):
    """Two workers with one thread and a gigabyte each, once more with one that is killed, beside one machine."""
    import dask.array as da

    import dask
    from benchmarks.dask_cluster import _peak_megabytes, cluster
    from coxfield.dask import DaskLGCPClassifier

    starts = range(0, n, rows)
    X = da.concatenate(
        [da.from_delayed(dask.delayed(_columns)(rows, k), (rows, 20), np.float32) for k, _ in enumerate(starts)]
    )
    y = da.concatenate([da.from_delayed(dask.delayed(_labels)(rows, k), (rows,), int) for k, _ in enumerate(starts)])
    Z, truth = _part(N_TEST, -1)
    answers, times, peaks, ended = [], [], [], 0
    for killed in (False, True):
        with cluster(memory_limit=limit * 2**20) as client:
            X_there, y_there = client.persist([X, y])
            before = set(client.run(os.getpid).values())
            start = time.perf_counter()
            if killed:  # at once: a task that nobody waits for is not run
                client.submit(_stop_soon, workers=[next(iter(client.scheduler_info()["workers"]))], pure=False).result()
            clf = DaskLGCPClassifier(random_state=0).fit(X_there, y_there)
            fitted = time.perf_counter()
            answers.append(clf.predict_proba(da.from_array(Z, chunks=(2500, 20))).compute())
            times.append((fitted - start, time.perf_counter() - fitted))
            ended += len(before - set(client.run(os.getpid).values()))
            peaks.append(max(client.run(_peak_megabytes).values()))
    table = [
        Row("fit, and predictions of 10,000 rows", "{:.0f} s, {:.0f} s".format(*times[0])),
        Row("with a killed worker", "{:.0f} s, {:.0f} s".format(*times[1])),
        Row("workers that ended", str(ended), "1"),
        Row("most memory of a worker", f"{max(peaks):.0f} MiB", f"below {limit} MiB"),
        Row("log loss", f"{log_loss(truth, answers[0].astype(float), labels=range(5)):.4f}"),
        Row("largest change by the killed worker", f"{np.abs(answers[0] - answers[1]).max():.1g}"),
    ]
    show(f"{n:,} rows of 20 columns on two workers", table)


def _part(n, number):
    """Some rows of one and the same mixture."""
    centres = np.random.default_rng(0).normal(size=(20, 20)) * 0.62
    rng = np.random.default_rng([1, number + 1])
    which = rng.integers(20, size=n)
    return (centres[which] + rng.normal(size=(n, 20))).astype(np.float32), which % 5


def _columns(n, number):
    return _part(n, number)[0]


def _labels(n, number):
    return _part(n, number)[1]


def _stop_soon(seconds=20):
    """End this worker in the middle of the work; the nanny starts another."""
    import signal
    import threading

    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()


STUDIES = (growth, sampling, mnist, determinism, prediction, classes, imbalance, on_dask)
PARTS = {part.__name__: part for part in STUDIES}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="all, if none is named")
    parser.add_argument(
        "--largest", type=int, default=1_000_000, help="rows of the largest fit of `growth`, and of `prediction`"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of `sampling` and `imbalance`")
    parser.add_argument("--only", nargs="+", default=REAL, help="sets of `sampling`")
    parser.add_argument("--kinds", nargs="+", default=KINDS, help="of tables in `growth`")
    parser.add_argument("--threads", nargs="+", type=int, default=(2, 1), help="of fits in `growth`")
    parser.add_argument("--rows", type=int, default=4_000_000, help="of `on_dask`")
    parser.add_argument("--exact", action="store_true", help="`mnist` by all pairs too, which takes minutes")
    given = parser.parse_args()
    options = {
        "growth": {"largest": given.largest, "kinds": given.kinds, "threads": given.threads},
        "sampling": {"seeds": given.seeds, "names": given.only},
        "mnist": {"exact": given.exact},
        "prediction": {"n": given.largest},
        "imbalance": {"seeds": given.seeds},
        "on_dask": {"n": given.rows},
    }
    for name in given.parts or PARTS:
        PARTS[name](**options.get(name, {}))

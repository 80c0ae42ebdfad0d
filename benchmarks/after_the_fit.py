"""What happens after the fit: rows that come and go, far rows, evidence at new points, and what leave-one-out promises.

    python -m benchmarks.after_the_fit [updates windows parts outliers evidence leave_one_out many_classes] [--splits 8]

Log losses are divided by those of a new fit to the same rows, or of a fit to clean rows. The folder that COXFIELD_DATA
names may hold satimage.npz and a folder `tables` with npz files of X and y; what is missing is left out.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split

from benchmarks.strength import MADE
from coxfield import LGCPClassifier

MOST = 1200  # training rows of a split
OPTIONS: dict = {}  # of the classifier
MADE_UP = ("gq5, 2 classes", "XOR 10")  # where points have weights of their own, and where columns are irrelevant
TABLES = ("heart", "australian", "vehicle", "bupa", "sonar", "ionosphere", "monk-2", "mammographic", "phoneme")


def data_sets() -> dict[str, tuple]:
    """Points and class numbers by name."""
    loaders = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
    found = {name: load(return_X_y=True) for name, load in loaders.items()}
    found |= {name: tuple(part[:1500] for part in MADE[name](np.random.default_rng(0))) for name in MADE_UP}
    folder = Path(os.environ.get("COXFIELD_DATA", "."))
    for name in TABLES:
        path = folder / "tables" / f"{name}.npz"
        if path.is_file():
            with np.load(path, allow_pickle=True) as table:
                found[name] = table["X"].astype(float), table["y"].astype(int)
    if (folder / "satimage.npz").is_file():
        with np.load(folder / "satimage.npz") as table:
            found["satimage"] = table["X_train"].astype(float), table["y_train"].astype(int)
    return found


def normals(n: int, rng) -> tuple:
    """Two normal distributions in the plane."""
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 2)) + 1.2 * y[:, None], y


def log_loss(clf, X, y) -> float:
    logs = clf.predict_log_proba(X)
    return float(-np.mean(logs[np.arange(len(y)), np.searchsorted(clf.classes_, y)]))


def split(X, y, seed: int) -> tuple:
    """Two thirds of the rows, at most `MOST`, and the rest."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
    return X[:MOST], y[:MOST], X_test[:2000], y_test[:2000]


def shown(name: str, ratios: list) -> None:
    ratios = np.array(ratios)
    means = np.array2string(ratios.mean(axis=0), precision=2)
    print(f"{name:16s} mean {means}  worst split {ratios.max(axis=0).round(2)}", flush=True)


def updates(sets: dict, splits: int) -> None:
    """Rows that arrive, beside a new fit to all of them and beside the first ones alone.

    The first are 68 % of the rows: if there are more than 1,000 then, weights follow, and the others are too few for a
    new choice of everything.
    From a third on, everything is chosen again on the way.
    """
    print("# updates: from 68 % at once, by 10, by 1; from a third by 10; not at all")
    means = []
    for name, (X, y) in sets.items():
        ratios = []
        for seed in range(splits):
            A, b, T, t = split(X, y, seed)
            most, third, n = math.ceil(0.68 * len(b)), len(b) // 3, len(b)
            ways = [(most, n), (most, 10), (most, 1 if n <= 600 else 10), (third, 10), (most, None)]
            new = log_loss(LGCPClassifier(**OPTIONS).fit(A, b), T, t)
            ratios.append([log_loss(_grown(A, b, *way), T, t) / new for way in ways])
        shown(name, ratios)
        means.append(np.mean(ratios, axis=0))
    print("mean and worst of the sets", np.mean(means, axis=0).round(3), np.max(means, axis=0).round(2))


def _grown(A, b, first: int, step: int | None) -> LGCPClassifier:
    """A classifier of the first rows to which the others came in steps, if at all."""
    clf = LGCPClassifier(**OPTIONS).fit(A[:first], b[:first])
    for start in range(first, len(b), step) if step else ():
        clf.partial_fit(A[start : start + step], b[start : start + step])
    return clf


def windows(sets: dict, splits: int, steps: int = 50) -> None:
    """A window of 400 rows that moves by 50 rows, drawn again where the rows end."""
    print("# windows: after the last step, and the mean of every tenth")
    for name in ("normals", "satimage", "digits"):
        if name not in (*sets, "normals"):
            continue
        ratios = []
        for seed in range(splits):
            rng = np.random.default_rng(seed)
            X, y = normals(6000, rng) if name == "normals" else sets[name]
            order = rng.permutation(len(y))
            test, order = order[:1000], order[1000:]
            order = np.resize(order, 400 + 50 * steps)  # rows come again after all others have come
            clf = LGCPClassifier(**OPTIONS).fit(X[order[:400]], y[order[:400]])
            path = []
            for k in range(steps):
                new = order[400 + 50 * k : 450 + 50 * k]
                clf.partial_fit(X[new], y[new], classes=np.unique(y)).forget(np.arange(50))
                if k % 10 == 9:
                    fresh = LGCPClassifier(**OPTIONS).fit(clf.X_fit_, clf.classes_[clf.y_fit_])
                    path.append(log_loss(clf, X[test], y[test]) / log_loss(fresh, X[test], y[test]))
            ratios.append([path[-1], np.mean(path)])
        shown(name, ratios)


def parts(sets: dict, splits: int) -> None:
    """`selection_part` beside a fit to that part alone: log loss, and the largest evidence at all rows."""
    print("# selection_part 0.7, 0.5, 0.3: log loss; largest evidence at training and test rows")
    for name, (X, y) in sets.items():
        ratios = []
        for seed in range(splits):
            A, b, T, t = split(X, y, seed)
            row, loudest = [], []
            for part in (0.7, 0.5, 0.3):
                clf = LGCPClassifier(**OPTIONS, selection_part=part, random_state=seed).fit(A, b)
                chosen = clf._training.rows.chosen_from
                alone = LGCPClassifier(**OPTIONS).fit(A[chosen], b[chosen])
                row.append(log_loss(clf, T, t) / log_loss(alone, T, t))
                left_out = alone.loo_class_scores()
                middle = (left_out - left_out.mean(axis=1, keepdims=True)).mean(axis=0)
                found = [
                    largest_evidence(each.class_scores(points), middle) for each in (clf, alone) for points in (A, T)
                ]
                loudest.append(max(found[:2]) / max(*found[2:], largest_evidence(left_out, middle)))
            ratios.append([*row, *loudest])
        shown(name, ratios)


def outliers(sets: dict, splits: int) -> None:
    """One row, or one value, that is 1e3, 1e6, 1e9 standard deviations away; 9999 in 1 % of a column."""
    print("# outliers: row and value of 1e3, 1e6, 1e9; sentinels")
    for name, (X, y) in sets.items():
        ratios = []
        for seed in range(splits):
            A, b, T, t = split(X, y, seed)
            rng, clean, row = np.random.default_rng(seed), log_loss(LGCPClassifier(**OPTIONS).fit(A, b), T, t), []
            for size in (1e3, 1e6, 1e9):
                far = A.copy()
                far[rng.integers(len(far))] += size * A.std(axis=0)
                row.append(log_loss(LGCPClassifier(**OPTIONS).fit(far, b), T, t))
                far = A.copy()
                far[rng.integers(len(far)), rng.integers(far.shape[1])] += size * A.std()
                row.append(log_loss(LGCPClassifier(**OPTIONS).fit(far, b), T, t))
            coded, asked, k = A.copy(), T.copy(), rng.integers(A.shape[1])
            coded[rng.random(len(A)) < 0.01, k] = asked[rng.random(len(T)) < 0.01, k] = 9999
            row.append(log_loss(LGCPClassifier(**OPTIONS).fit(coded, b), asked, t))
            ratios.append(np.array(row) / clean)
        shown(name, ratios)


def largest_evidence(scores, middle) -> float:
    """The largest distance of a score from the mean of the classes, in nats."""
    return float(np.abs(scores - scores.mean(axis=1, keepdims=True) - middle).max())


def shown_by(clf) -> tuple[float, float, np.ndarray]:
    """The largest evidence at the training rows, left out and as copies; and the mean of those left out."""
    left_out = clf.loo_class_scores()
    middle = (left_out - left_out.mean(axis=1, keepdims=True)).mean(axis=0)
    return largest_evidence(left_out, middle), largest_evidence(clf.class_scores(clf.X_fit_), middle), middle


def evidence(sets: dict, splits: int) -> None:
    """The largest evidence anywhere, over the largest at points left out and at copies; over that of leave-one-out."""
    print(
        "# evidence: copies, 10,000 points in and around the data, arriving rows that leave the weights as they are, "
        "arriving rows whose number makes the weights follow, over left-out points and copies of the first fit; the "
        "last two over those of the fit that chose the members, which is a new one where so many rows have come; the "
        "largest of all over left-out points of the first fit alone"
    )
    for name, (X, y) in sets.items():
        ratios = []
        for seed in range(splits):
            A, b, T, t = split(X, y, seed)
            rng, clf = np.random.default_rng(seed), LGCPClassifier(**OPTIONS).fit(A, b)
            one, other = (A[rng.integers(len(A), size=10_000)] for _ in range(2))
            share = rng.random((10_000, 1))
            noise = rng.normal(size=one.shape) * A.std(axis=0) * rng.choice([0.01, 0.1, 1, 3], size=(10_000, 1))
            around = np.where(rng.random((10_000, 1)) < 0.5, one + share * (other - one), one + noise)
            left_out, at_copies, middle = shown_by(clf)
            base = last = max(left_out, at_copies)
            found = [at_copies, largest_evidence(clf.class_scores(around), middle)]
            few = len(b) // 11  # less than a tenth of the rows
            beside_last = []
            for some in (slice(0, few), slice(few, None)):
                chosen_from = clf._n_chosen
                clf.partial_fit(T[some], t[some])
                if clf._n_chosen != chosen_from:
                    last = max(shown_by(clf)[:2])
                found.append(largest_evidence(clf.class_scores(T[: some.stop]), middle))
                beside_last.append(found[-1] / last)
            ratios.append([*(each / base for each in found), *beside_last, max(found) / left_out])
        shown(name, ratios)


def leave_one_out(sets: dict, splits: int) -> None:
    """`loo_error_` and `loo_log_loss_`, and the same with weights chosen by all rows, minus test figures."""
    print("# leave-one-out minus test: error, standard error; log loss, standard error; then with weights of all rows")
    rng = np.random.default_rng(0)
    cases: dict = {name: [split(X, y, seed) for seed in range(splits)] for name, (X, y) in sets.items()}
    for n in (60, 200, 1000):
        cases[f"noise {n}"] = [
            (rng.normal(size=(n, 10)), rng.integers(2, size=n), rng.normal(size=(2000, 10)), rng.integers(2, size=2000))
            for _ in range(3 * splits)
        ]
    for name, draws in cases.items():
        rows = []
        for A, b, T, t in draws:
            clf = LGCPClassifier(**OPTIONS).fit(A, b)
            test = np.mean(clf.predict(T) != t), log_loss(clf, T, t)
            logs = np.log(np.maximum(clf.loo_predict_proba(), 1e-300))[
                np.arange(len(b)), np.searchsorted(clf.classes_, b)
            ]
            rows.append(
                [
                    clf.loo_error_ - test[0],
                    clf.loo_log_loss_ - test[1],
                    np.mean(clf.loo_predict() != b) - test[0],
                    -logs.mean() - test[1],
                ]
            )
        mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows))
        print(
            f"{name:16s} {mean[0]:+.4f} ± {error[0]:.4f}  {mean[1]:+.4f} ± {error[1]:.4f}   "
            f"{mean[2]:+.4f} ± {error[2]:.4f}  {mean[3]:+.4f} ± {error[3]:.4f}",
            flush=True,
        )


def many_classes(sets: dict, splits: int) -> None:
    """1,000 classes of 10 rows with 10 features."""
    rng = np.random.default_rng(0)
    centres, y = 2 * rng.normal(size=(1000, 10)), np.repeat(np.arange(1000), 10)
    X, T = (centres[y] + 0.6 * rng.normal(size=(len(y), 10)) for _ in range(2))
    start = time.perf_counter()
    clf = LGCPClassifier(**OPTIONS).fit(X, y)
    seconds, memory = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"# 1,000 classes: fit {seconds:.0f} s, peak {memory:.2f} GB, test error {np.mean(clf.predict(T) != y):.3f}, "
        f"log loss {log_loss(clf, T, y):.3f}, leave-one-out {clf.loo_error_:.3f} and {clf.loo_log_loss_:.3f}"
    )


STUDIES = {each.__name__: each for each in (updates, windows, parts, outliers, evidence, leave_one_out, many_classes)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", default=[*STUDIES])
    parser.add_argument("--splits", type=int, default=8)
    parser.add_argument("--sets", help="some of the data sets, separated by semicolons")
    parser.add_argument("--bank", default="wide", help="of the classifier")
    args = parser.parse_args()
    OPTIONS["bank"] = args.bank
    sets = data_sets()
    if args.sets:
        sets = {name: sets[name] for name in args.sets.split(";")}
    for name in args.studies:
        STUDIES[name](sets, args.splits)


if __name__ == "__main__":
    main()

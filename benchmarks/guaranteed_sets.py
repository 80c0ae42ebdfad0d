"""Sets with a guarantee: their time beside `predict_proba`, their coverage and their size, beside other methods."""

import argparse
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process.kernels import RBF

from benchmarks.harness import Row, console, images, seconds, show
from coxfield import LGCPClassifier
from coxfield.datasets import DatasetUnavailableError, load_synth
from coxfield.plotting import encode, figure
from coxfield.plotting.guaranteed_sets import plot_sets
from coxfield_paper.studies.data_sets import load

COVERAGES = (0.8, 0.9, 0.95, 0.99)
PART = 0.3  # of the training rows choose the covariance, where a part of them does
PER_CLASS = "    per class"


@dataclass(frozen=True)
class Pool:
    """Rows that are divided again and again, and covariances that were chosen from other rows."""

    name: str
    X: np.ndarray
    y: np.ndarray
    n_train: int
    n_test: int
    chosen: LGCPClassifier
    """Fitted to as many other rows as there are training rows."""
    chosen_from_half: LGCPClassifier
    """Fitted to half as many."""

    def split(self, seed):
        """Points and labels to train, and to test."""
        order = np.random.default_rng(seed).permutation(len(self.y))
        train, test = order[: self.n_train], order[self.n_train : self.n_train + self.n_test]
        return self.X[train], self.y[train], self.X[test], self.y[test]


def beforehand(chosen):
    """A classifier with the covariance and the means that other rows have chosen."""
    means = dict(zip(chosen.classes_.tolist(), chosen.mean_.tolist(), strict=True))
    return LGCPClassifier(chosen.kernel_, mean=means, selection=None)


def make_pool(name, X, y, n_train, n_test):
    order = np.random.default_rng(2024).permutation(len(y))
    aside, rest = order[:n_train], order[n_train:]
    # A class sum grows with the number of rows. So the covariance suits as many rows as it was chosen from.
    both = (
        LGCPClassifier(selection="pseudo_likelihood").fit(X[some], y[some]) for some in (aside, aside[: n_train // 2])
    )
    return Pool(name, X[rest], y[rest], n_train, min(n_test, len(rest) - n_train), *both)


def pools():
    X_train, y_train, X_test, y_test = load_synth(return_X_y=True)
    yield make_pool("Synth", np.concatenate([X_train, X_test]), np.concatenate([y_train, y_test]), 250, 1000)
    try:
        X_train, y_train, X_test, y_test = load("pendigits")
    except DatasetUnavailableError as error:
        console.print(f"pendigits is left out: {error}")
        return
    X = np.concatenate([X_train, X_test]).astype(float)
    yield make_pool("pendigits", X, np.concatenate([y_train, y_test]), 500, 500)


def closed_form(clf):
    """P-values of one fit, marginal and per class, with the numbers of calibrating rows behind them."""

    def p_values(X, y, new):
        clf.fit(X, y)
        rows = clf._calibrators()
        counts = np.bincount(clf.y_fit_[rows], minlength=len(clf.classes_))
        both = clf.set_p_values(new), clf.set_p_values(new, per_class=True)
        return list(zip(both, (np.full(len(counts), len(rows)), counts), strict=True))

    return p_values


def split_conformal(clf):
    """Half of the rows to train, half to calibrate, with one minus the probability of the label as the score."""

    def p_values(X, y, new):
        half = len(y) // 2
        clf.fit(X[:half], y[:half])
        scores = 1 - clf.predict_proba(X[half:])[np.arange(len(y) - half), np.searchsorted(clf.classes_, y[half:])]
        worse = len(scores) - np.searchsorted(np.sort(scores), 1 - clf.predict_proba(new), side="left")
        return [((1 + worse) / (len(scores) + 1), np.full(len(clf.classes_), len(scores)))]

    return p_values


def by_crepes(clf):
    """The same by crepes."""
    from crepes import WrapClassifier

    def p_values(X, y, new):
        half, wrapped = len(y) // 2, WrapClassifier(clf)
        wrapped.fit(X[:half], y[:half])
        wrapped.calibrate(X[half:], y[half:])
        return [(wrapped.predict_p(new, smoothing=False), np.full(len(np.unique(y)), len(y) - half))]

    return p_values


def methods(pool, splits):
    """Name, function, and the number of splits; `splits` are many, and few for what takes long or is not guaranteed."""
    many, few = splits
    part = LGCPClassifier(selection_part=PART, random_state=0)
    one_kernel = LGCPClassifier(selection="loo_error", selection_part=PART, random_state=0)
    yield "closed form, kernel chosen beforehand", closed_form(beforehand(pool.chosen)), many
    yield "closed form, mixture of a part of the rows", closed_form(part), few
    yield "closed form, loo_error of a part of the rows", closed_form(one_kernel), many
    yield "closed form, mixture of all rows (no guarantee)", closed_form(LGCPClassifier()), few
    yield "closed form, loo_error of all rows (no guarantee)", closed_form(LGCPClassifier(selection="loo_error")), few
    yield "split conformal, kernel chosen beforehand", split_conformal(beforehand(pool.chosen_from_half)), many
    if find_spec("crepes") is None:
        console.print("crepes is left out: pip install 'coxfield[bench]' brings it")
        return
    yield "crepes, kernel chosen beforehand", by_crepes(beforehand(pool.chosen_from_half)), many
    yield "crepes, random forest", by_crepes(RandomForestClassifier(100, random_state=0)), few


@dataclass(frozen=True)
class Found:
    """One row per split and one column per coverage; what is by class has one more axis for the classes."""

    covered: np.ndarray
    expected: np.ndarray
    size: np.ndarray
    by_class: np.ndarray
    expected_by_class: np.ndarray

    @classmethod
    def of(cls, splits):
        """All splits, from lists of one entry per coverage."""
        return cls(*(np.array([[entry[k] for entry in split] for split in splits]) for k in range(5)))

    def farthest(self, *, per_class):
        """The difference to what is expected with the largest size, in standard errors: of all coverages and classes.

        Where every set must hold every class, there is no error and no difference.
        """
        difference = self.by_class - self.expected_by_class if per_class else self.covered - self.expected
        count = np.isfinite(difference).sum(axis=0)
        error = np.nanstd(difference, axis=0) / np.sqrt(np.maximum(count - 1, 1))
        scaled = np.nanmean(difference, axis=0) / np.where(error > 0, error, np.inf)
        return scaled.flat[np.abs(scaled).argmax()]


def judged(p, calibrating, codes):
    """For each coverage: shares covered and expected, the size of the sets, and both shares of each class."""
    total, found = calibrating + 1, []
    for coverage in COVERAGES:
        left_out = np.floor((1 - coverage) * total + 1e-9)  # whole numbers must not be missed by rounding
        kept = np.rint(p * total) > left_out
        covered = kept[np.arange(len(codes)), codes]
        own = [covered[codes == c].mean() if (codes == c).any() else np.nan for c in range(len(total))]
        expected = 1 - left_out / total
        found.append((covered.mean(), expected[codes].mean(), kept.sum(axis=1).mean(), own, expected))
    return found


def measure(pool, p_values, n_splits):
    """One `Found` for each kind of p-values."""
    splits = []
    for seed in range(n_splits):
        X, y, new, truth = pool.split(seed)
        codes = np.searchsorted(np.unique(y), truth)
        splits.append([judged(p, calibrating, codes) for p, calibrating in p_values(X, y, new)])
    return [Found.of(kind) for kind in zip(*splits, strict=True)]


def cell(values):
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{100 * values.mean():.2f} ± {100 * error:.2f}"


def coverage_table(pool, splits):
    sizes = f"{pool.n_train} training and {pool.n_test} test rows per split"
    table = Table(title=f"{pool.name}, {sizes}: share of test rows covered in per cent, and mean size of the sets")
    shown = *(f"{100 * c:g} %" for c in COVERAGES), "sizes", "farthest", "least class at 90 %"
    for heading in ("method", "splits", *shown):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for name, p_values, n_splits in methods(pool, splits):
        for title, found in zip((name, PER_CLASS), measure(pool, p_values, n_splits), strict=False):
            table.add_row(
                title,
                f"{n_splits:,}",
                *(cell(found.covered[:, k]) for k in range(len(COVERAGES))),
                ", ".join(f"{size:.3f}" for size in found.size.mean(axis=0)),
                f"{found.farthest(per_class=title == PER_CLASS):+.1f}",
                f"{100 * np.nanmean(found.by_class[:, 1], axis=0).min():.1f}",
            )
            expected = (f"{100 * value:.2f}" for value in found.expected.mean(axis=0))
            table.add_row("    expected exactly", "", *expected, "", "", "", style="dim")
    console.print(table)
    console.print("farthest: the largest difference to what is expected, in standard errors; per class, of all classes")


def speed(quick):
    n_train, n_test = (2000, 200) if quick else (20_000, 1000)
    X, y, Z = images(n_train, n_test, np.float32)
    clf = LGCPClassifier(RBF(2.0), selection=None).fit(X, y)
    clf.predict_proba(Z[:10])
    plain = seconds(lambda: clf.predict_proba(Z), 3, time.process_time)
    first = seconds(lambda: clf.predict_set(Z), 1, time.process_time)
    sets = seconds(lambda: clf.predict_set(Z), 3, time.process_time)
    per_class = seconds(lambda: clf.predict_set(Z, per_class=True), 3, time.process_time)
    show(
        f"Sets with a guarantee, {n_train:,} x {n_test:,} x 784, ten classes, float32: processor seconds",
        [
            Row("predict_proba", f"{plain:.2f} s"),
            Row("predict_set, leave-one-out at hand", f"{sets:.2f} s"),
            Row("predict_set, per class", f"{per_class:.2f} s"),
            Row("the first predict_set after fit", f"{first:.2f} s"),
            Row("predict_set / predict_proba", f"{sets / plain:.2f}", "at most 6"),
        ],
    )


def coverage(splits):
    for pool in pools():
        coverage_table(pool, splits)


def picture(path):
    """Draw where the sets of Synth are the same, at two coverages."""
    X, y, *_ = load_synth(return_X_y=True)
    clf = LGCPClassifier(0.3 * RBF(0.2), selection=None).fit(X, y)
    drawn = figure(11, 3)
    for ax, coverage in zip(drawn.subplots(1, 2), (0.8, 0.95), strict=True):
        plot_sets(clf, X, y, coverage, ax=ax, resolution=400)
    path.write_bytes(encode(drawn, path))


def run(quick=False, full=False):
    """Speed and coverage; with `full`, so many splits that it takes a quarter of an hour."""
    speed(quick)
    coverage((5, 2) if quick else (1000, 100) if full else (100, 5))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--picture", type=Path, help="draw the sets of Synth to this file instead")
    options = parser.parse_args()
    run(options.quick, full=True) if options.picture is None else picture(options.picture)

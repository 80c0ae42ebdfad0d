"""What the covariances of `LGCPClassifier` are worth beside other classifiers: error, log loss, ranks, time of a fit.

`python -m benchmarks.strength` runs every method on halves of real and made-up sets and prints one table. Records are
kept as JSON lines, so that a second run computes only what is missing. `--coins` measures labels that mean nothing.
"""

import argparse
import json
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table
from scipy.stats import rankdata
from sklearn.datasets import make_gaussian_quantiles, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks.harness import console
from benchmarks.many_rows import mixtures
from coxfield import LGCPClassifier
from coxfield.calibration import reliability
from coxfield.datasets import DatasetUnavailableError
from coxfield.datasets.fetch import data_folder
from coxfield.selection.mixture import bank as banks
from coxfield.selection.mixture import learn
from coxfield_paper.studies.data_sets import load
from coxfield_paper.studies.peers import logistic_regression, random_forest, support_vectors

MOST_TRAIN, MOST_TEST = 1000, 2000
PAPER = ("Synth", "Diabetes", "Banana", "BCI", "wine", "breast cancer", "digits", "satimage")
TABLES = ("australian", "bands", "bupa", "contraceptive", "heart", "ionosphere", "led7digit", "mammographic", "monk-2")
MORE_TABLES = ("phoneme", "sonar", "vehicle")
MIXED = ("crx", "german", "saheart", "tic-tac-toe")
METHODS = {
    "simple": lambda d: LGCPClassifier(bank="simple"),
    "wide": lambda d: LGCPClassifier(bank="wide"),
    "SVC": support_vectors,
    "random forest": lambda d: random_forest(0),
    "boosted trees": lambda d: HistGradientBoostingClassifier(random_state=0),
    "logistic": lambda d: logistic_regression(),
}
PARTS = {"wide without free weights": (learn, "FREE_ROWS"), "wide without relevance": (banks, "RELEVANT_ROWS")}


def squares(rng):
    """Ten squares of Hastie, Tibshirani and Friedman, section 10.1: whether the norm of ten normal numbers is large."""
    X = rng.normal(size=(2500, 10))
    return X, (np.square(X).sum(axis=1) > 9.34).astype(int)


def xor(d):
    def made(rng):
        X = rng.uniform(-1, 1, size=(2500, d))
        return X, ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)

    return made


def quantiles(n_classes):
    def made(rng):
        return make_gaussian_quantiles(
            n_samples=2500, n_features=5, n_classes=n_classes, random_state=rng.integers(1000)
        )

    return made


def interactions(rng):
    """Six columns of four levels each, one column per level: the class follows two pairs of them."""
    codes = rng.integers(4, size=(2500, 6))
    score = 2.0 * (codes[:, 0] == codes[:, 1]) - 2.0 * (codes[:, 2] == codes[:, 3])
    y = (score + rng.logistic(size=2500) * 0.3 > 0).astype(int)
    return np.eye(4)[codes].reshape(2500, -1), y


def parity(rng):
    """Three of six bits."""
    bits = rng.integers(2, size=(2500, 6))
    return bits.astype(float), bits[:, :3].sum(axis=1) % 2


def moons(rng):
    X, y = make_moons(2500, noise=0.2, random_state=rng.integers(1000))
    return np.hstack([X, rng.normal(size=(2500, 10))]), y


MADE = {
    "gq5, 2 classes": quantiles(2),
    "gq5, 3 classes": quantiles(3),
    "ten squares": squares,
    "XOR 5": xor(5),
    "XOR 10": xor(10),
    "interactions": interactions,
    "parity": parity,
    "moons, noise": moons,
}
SETS = (*PAPER, *TABLES, *MORE_TABLES, *MIXED, *MADE)


def tables_folder() -> Path:
    folder = data_folder()
    if folder is None:
        raise DatasetUnavailableError("name the folder of the tables in COXFIELD_DATA")
    return folder / "tables" if (folder / "tables").is_dir() else folder


def half(name: str, seed: int):
    """X_train, y_train, X_test, y_test; at most `MOST_TRAIN` and `MOST_TEST` rows."""
    if name in PAPER:
        X, y, Z, z = load(name, seed)
        rows = np.random.default_rng(seed).permutation(len(y))[:MOST_TRAIN]
        return X[rows], y[rows], Z[:MOST_TEST], z[:MOST_TEST]
    if name in MADE:
        X, y = MADE[name](np.random.default_rng(100 + seed))
        return X[:500], y[:500], X[500:], y[500:]
    X, y = (_mixed if name in MIXED else _numbers)(name)
    X, Z, y, z = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    return X[:MOST_TRAIN], y[:MOST_TRAIN], Z[:MOST_TEST], z[:MOST_TEST]


def _numbers(name: str):
    path = tables_folder() / f"{name}.npz"
    if not path.exists():
        raise DatasetUnavailableError(f"{path.name} is not there")
    with np.load(path) as arrays:
        return arrays["X"].astype(float), arrays["y"]


def _mixed(name: str):
    """A table with categories, one column per level."""
    import pandas as pd

    path = tables_folder() / f"{name}.csv.gz"
    if not path.exists():
        raise DatasetUnavailableError(f"{path.name} is not there")
    table = pd.read_csv(path)
    y = np.unique(table.pop("target").to_numpy(), return_inverse=True)[1]
    return pd.get_dummies(table).to_numpy(dtype=float), y


@dataclass(frozen=True)
class Records:
    """Measurements that are kept as JSON lines."""

    path: Path

    def all(self) -> list[dict]:
        """All of them."""
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def add(self, record: dict) -> None:
        """One more."""
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")


@contextmanager
def without(method: str):
    """Fits where too few rows are thought to be there for a part of the wide bank."""
    module, constant = PARTS.get(method, (None, ""))
    if module is None:
        yield
        return
    known = getattr(module, constant)
    setattr(module, constant, np.inf)
    try:
        yield
    finally:
        setattr(module, constant, known)


def measure(name: str, seed: int, method: str) -> dict:
    """Fit to one half and judge the other one."""
    X, y, Z, z = half(name, seed)
    classifier = METHODS["wide" if method in PARTS else method](X.shape[1])
    start = time.process_time()  # of the processor: others may use the machine
    with without(method):
        classifier.fit(X, y)
    fitted = time.process_time()
    found = classifier.predict_proba(Z)
    predicted = time.process_time()
    loss = log_loss(z, np.clip(found, 1e-15, 1), labels=classifier.classes_)
    wrong = 100 * float(np.mean(classifier.classes_[found.argmax(axis=1)] != z))
    ece = 100 * reliability(z, found, classifier.classes_).expected_calibration_error
    times = {"fit": fitted - start, "predict": predicted - fitted}
    more = {"support": int(classifier.n_support_)} if hasattr(classifier, "n_support_") else {}
    return {"set": name, "seed": seed, "method": method, "error": wrong, "log_loss": loss, "ece": ece, **times, **more}


def run_all(sets, halves: int, methods, records: Records) -> None:
    known = {(r["set"], r["seed"], r["method"]) for r in records.all()}
    for name in sets:
        for seed in range(1 if name in ("Synth", "Diabetes", "satimage") else halves):
            for method in methods:
                if (name, seed, method) not in known:
                    try:
                        records.add(measure(name, seed, method))
                    except DatasetUnavailableError as error:
                        console.print(f"{name} is left out: {error}")


def show_all(records: Records, methods) -> None:
    """A line per set: log loss and error of each method; then means, ranks and times."""
    found = {}
    for record in records.all():
        found.setdefault((record["set"], record["method"]), []).append(record)
    names = [name for name in SETS if all((name, method) in found for method in methods)]
    means = {
        key: np.array([[np.mean([r[key] for r in found[name, m]]) for m in methods] for name in names])
        for key in ("log_loss", "error", "fit", "ece")
    }
    table = Table(title="log loss / error in per cent, means over halves")
    table.add_column("set")
    for method in methods:
        table.add_column(method, justify="right")
    for i, name in enumerate(names):
        cells = [f"{a:.3f} / {b:.1f}" for a, b in zip(means["log_loss"][i], means["error"][i], strict=True)]
        table.add_row(name, *cells)
    table.add_section()
    averages = zip(means["log_loss"].mean(axis=0), means["error"].mean(axis=0), strict=True)
    table.add_row("mean", *(f"{a:.4f} / {b:.2f}" for a, b in averages))
    ranks = [rankdata(means[key].round(6), axis=1).mean(axis=0) for key in ("log_loss", "error")]
    table.add_row("average rank", *(f"{a:.2f} / {b:.2f}" for a, b in zip(*ranks, strict=True)))
    table.add_row("calibration error, %", *(f"{e:.2f}" for e in means["ece"].mean(axis=0)))
    table.add_row("fit, s (median)", *(f"{t:.2f}" for t in np.median(means["fit"], axis=0)))
    console.print(table)
    if "simple" in methods and "wide" in methods:
        a, b = (means["ece"][:, methods.index(m)] for m in ("simple", "wide"))
        worse = sorted(zip((b - a).round(1).tolist(), names, strict=True), reverse=True)[:3]
        console.print(f"calibration error of wide, less than simple's on {np.sum(b < a)} sets; most above it: {worse}")
        a, b = (means["fit"][:, methods.index(m)] for m in ("simple", "wide"))
        console.print(f"time of wide over simple: median {np.median(b / a):.1f}, largest {np.max(b / a):.1f}")


def times() -> None:
    """Processor time of a fit with each bank on one thread, and its ratio, from 500 rows to 10,000."""
    for name in ("mixtures", "gq5, 2 classes"):
        for n in (500, 2000, 10_000):
            X, y = mixtures(n) if name == "mixtures" else many(name, n)
            took = {}
            for of in ("simple", "wide"):
                start = time.process_time()
                clf = LGCPClassifier(bank=of, n_jobs=1).fit(X, y)
                took[of] = time.process_time() - start
            ratio = took["wide"] / took["simple"]
            console.print(
                f"{name}, {n:,} rows: simple {took['simple']:.1f} s, wide {took['wide']:.1f} s, ratio {ratio:.1f}; "
                f"{clf.n_support_} points with weights"
            )


def many(name: str, n: int):
    """So many rows of a made-up set, from several draws."""
    drawn = [MADE[name](np.random.default_rng(seed)) for seed in range(-(-n // 2500))]
    X, y = (np.concatenate(part)[:n] for part in zip(*drawn, strict=True))
    return X, y


def coins(draws: int, bank: str) -> None:
    """Labels thrown by a coin: how far the test log loss is from that of the class shares."""
    for n, d in ((60, 40), (200, 10), (1000, 10)):
        excess = []
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            X, y = rng.normal(size=(n, d)), rng.permutation(np.arange(n) % 2)
            found = LGCPClassifier(bank=bank).fit(X, y).predict_proba(rng.normal(size=(1000, d)))
            excess.append(-np.log(found).mean() - np.log(2))  # a new label is 0 or 1 with probability 1/2
        console.print(f"{bank}: coin labels, {n} x {d}: mean log loss {np.log(2) + np.mean(excess):.4f}, share .6931")


def pictures(folder: Path, records: Records) -> None:
    """Two pictures for the docs: points with free weights, and log losses of both banks."""
    from coxfield.plotting import figure

    X, y, Z, z = half("gq5, 2 classes", 0)
    drawn = figure(7.2, 3.4)
    for ax, bank in zip(drawn.subplots(1, 2, sharey=True), ("simple", "wide"), strict=True):
        clf = LGCPClassifier(bank=bank).fit(X, y)
        found, radius = clf.predict_proba(Z)[:, 1], np.linalg.norm(Z, axis=1)
        for c in (0, 1):
            ax.scatter(radius[z == c], found[z == c], s=4, color=f"C{c}", linewidths=0, label=f"class {c}")
        weights = sum((each.point_weights.sum(axis=0) for each in clf.kernel_.ladders if each.free), np.zeros(len(y)))
        some = np.flatnonzero(weights)
        if len(some):
            at = np.linalg.norm(X[some], axis=1), y[some] * 1.1 - 0.05
            ax.scatter(*at, s=10 * weights[some], facecolors="none", edgecolors="k", label="support")
        error = 100 * np.mean(clf.predict(Z) != z)
        ax.set(title=f"{bank}: {error:.1f} % wrong, {clf.n_support_} support points", xlabel="distance from the centre")
        ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="center right")
    drawn.axes[0].set_ylabel("probability of class 1")
    drawn.savefig(folder / "free_weights.png", dpi=150)
    found = {}
    for record in records.all():
        found.setdefault((record["set"], record["method"]), []).append(record["log_loss"])
    names = [name for name in SETS if (name, "simple") in found and (name, "wide") in found]
    a, b = (np.array([np.mean(found[name, bank]) for name in names]) for bank in ("simple", "wide"))
    order = np.argsort(b / a)
    drawn = figure(6.4, 5.4)
    ax = drawn.subplots()
    ax.barh(np.arange(len(names)), np.log2(b / a)[order], color=["C0" if r < 1 else "C3" for r in (b / a)[order]])
    ax.set_yticks(np.arange(len(names)), np.array(names)[order], fontsize=7)
    ax.set_xlabel("log2 of the log loss of wide over that of simple")
    ax.axvline(0, color="0.3", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
    drawn.savefig(folder / "wide_and_simple.png", dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), help=f"also {list(PARTS)}")
    parser.add_argument("--halves", type=int, default=2)
    parser.add_argument("--records", type=Path, default=Path("strength.jsonl"))
    parser.add_argument("--coins", type=int, default=0, metavar="DRAWS")
    parser.add_argument("--times", action="store_true", help="of fits from 500 to 10,000 rows")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="draw pictures of records that are there")
    options = parser.parse_args()
    if options.pictures:
        pictures(options.pictures, Records(options.records))
    elif options.times:
        times()
    elif options.coins:
        for of in ("simple", "wide"):
            coins(options.coins, of)
    else:
        run_all(options.sets, options.halves, options.methods, Records(options.records))
        show_all(Records(options.records), options.methods)

"""Ordinary tables: error and log loss of the default on raw frames beside one-hot pipelines and trees.

`python -m benchmarks.tables [--halves 10] [--blanks] [--importance] [--only crx german] [--most 2000]`. The
tables are those of the folder `tables` in the folder that `COXFIELD_DATA` names, or of that folder itself: `*.npz` with
X and y, and `*.csv` or `*.csv.gz` with the class in `target` or `species`. Halves are stratified; half number k is
drawn with seed k.
"""

import argparse
import os
import time
import warnings
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import rankdata, spearmanr
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.harness import Row, console, seconds, show
from coxfield import LGCPClassifier

OURS, ONE_HOT, INDICATED = "LGCPClassifier()", "one-hot, LGCPClassifier()", "one-hot, indicators, LGCPClassifier()"
EXPLAINED = ("bupa", "crx", "german")
BLANKED = ("bupa", "crx", "german", "vehicle")
PEERS = ("lightgbm", "catboost")
SHARES = (0.1, 0.3, 0.5)
LEAST = 1e-6  # a probability: trees say 0


def folder():
    """Where the tables are; None if nobody has said it."""
    given = os.environ.get("COXFIELD_DATA")
    return None if given is None else next((p for p in (Path(given) / "tables", Path(given)) if p.is_dir()), None)


def table(path, most):
    """Frame and classes of a table; of a long one, some rows that are drawn at random."""
    if path.suffix == ".npz":
        content = np.load(path, allow_pickle=False)
        X, y = pd.DataFrame(content["X"]).rename(columns=str), content["y"]
    else:
        rows = pd.read_csv(path)
        target = "target" if "target" in rows else "species"
        X, y = rows.drop(columns=target), rows[target].to_numpy()
    if len(y) > most:
        X, _, y, _ = train_test_split(X, y, train_size=most, stratify=y, random_state=0)
    return X.reset_index(drop=True), y


def words(X):
    """Names of columns that are not numbers."""
    return [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]


def encoded(classifier, *, indicators=False, scaled=False):
    """The usual pipeline: one-hot columns, blanks filled in."""
    fill = [SimpleImputer(strategy="median", add_indicator=indicators), *([StandardScaler()] if scaled else [])]
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (make_pipeline(*fill), make_column_selector(dtype_include="number")),
        (one_hot, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, classifier)


def methods(X):
    """Classifiers by name, for a frame."""
    found = {
        OURS: LGCPClassifier(),
        ONE_HOT: encoded(LGCPClassifier()),
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
        "random forest": encoded(RandomForestClassifier(300, random_state=0)),
        "logistic regression": encoded(LogisticRegression(max_iter=2000), scaled=True),
    }
    if X.select_dtypes("number").isna().any().any():
        found[INDICATED] = encoded(LGCPClassifier(), indicators=True)
    return found | boosted(X)


def boosted(X):
    """The boosted trees that are installed: LightGBM and CatBoost, with their defaults."""
    found = {}
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        found["LightGBM"] = LGBMClassifier(random_state=0, verbose=-1, n_jobs=1)
    if find_spec("catboost"):
        from catboost import CatBoostClassifier

        options = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
        found["CatBoost"] = CatBoostClassifier(random_seed=0, cat_features=words(X), **options)
    return found


def as_asked(X, name):
    """The frame as a method wants it: trees ask for the type for categories, CatBoost for words in place of blanks."""
    if name in ("HistGradientBoosting", "LightGBM"):
        return X.astype(dict.fromkeys(words(X), "category"))
    return X.fillna(dict.fromkeys(words(X), "blank")) if name == "CatBoost" else X


def losses(classifier, X, y, train, test):
    """Error and log loss on the test rows."""
    probabilities = classifier.fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])
    codes = np.searchsorted(classifier.classes_, y[test])
    of_class = np.clip(probabilities[np.arange(len(test)), codes], LEAST, 1)
    return float(np.mean(probabilities.argmax(axis=1) != codes)), float(-np.log(of_class).mean())


def measured(X, y, halves, names=None):
    """Mean error and log loss of each method."""
    found = defaultdict(list)
    for half in range(halves):
        train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=half)
        for name, classifier in methods(X).items():
            if names is None or name in names:
                found[name].append(losses(classifier, as_asked(X, name), y, train, test))
    return {name: np.mean(values, axis=0) for name, values in found.items()}


def blanked(X, y, share, rng, *, by_value):
    """The frame without some cells: drawn at random, or, with `by_value`, the largest of each column more often."""
    found = X.copy()
    for name in X:
        order = np.argsort(np.argsort(X[name].to_numpy(), kind="stable")) / len(X)
        chance = np.clip(2 * share * order, 0, 0.95) if by_value else share
        blank = rng.random(len(X)) < chance
        found[name] = X[name].astype(object if name in words(X) else float).mask(blank)
    return found


def ratio_rows(results):
    """How the raw frame compares with the best of our one-hot pipelines, and average ranks in log loss."""
    ratios, ranks = {}, defaultdict(list)
    for name, found in results.items():
        best = min(found[one][1] for one in (ONE_HOT, INDICATED) if one in found)
        ratios[name] = found[OURS][1] / best
        kinds = [kind for kind in found if kind not in (ONE_HOT, INDICATED)]
        for kind, rank in zip(kinds, rankdata([found[kind][1] for kind in kinds]), strict=True):
            ranks[kind].append(rank)
    worst = max(ratios, key=ratios.get)
    mean = np.exp(np.mean(np.log(list(ratios.values()))))
    rows = [
        Row("log loss / best of our one-hot pipelines, on average", f"{mean:.3f}", "at most 1.02"),
        Row(f"the same, largest: {worst}", f"{ratios[worst]:.3f}", "at most 1.05"),
    ]
    order = sorted(ranks, key=lambda kind: np.mean(ranks[kind]))
    return rows + [Row(f"average rank in log loss: {kind}", f"{np.mean(ranks[kind]):.2f}") for kind in order]


def shown(title, found):
    """Print error and log loss of each method on a table."""
    show(title, [Row(name, f"{100 * error:5.1f} %  {loss:.3f}") for name, (error, loss) in found.items()])


def importance(X, y, half):
    """Rank correlation of `feature_importance` with permutation importance on test rows, and what both cost."""
    train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=half)
    clf = LGCPClassifier().fit(X.iloc[train], y[train])
    ours = clf.feature_importance()["importance"]
    theirs = permutation_importance(clf, X.iloc[test], y[test], scoring="neg_log_loss", n_repeats=5, random_state=0)
    cost, of_loo = (seconds(work, 5, time.process_time) for work in (clf.feature_importance, clf.loo_predict_proba))
    return spearmanr(ours, theirs.importances_mean).statistic, cost / of_loo


def run(quick=False, halves=3, only=None, most=2000, blanks=False, importance_too=False):
    warnings.filterwarnings("ignore", module="sklearn")
    if folder() is None:
        console.print("COXFIELD_DATA names no folder, so tables are left out")
        return
    for package in PEERS:
        if find_spec(package) is None:
            console.print(f"{package} is not installed, so it is left out: pip install 'coxfield[bench]'")
    paths = {
        path.name.split(".")[0]: path for path in sorted(folder().iterdir()) if path.suffix in (".npz", ".csv", ".gz")
    }
    halves, most = (1, 300) if quick else (halves, most)
    if blanks:
        _with_blanks({name: paths[name] for name in only or BLANKED if name in paths}, halves, most)
        return
    if importance_too:
        for name in only or EXPLAINED:
            found = np.mean([importance(*table(paths[name], most), half) for half in range(halves)], axis=0)
            rows = [Row("rank correlation with permutation importance on test rows", f"{found[0]:.2f}")]
            show(f"{name}: importance", [*rows, Row("cost, in passes of leave-one-out", f"{found[1]:.1f}", "a few")])
        return
    results = {}
    for name in only or paths:
        X, y = table(paths[name], most)
        results[name] = measured(X, y, halves)
        title = f"{name}, {len(y)} x {X.shape[1]}, {len(words(X))} of words, {int(X.isna().sum().sum())} blanks"
        shown(title, results[name])
    mixed = {name: found for name, found in results.items() if paths[name].suffix != ".npz"}
    for title, some in (("Tables with words", mixed), ("All tables", results)):
        if some:
            show(f"{title}: {len(some)}, {halves} halves each", ratio_rows(some))


def _with_blanks(paths, halves, most):
    """Cells removed at random, and cells removed because of their value."""
    for name, path in paths.items():
        X, y = table(path, most)
        cases = [(share, False) for share in SHARES] + [(0.3, True)]
        for share, by_value in cases:
            holes = blanked(X, y, share, np.random.default_rng(0), by_value=by_value)
            why = "depending on their value" if by_value else "at random"
            shown(f"{name}, {share:.0%} of the cells removed {why}", measured(holes, y, halves))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--halves", type=int, default=3)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--most", type=int, default=2000, help="rows of a table at most")
    parser.add_argument("--blanks", action="store_true", help="cells removed, in place of the tables as they are")
    parser.add_argument(
        "--importance", action="store_true", dest="importance_too", help="what columns are worth, instead"
    )
    run(**vars(parser.parse_args()))

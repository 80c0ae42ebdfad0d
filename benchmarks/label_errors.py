"""Finding wrong labels: `label_quality` beside cleanlab, on labels of which a tenth was changed."""

import argparse
import time
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.harness import console
from coxfield import LGCPClassifier
from coxfield.datasets import DatasetUnavailableError, fetch_mnist, load_synth
from coxfield.estimators.reasons import class_margins
from coxfield.plotting import encode, figure
from coxfield.plotting.guaranteed_sets import plot_label_quality
from coxfield_paper.studies.data_sets import load

SHARE = 0.1  # of the labels are changed
SEEDS = 3
FOLDS = 5
NEIGHBOURS = (5, 10)  # the better one counts
NOISE = ("random", "nearest")
DEFAULT, KNN = "LGCPClassifier()", "cleanlab, k-NN"


def first_images():
    data = fetch_mnist()
    return data.X_train[:10_000].astype(np.float32) / np.float32(255), data.y_train[:10_000]


def data_sets(full):
    """Name, points, classes, and the number of seeds."""
    if not full:
        yield ("digits", *load_digits(return_X_y=True), 1)
        return
    obtain = {name: lambda name=name: load(name)[:2] for name in ("pendigits", "satimage")}
    for name, get in (obtain | {"MNIST": first_images}).items():
        try:
            yield (name, *get(), 1 if name == "MNIST" else SEEDS)
        except DatasetUnavailableError as error:
            console.print(f"{name} is left out: {error}")


def change_labels(X, y, noise, rng):
    """Labels of which a tenth is wrong, and which of them are.

    A label becomes another one at random, or the label of the nearest point of another class.
    """
    labels, rows, classes = y.copy(), rng.choice(len(y), int(SHARE * len(y)), replace=False), np.unique(y)
    for label in classes:
        own, others = rows[y[rows] == label], np.flatnonzero(y != label)
        if noise == "random":
            labels[own] = rng.choice(classes[classes != label], size=len(own))
        elif len(own):
            near = NearestNeighbors(n_neighbors=1).fit(X[others]).kneighbors(X[own], return_distance=False)[:, 0]
            labels[own] = y[others[near]]
    return labels, labels != y


def ours(selection):
    """The classifier, and doubt by its `label_quality`."""

    def doubt(X, labels):
        clf = LGCPClassifier(selection=selection).fit(X, labels)
        return clf, -clf.label_quality()["rank"]

    return doubt


def theirs(model):
    """Doubt by cleanlab, from probabilities of five-fold cross validation."""
    from cleanlab.rank import get_label_quality_scores

    def doubt(X, labels):
        probabilities = cross_val_predict(model, X, labels, cv=FOLDS, method="predict_proba")
        return None, -get_label_quality_scores(labels, probabilities, method="self_confidence")

    return doubt


def methods():
    """Name -> functions of points and labels; of several, the one that finds most counts."""
    found = {
        DEFAULT: [ours("mixture")],
        'LGCPClassifier, "loo_error"': [ours("loo_error")],
    }
    if find_spec("cleanlab") is None:
        console.print("cleanlab is left out: pip install 'coxfield[bench]' brings it")
        return found
    regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return found | {
        KNN: [theirs(KNeighborsClassifier(k)) for k in NEIGHBOURS],
        "cleanlab, logistic regr.": [theirs(regression)],
        "cleanlab, random forest": [theirs(RandomForestClassifier(random_state=0))],
    }


def judge(wrong, doubt):
    """Average precision and area under the ROC curve."""
    return average_precision_score(wrong, doubt), roc_auc_score(wrong, doubt)


def measure(doubt, X, labels, wrong):
    """Average precision, area, seconds of processor time, and the classifier."""
    start = time.process_time()
    clf, found = doubt(X, labels)
    spent = time.process_time() - start
    return (*judge(wrong, found), spent, clf)


def other_scores(clf, wrong):
    """How well the same fit would do with other scores: name -> average precision and area."""
    rows, codes, logs = np.arange(len(wrong)), clf.y_fit_, clf._loo_scores().log_probabilities
    scores = {
        "probability of the label": logs,  # the logarithm has the same order
        "margin of probabilities": class_margins(np.exp(logs)),
        "margin of log probabilities": class_margins(logs),
    }
    return {name: judge(wrong, -values[rows, codes]) for name, values in scores.items()}


def compare(X, y, noise, seeds, chosen):
    """Means over seeds: of each method, and of each score of the default."""
    results, scores = defaultdict(list), defaultdict(list)
    for seed in range(seeds):
        labels, wrong = change_labels(X, y, noise, np.random.default_rng(seed))
        for name, variants in chosen.items():
            *figures, clf = max((measure(doubt, X, labels, wrong) for doubt in variants), key=lambda found: found[0])
            results[name].append(figures)
            for score, figures in other_scores(clf, wrong).items() if name == DEFAULT else ():
                scores[score].append(figures)
    return tuple({name: np.mean(all_, axis=0) for name, all_ in kind.items()} for kind in (results, scores))


def table(title, what, rows, headings):
    """A table with one line per row of figures."""
    drawn = Table(title=title, title_justify="left")
    for heading in ("data", "noise", what):
        drawn.add_column(heading, no_wrap=True)
    for heading in headings:
        drawn.add_column(heading, justify="right")
    for data, noise, name, figures in rows:
        shown = [f"{figure:.3f}" for figure in figures[:2]] + [f"{figure:.1f}" for figure in figures[2:]]
        drawn.add_row(data, noise, name, *shown)
    console.print(drawn)


def run(quick=False, full=False):
    """Digits of scikit-learn; with `full`, the larger sets instead, which takes half an hour."""
    chosen, all_methods, all_scores = methods(), [], []
    for data, X, y, seeds in data_sets(full and not quick):
        for noise in NOISE:
            results, scores = compare(X, y, noise, seeds, chosen)
            all_methods += [(data, noise, name, figures) for name, figures in results.items()]
            all_scores += [(data, noise, name, figures) for name, figures in scores.items()]
    show_tables(all_methods, all_scores)


def show_tables(all_methods, all_scores):
    headings = ("AP", "AUC")
    title = (
        f"Finding changed labels, {100 * SHARE:.0f} % of all: average precision, area under the\n"
        f"ROC curve and processor seconds, means over seeds; k-NN has the better k of {NEIGHBOURS}"
    )
    table(title, "method", all_methods, (*headings, "seconds"))
    table(f"What to rank by: scores of {DEFAULT}", "score", all_scores, headings)


def picture(path):
    """Draw doubtful labels of Synth, of which 12 were changed, and of digits as they are."""
    X, y, *_ = load_synth(return_X_y=True)
    changed = np.random.default_rng(0).choice(len(y), 12, replace=False)
    y[changed] = 1 - y[changed]
    drawn = figure(11, 4.6)
    left, right = drawn.subplots(1, 2)
    synth = LGCPClassifier().fit(X, y)
    ranks = sorted(synth.label_quality()["rank"][changed].tolist())
    console.print(f"Synth: ranks of the 12 changed labels among {len(y)}, from 0: {ranks}")
    plot_label_quality(synth, ax=left)
    plot_label_quality(LGCPClassifier().fit(*load_digits(return_X_y=True)), ax=right)
    path.write_bytes(encode(drawn, path))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data, to see that everything runs")
    parser.add_argument("--picture", type=Path, help="draw doubtful labels to this file instead")
    options = parser.parse_args()
    run(options.quick, full=True) if options.picture is None else picture(options.picture)

"""Few labels: whole fits of the semi-supervised classifier, and predictions from soft labels beside hard ones.

`python -m benchmarks.few_labels tables` compares on tables, and takes some minutes. Those that scikit-learn does not
have are read from the folder COXFIELD_DATA. A number after it says how many draws. Likewise `units` multiplies one
column by a million, `calibration` compares errors to expect with errors, `shares` states class shares, and `questions`
counts the classes that `suggest` meets from no label on. `laplace` compares with Laplace learning on the digits, and
needs the package GraphLearning. `helix` compares with the paper's cut on the double helix.
"""

import csv
import sys
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier

from benchmarks.harness import Row, console, images, seconds, show
from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.calibration import reliability
from coxfield.datasets import DatasetUnavailableError, fetch_mnist
from coxfield.datasets.fetch import require
from coxfield.estimators.trivial import TrivialLabellingWarning


def some_labels(truth, per_class, rng):
    """-1 for all but a few points of each class."""
    y = np.full(len(truth), -1)
    for label in np.unique(truth):
        rows = rng.choice(np.flatnonzero(truth == label), per_class, replace=False)
        y[rows] = label
    return y


def run(quick=False):
    rng = np.random.default_rng(0)
    X, truth = load_digits(return_X_y=True)
    X, truth = (X[:300], truth[:300]) if quick else (X, truth)
    y = some_labels(truth, 5, rng)
    fits = {
        "SLGCPClassifier()": SLGCPClassifier(),
        "SLGCPClassifier(RBF(1.0), inference='map'), the paper's": SLGCPClassifier(RBF(1.0), inference="map"),
        "LabelSpreading(kernel='knn')": LabelSpreading(kernel="knn"),
    }
    times = {name: seconds(lambda one=one: one.fit(X, y), repeats=1) for name, one in fits.items()}
    wrong = {name: np.mean(one.transduction_ != truth, where=y < 0) for name, one in fits.items()}
    show(
        f"Few labels, scikit-learn's digits, {len(X):,} x 64, {np.sum(y >= 0)} labels",
        [Row(name, f"{times[name]:.2g} s, error {100 * wrong[name]:.1f} %") for name in fits],
    )
    _soft_labels(quick, rng)


def _soft_labels(quick, rng):
    n_train, n_test = (2000, 500) if quick else (20_000, 5000)
    X, y, Z = images(n_train, n_test, np.float64)
    soft = LGCPClassifier(RBF(1.0), selection=None)
    soft._fit_distributions(X, rng.dirichlet(np.ones(10), size=len(X)), np.arange(10))
    hard = LGCPClassifier(RBF(1.0), selection=None).fit(X, y)
    rows = []
    for name, columns in (("784 features", slice(None)), ("64 features", slice(300, 364))):
        hard.fit(X[:, columns], y)
        soft._fit_distributions(X[:, columns], rng.dirichlet(np.ones(10), size=len(X)), np.arange(10))
        queries = Z[:, columns]
        times = [seconds(lambda one=one, Q=queries: one.predict_proba(Q), repeats=5) for one in (hard, soft)]
        rows += [
            Row(f"{name}: hard labels", f"{times[0]:.2f} s"),
            Row(f"{name}: soft labels", f"{times[1]:.2f} s"),
            Row(f"{name}: soft / hard", f"{times[1] / times[0]:.2f}", "at most 1.2"),
        ]
    show(f"predict_proba from soft labels, {n_train:,} x {n_test:,}, 10 classes, float64", rows)


PER_CLASS, DRAWS = (2, 5, 10, 20), 10
METHODS = ("as it is", "standardised", "labelled rows alone", "LabelSpreading", "LabelPropagation", "self-training")


def penguins():
    with require("penguins.csv", "penguins").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["bill_length_mm"] not in ("", "NA")]
    names = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
    X = np.array([[float(row[name]) for name in names] for row in rows])
    return X, np.unique([row["species"] for row in rows], return_inverse=True)[1]


def stored(name, rows=2000):
    with np.load(require(f"{name}.npz", name)) as arrays:
        X, y = (arrays[f"{part}_train"] if f"{part}_train" in arrays else arrays[part] for part in "Xy")
    some = np.random.default_rng(0).permutation(len(X))[:rows]
    return X[some].astype(float), y[some].astype(int)


TABLES = {
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "iris": lambda: load_iris(return_X_y=True),
    "penguins": penguins,
    **{name: lambda name=name: stored(name) for name in ("satimage", "vehicle", "heart", "australian", "ionosphere")},
}


def tables(draws=DRAWS):
    """Error in per cent and log loss on tables, by number of labels per class."""
    for name, load in TABLES.items():
        try:
            X, truth = load()
        except DatasetUnavailableError as error:
            console.print(f"{name} is left out: {error}")
            continue
        for per_class in PER_CLASS:
            found = on_table(X, truth, per_class, draws)
            rows = [Row(method, f"{error:.1f} % wrong, log loss {loss:.3f}") for method, (error, loss) in found.items()]
            show(f"{name}, {per_class} labels per class, mean of {draws} draws", rows)


def on_table(X, truth, per_class, draws):
    """Mean error and log loss of each method."""
    Z = StandardScaler().fit_transform(X)
    raw, scaled = SLGCPClassifier(classes=[]), SLGCPClassifier(classes=[])
    nothing = np.full(len(truth), -1)
    raw.fit(X, nothing)
    scaled.fit(Z, nothing)
    found = {method: [] for method in METHODS}
    for seed in range(draws):
        y = some_labels(truth, per_class, np.random.default_rng(seed))
        blank = y < 0
        alone = LGCPClassifier().fit(X[~blank], truth[~blank])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some rows are reached by no label
            others = [
                LabelSpreading(kernel="knn").fit(Z, y).label_distributions_[blank],
                LabelPropagation(kernel="knn", max_iter=5000).fit(Z, y).label_distributions_[blank],
                SelfTrainingClassifier(LogisticRegression(max_iter=1000)).fit(Z, y).predict_proba(Z[blank]),
            ]
        own = [clf.relabel(y).label_distributions_[blank] for clf in (raw, scaled)]
        for method, p in zip(METHODS, [*own, alone.predict_proba(X[blank]), *others], strict=True):
            p = np.maximum(np.nan_to_num(p), 1e-6)
            likely = (p / p.sum(axis=1, keepdims=True))[np.arange(len(p)), truth[blank]]
            found[method].append((100 * np.mean(p.argmax(axis=1) != truth[blank]), -np.log(likely).mean()))
    return {method: np.mean(values, axis=0) for method, values in found.items()}


def published(name):
    with np.load(require(f"ssl_{name}.npz", name)) as arrays:
        return arrays["X"].astype(float), arrays["y"].astype(int)


def some_images(count=10_000):
    data = fetch_mnist()
    rows = np.random.default_rng(0).permutation(len(data.X_train))[:count]
    return data.X_train[rows].astype(np.float32) / np.float32(255), data.y_train[rows].astype(int)


PICTURES = {
    "digits": lambda: load_digits(return_X_y=True),
    "USPS": lambda: published("usps"),
    "MNIST 10,000": some_images,
}


def prepared(X):
    """A classifier without labels, so that they can be given by `relabel`."""
    return SLGCPClassifier(classes=[], random_state=0).fit(X, np.full(len(X), -1))


def mean_of(values, digits=1):
    """Mean and standard error."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.{digits}f}"


def draws_of(truth, per_class, draws):
    return (some_labels(truth, per_class, np.random.default_rng(seed)) for seed in range(draws))


def error_of(clf, truth, y):
    return 100 * np.mean(clf.transduction_ != truth, where=y < 0)


def units(draws=DRAWS, per_class=10):
    """Error where one column, drawn anew each time, is a million times as large."""
    for name in ("wine", "heart", "satimage", "digits"):
        X, truth = (TABLES | PICTURES)[name]()
        clf, plain, ruined = prepared(X), [], []
        varying = np.flatnonzero(np.ptp(X, axis=0) > 0)
        for seed, y in enumerate(draws_of(truth, per_class, draws)):
            other = X.copy()
            other[:, np.random.default_rng(seed).choice(varying)] *= 1e6
            plain.append(error_of(clf.relabel(y), truth, y))
            ruined.append(error_of(SLGCPClassifier().fit(other, y), truth, y))
        rows = [
            Row("as it is", f"{mean_of(plain)} %"),
            Row("one column times 1e6", f"{mean_of(ruined)} %"),
            Row("difference", mean_of(np.subtract(ruined, plain)), f"at most {2.0 if name == 'digits' else 0.5}"),
        ]
        show(f"{name}, {per_class} labels per class, {draws} draws", rows)


def calibration(draws=DRAWS):
    """Errors to expect, one minus the largest probability, beside errors; and the expected calibration error."""
    for name, load in PICTURES.items():
        X, truth = load()
        clf, rows = prepared(X), []
        for per_class in (1, 2, 5, 10):
            found = []
            for y in draws_of(truth, per_class, draws):
                p = clf.relabel(y).label_distributions_[y < 0]
                judged = reliability(truth[y < 0], p, clf.classes_)
                doubt = 100 * (1 - p.max(axis=1)).mean()
                found.append((doubt, error_of(clf, truth, y), judged.expected_calibration_error, judged.log_loss))
            expected, error, ece, loss = np.mean(found, axis=0)
            text = f"{expected:.1f} expected, {error:.1f} % wrong: {expected / error:.2f}"
            text += f"; ECE {ece:.3f}, log loss {loss:.3f}"
            rows.append(Row(f"{per_class} labels per class", text, "0.7 to 1.3"))
        show(f"{name}: errors to expect, mean of {draws} draws", rows)


def shares(draws=DRAWS):
    """Errors with class shares that are not stated, right, and twice too large for one class."""
    for name, load in PICTURES.items():
        X, truth = load()
        clf, rows = prepared(X), []
        right = dict(enumerate(np.bincount(truth) / len(truth)))
        for per_class in (1, 5):
            for what, stated in (("no", None), ("right", right), ("wrong", right | {0: 2 * right[0]})):
                clf.set_params(class_prior=stated)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # wrong shares are told of
                    wrong = [error_of(clf.relabel(y), truth, y) for y in draws_of(truth, per_class, draws)]
                rows.append(Row(f"{per_class} labels per class, {what} shares", f"{mean_of(wrong)} %"))
        show(f"{name}: class shares, {draws} draws", rows)


def laplace(draws=100):
    """Errors on the digits beside Laplace learning of the package GraphLearning, over many draws."""
    import graphlearning

    X, truth = load_digits(return_X_y=True)
    found = graphlearning.weightmatrix.knnsearch(X, 11, method="brute")  # each point is its own first neighbour
    graph = graphlearning.weightmatrix.knn(X, 10, knn_data=found)
    clf, rows = prepared(X), []

    def their_error(y):
        known = np.flatnonzero(y >= 0)
        labels = graphlearning.ssl.laplace(graph).fit_predict(known, y[known])
        return 100 * np.mean(labels != truth, where=y < 0)

    for per_class in (1, 5, 10):
        given = list(draws_of(truth, per_class, draws))
        ours = [error_of(clf.relabel(y), truth, y) for y in given]
        theirs = [their_error(y) for y in given]
        rows += [
            Row(f"{per_class} labels per class, SLGCPClassifier()", f"{mean_of(ours, 2)} %"),
            Row(f"{per_class} labels per class, Laplace learning", f"{mean_of(theirs, 2)} %"),
            Row(f"{per_class} labels per class, difference", mean_of(np.subtract(ours, theirs), 2)),
        ]
    show(f"digits, {draws} draws", rows)


def helix(draws=30, labels=20):
    """Errors on the double helix of the paper: the default beside the paper's cut, over many draws."""
    from coxfield_paper.studies.few_labels_sets import draw
    from coxfield_paper.studies.paper_methods import paper_slgcp

    found = {"SLGCPClassifier()": [], "the paper's cut": []}
    for seed in range(draws):
        X, truth, y = draw("double helix", labels, seed)
        for name, clf in zip(found, (SLGCPClassifier(), paper_slgcp()), strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TrivialLabellingWarning)
                found[name].append(error_of(clf.fit(X, y), truth, y))
    rows = [Row(name, f"{mean_of(errors)} %, median {np.median(errors):.1f} %") for name, errors in found.items()]
    show(f"double helix, {labels} labels, {draws} draws", rows)


def questions(draws=DRAWS, asked=(10, 20, 40)):
    """How many classes the first questions meet, before there is any label."""
    for name in ("digits", "satimage", "pendigits"):
        X, truth = PICTURES[name]() if name in PICTURES else stored(name)
        clf, met = prepared(X), {"suggest": [], "random": [], "farthest first": []}
        Z = StandardScaler().fit_transform(X)
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            orders = {
                "suggest": clf.set_params(random_state=seed).suggest(max(asked)),
                "random": rng.permutation(len(X)),
                "farthest first": farthest_first(Z, max(asked), rng),
            }
            for what, order in orders.items():
                met[what].append([len(np.unique(truth[order[:n]])) for n in asked])
        rows = [
            Row(
                what, ", ".join(f"{mean:.1f} after {n}" for mean, n in zip(np.mean(counts, axis=0), asked, strict=True))
            )
            for what, counts in met.items()
        ]
        show(f"{name}: classes met, of {len(np.unique(truth))}, {draws} draws", rows)


def farthest_first(X, count, rng):
    """Rows, each as far as possible from those before it; the first is drawn."""
    chosen = [int(rng.integers(len(X)))]
    nearest = np.full(len(X), np.inf)
    while len(chosen) < count:
        nearest = np.minimum(nearest, ((X - X[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int(nearest.argmax()))
    return np.array(chosen)


if __name__ == "__main__":
    parts = {one.__name__: one for one in (tables, units, calibration, shares, laplace, helix, questions)}
    parts[sys.argv[1]](*map(int, sys.argv[2:])) if len(sys.argv) > 1 else run()

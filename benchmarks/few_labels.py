"""Few labels: whole fits of the semi-supervised classifier, and predictions from soft labels beside hard ones."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.gaussian_process.kernels import RBF
from sklearn.semi_supervised import LabelSpreading

from benchmarks.harness import Row, images, seconds, show
from coxfield import LGCPClassifier, SLGCPClassifier


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


if __name__ == "__main__":
    run()

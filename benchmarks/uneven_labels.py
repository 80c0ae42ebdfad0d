"""Few labels, and more of some classes than of others: `SLGCPClassifier()` beside scikit-learn's `LabelSpreading`.

`python -m benchmarks.uneven_labels` takes half a minute, and is no part of `make bench`.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.semi_supervised import LabelSpreading

from benchmarks.harness import Row, show
from coxfield import SLGCPClassifier

PICTURES, DRAWS, MORE = 800, 10, 5
METHODS = {
    "SLGCPClassifier()": SLGCPClassifier,
    "LabelSpreading, 7 neighbours, alpha 0.99": lambda: LabelSpreading(kernel="knn", alpha=0.99, max_iter=200),
}


def run(quick=False):
    X, truth = (part[:PICTURES] for part in load_digits(return_X_y=True))
    table = []
    for richer in (0, 1, 2, 5, 10):
        draws = [given(truth, richer, np.random.default_rng(seed)) for seed in range(2 if quick else DRAWS)]
        for name, method in METHODS.items():
            wrong = [np.mean(method().fit(X, y).transduction_ != truth, where=y < 0) for y in draws]
            error = np.std(wrong, ddof=1) / np.sqrt(len(wrong))
            table.append(
                Row(f"{richer} digits with six labels: {name}", f"{100 * np.mean(wrong):.1f} ± {100 * error:.1f}")
            )
    show(f"{PICTURES} digits, one label each, and {MORE} more of some digits: error in per cent", table)


def given(truth, richer, rng):
    """One label of each class, and more of some classes, drawn at random."""
    y = np.full(len(truth), -1)
    rows = [rng.permutation(np.flatnonzero(truth == digit)) for digit in range(10)]
    counts = np.ones(10, int)
    counts[rng.choice(10, richer, replace=False)] += MORE
    for digit, count in enumerate(counts.tolist()):
        y[rows[digit][:count]] = digit
    return y


if __name__ == "__main__":
    run()

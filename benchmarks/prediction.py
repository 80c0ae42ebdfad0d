"""Prediction: class sums beside a bare blocked matrix product and scikit-learn's brute-force 1-NN."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.harness import Row, images, peak_megabytes, seconds, show
from coxfield import LGCPClassifier


def bare_product(X, Z, rows=1000):
    """Only the matrix products, block by block, with the BLAS's own threads."""
    for start in range(0, len(Z), rows):
        Z[start : start + rows] @ X.T


def run(quick=False):
    n_train, n_test = (6000, 1000) if quick else (60_000, 10_000)
    X, y, Z = images(n_train, n_test, np.float32)
    clf = LGCPClassifier(RBF(0.75), selection=None).fit(X, y)
    neighbour = KNeighborsClassifier(1, algorithm="brute").fit(X, y)
    clf.predict_proba(Z[:10])
    bare = seconds(lambda: bare_product(X, Z), repeats=3)
    ours = seconds(lambda: clf.predict_proba(Z), repeats=3)
    nearest = seconds(lambda: neighbour.predict(Z), repeats=2)
    memory = peak_megabytes(lambda: clf.predict_proba(Z))
    show(
        f"Prediction, {n_train:,} x {n_test:,} x 784, float32",
        [
            Row("bare blocked matrix product", f"{bare:.2f} s"),
            Row("LGCPClassifier.predict_proba", f"{ours:.2f} s"),
            Row("scikit-learn 1-NN, brute force", f"{nearest:.2f} s"),
            Row("predict_proba / bare product", f"{ours / bare:.2f}", "at most 1.4"),
            Row("1-NN / predict_proba", f"{nearest / ours:.2f}", "at least 1.8"),
            Row("peak extra memory of predict_proba", f"{memory:.0f} MB", "below 1000 MB"),
        ],
    )


if __name__ == "__main__":
    run()

"""Parameter learning: one gradient of the pseudo-likelihood beside one pass of leave-one-out class sums."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from benchmarks.harness import Row, peak_megabytes, seconds, show
from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import Labelled
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from coxfield.selection.pseudo_likelihood import pseudo_likelihood

CLASSES, FEATURES = 10, 64


def points(n):
    """Ten overlapping Gaussian classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(CLASSES, size=n)
    return rng.normal(size=(n, FEATURES)) + rng.normal(size=(CLASSES, FEATURES))[y], y


def run(quick=False):
    n = 2000 if quick else 20_000
    X, y = points(n)
    labelled, mean, rows = Labelled(X, y, CLASSES), np.zeros(CLASSES), []
    for name, kernel, promise in (("isotropic", RBF(8.0), ""), ("ARD", RBF(np.full(FEATURES, 8.0)), "at most 6")):
        covariances = PerClass.shared_by(recognise(1.0 * kernel, FEATURES), CLASSES)
        store = labelled.under(covariances)
        sums = seconds(lambda store=store: class_sums(store, X, leave_out=np.arange(n)))
        gradient = seconds(lambda of=covariances: pseudo_likelihood(labelled, of, mean))
        memory = peak_megabytes(lambda of=covariances: pseudo_likelihood(labelled, of, mean))
        rows += [
            Row(f"{name}: leave-one-out class sums", f"{sums:.2f} s"),
            Row(f"{name}: pseudo-likelihood and gradient", f"{gradient:.2f} s"),
            Row(f"{name}: gradient / class sums", f"{gradient / sums:.2f}", promise),
            Row(f"{name}: peak extra memory", f"{memory:.0f} MB", promise and "below 1000 MB"),
        ]
    show(f"Pseudo-likelihood, {n:,} x {FEATURES}, {CLASSES} classes, RBF, float64", rows)


if __name__ == "__main__":
    run()

"""Array libraries: class sums in torch on the CPU beside NumPy, and leave-one-out likewise."""

import os

import numpy as np
import sklearn
from sklearn.gaussian_process.kernels import RBF

from benchmarks.harness import Row, console, images, seconds, show
from coxfield import LGCPClassifier


def run(quick=False):
    try:
        import torch
    except ImportError:
        console.print("Array libraries: torch is not installed, so there is nothing to compare: make test-arrays")
        return
    os.environ["SCIPY_ARRAY_API"] = "1"  # scikit-learn wants to see it; nothing here goes through SciPy
    n_train, n_test, n_fit = (6000, 1000, 1000) if quick else (60_000, 10_000, 10_000)
    X, y, Z = images(n_train, n_test, np.float32)
    with sklearn.config_context(array_api_dispatch=True):
        prediction(torch, X, y, Z)
        leave_one_out(torch, X[:n_fit], y[:n_fit])


def prediction(torch, X, y, Z):
    tensors = torch.asarray(X), torch.asarray(y), torch.asarray(Z)
    ours = LGCPClassifier(RBF(0.75), selection=None).fit(X, y)
    theirs = LGCPClassifier(RBF(0.75), selection=None).fit(*tensors[:2])
    numpy = seconds(lambda: ours.predict_proba(Z), repeats=3)
    other = seconds(lambda: theirs.predict_proba(tensors[2]), repeats=3)
    apart = np.abs(theirs.predict_proba(tensors[2]).numpy() - ours.predict_proba(Z)).max()
    show(
        f"Class sums, {len(X):,} x {len(Z):,} x {X.shape[1]}, float32, torch with {torch.get_num_threads()} threads",
        [
            Row("predict_proba, NumPy", f"{numpy:.2f} s"),
            Row("predict_proba, torch on the CPU", f"{other:.2f} s"),
            Row("torch / NumPy", f"{other / numpy:.2f}"),
            Row("largest difference of probabilities", f"{apart:.1e}"),
        ],
    )


def leave_one_out(torch, X, y):
    tensors = torch.asarray(X), torch.asarray(y)
    numpy = seconds(lambda: LGCPClassifier(selection="loo_error").fit(X, y))
    other = seconds(lambda: LGCPClassifier(selection="loo_error").fit(*tensors))
    show(
        f"Leave-one-out fit, {len(X):,} x {X.shape[1]}, float32",
        [
            Row("fit, NumPy", f"{numpy:.2f} s"),
            Row("fit, torch on the CPU", f"{other:.2f} s"),
            Row("torch / NumPy", f"{other / numpy:.2f}"),
        ],
    )


if __name__ == "__main__":
    run()

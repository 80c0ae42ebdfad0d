"""Array libraries: class sums in torch on the CPU beside NumPy, and leave-one-out likewise."""

import os
import time

import numpy as np
import sklearn
from sklearn.gaussian_process.kernels import RBF

from benchmarks.harness import Row, console, images, show
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


def times(work, repeats=2):
    """Least wall time and least processor time of several runs; on a busy machine the second one is steadier."""
    found = []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - wall, time.process_time() - processor))
    return np.min(found, axis=0)


def compared(title, numpy, other):
    """Rows of a table from two pairs of times."""
    rows = [
        Row(f"{title}, {name}", f"{wall:.2f} s, processor {processor:.2f} s")
        for name, (wall, processor) in (("NumPy", numpy), ("torch on the CPU", other))
    ]
    ratios = other / numpy
    return [*rows, Row("torch / NumPy", f"{ratios[0]:.2f}, processor {ratios[1]:.2f}")]


def prediction(torch, X, y, Z):
    tensors = torch.asarray(X), torch.asarray(y), torch.asarray(Z)
    ours = LGCPClassifier(RBF(0.75), selection=None).fit(X, y)
    theirs = LGCPClassifier(RBF(0.75), selection=None).fit(*tensors[:2])
    numpy = times(lambda: ours.predict_proba(Z))
    other = times(lambda: theirs.predict_proba(tensors[2]))
    apart = np.abs(theirs.predict_proba(tensors[2]).numpy() - ours.predict_proba(Z)).max()
    show(
        f"Class sums, {len(X):,} x {len(Z):,} x {X.shape[1]}, float32, torch with {torch.get_num_threads()} threads",
        [*compared("predict_proba", numpy, other), Row("largest difference of probabilities", f"{apart:.1e}")],
    )


def leave_one_out(torch, X, y):
    tensors = torch.asarray(X), torch.asarray(y)
    numpy = times(lambda: LGCPClassifier(selection="loo_error").fit(X, y))
    other = times(lambda: LGCPClassifier(selection="loo_error").fit(*tensors))
    show(f"Leave-one-out fit, {len(X):,} x {X.shape[1]}, float32", compared("fit", numpy, other))


if __name__ == "__main__":
    run()

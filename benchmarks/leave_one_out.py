"""Leave-one-out: a path of 24 length scales beside one `rbf_kernel` of scikit-learn."""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.harness import Row, images, peak_megabytes, seconds, show
from coxfield import LGCPClassifier
from coxfield.selection.grid import default_factors, typical_distance


def run(quick=False):
    n = 2000 if quick else 10_000
    X, y, _ = images(n, 10, np.float64)
    clf = LGCPClassifier(selection="loo_error", length_scales=default_factors(typical_distance(X)))
    kernel = seconds(lambda: rbf_kernel(X, gamma=0.5), repeats=3)
    path = seconds(lambda: clf.fit(X, y), repeats=3)
    memory = peak_megabytes(lambda: clf.fit(X, y))
    show(
        f"Leave-one-out, {n:,} x 784, float64: 24 length scales, errors, log losses and temperatures",
        [
            Row("one rbf_kernel(X)", f"{kernel:.2f} s"),
            Row("the whole path, as LGCPClassifier.fit", f"{path:.2f} s"),
            Row("path / rbf_kernel", f"{path / kernel:.2f}", "at most 2.5"),
            Row("peak extra memory of the path", f"{memory:.0f} MB"),
        ],
    )


if __name__ == "__main__":
    run()

"""Cross validation: the paper's ten folds at one length scale, beside a single cut and the 85 s of the paper."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from benchmarks.harness import Row, images, seconds, show
from coxfield.datasets import make_double_helix
from coxfield.field import LabelField, map_labels
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from coxfield.selection.few_labels import cv_path


def zeros_and_fours(count):
    """As many zeros and fours of the MNIST training set: the paper's reduced MNIST."""
    X, y, _ = images(60_000, 10, np.float64)
    rows = np.concatenate([np.flatnonzero(y == digit)[:count] for digit in (0, 4)])
    return X[rows], (y[rows] == y[rows[-1]]).astype(int)


def single_cut(X, codes, length_scale):
    """The most probable labelling, from nothing."""
    map_labels(LabelField.from_points(X, RBF(length_scale), codes))


def ten_folds(X, codes, length_scale):
    """What `SLGCPClassifier` does for one length scale: a labelling with all labels, and one for each fold."""
    covariances = PerClass.shared_by(recognise(RBF(length_scale), X.shape[1]), 2)
    cv_path(X, codes, covariances, np.zeros(2), np.ones(1), n_folds=10)


def run(quick=False):
    count = 100 if quick else 500
    rng = np.random.default_rng(0)
    for name, (X, truth), length_scale in (
        ("reduced MNIST", zeros_and_fours(count), 1.3),
        ("double helix", make_double_helix(count, random_state=0), 0.14),
    ):
        codes = np.full(len(truth), -1)
        known = np.concatenate([rng.choice(np.flatnonzero(truth == label), 5, replace=False) for label in (0, 1)])
        codes[known] = truth[known]
        cut = seconds(lambda: single_cut(X, codes, length_scale), repeats=5)  # noqa: B023  # called at once
        round_ = seconds(lambda: ten_folds(X, codes, length_scale), repeats=3)  # noqa: B023
        show(
            f"Ten folds, {len(X):,} points of {name}, 10 labels, length scale {length_scale}",
            [
                Row("a single cut, with its field and proof", f"{cut:.3f} s"),
                Row("ten folds", f"{round_:.2f} s", "paper: 85 s, on its computer"),
                Row("ten folds / single cut", f"{round_ / cut:.1f}", "at most 12"),
            ],
        )


if __name__ == "__main__":
    run()

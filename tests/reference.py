"""The model written as slowly and plainly as possible: loops over points, one kernel value at a time."""

import numpy as np


def kernel_value(kernel, x, z):
    return float(kernel(np.atleast_2d(x), np.atleast_2d(z))[0, 0])


def class_scores(X_train, y, kernels, means, queries, weights=None):
    """F of eq. activationFunction by double loop; y holds 0, ..., Q - 1."""
    weights = np.ones(len(y)) if weights is None else weights
    scores = np.empty((len(queries), len(kernels)))
    for q, x in enumerate(queries):
        for i, kernel in enumerate(kernels):
            score = means[i] + kernel_value(kernel, x, x) / 2
            for z, label, weight in zip(X_train, y, weights, strict=True):
                if label == i:
                    score += weight * kernel_value(kernel, x, z)
            scores[q, i] = score
    return scores


def softmax(scores):
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def refit_scores(X, y, kernels, means, weights=None):
    """Leave-one-out scores by n refits: each time one row less, with all its weight."""
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    rows = []
    for j in range(len(y)):
        fewer = weights.copy()
        fewer[j] = 0
        rows.append(class_scores(X, y, kernels, means, X[j : j + 1], fewer)[0])
    return np.array(rows)

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


def standardised(rows, centre, scale, farthest):
    """Rows in units of their scale, none farther from the centre than `farthest`."""
    return np.clip((rows - centre) / scale, -farthest, farthest)


def conditional_means(z, mean, covariance, ridge):
    """Rows with each blank as the conditional mean of a Gaussian given the rest of its row, and its covariances."""
    filled, left = z.copy(), []
    for row in filled:
        m = np.isnan(row)
        gain = covariance[np.ix_(m, ~m)] @ np.linalg.inv(covariance[np.ix_(~m, ~m)] + ridge * np.eye((~m).sum()))
        row[m] = mean[m] + gain @ (row[~m] - mean[~m])
        left.append(np.zeros_like(covariance))
        left[-1][np.ix_(m, m)] = covariance[np.ix_(m, m)] - gain @ covariance[np.ix_(~m, m)]
    return filled, left


def gaussian_of_rows_with_blanks(z, ridge, steps):
    """Mean and covariance by steps of expectation and maximisation, from blanks at 0."""
    filled = np.where(np.isnan(z), 0, z)
    mean, covariance = filled.mean(axis=0), np.cov(filled.T, bias=True)
    for _ in range(steps):
        filled, left = conditional_means(z, mean, covariance, ridge)
        mean = filled.mean(axis=0)
        covariance = np.cov(filled.T, bias=True) + np.mean(left, axis=0)
    return mean, covariance

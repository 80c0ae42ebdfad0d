"""Matrices of correlations and covariances of random points."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF


def correlations(n, length_scale, seed=0):
    return RBF(length_scale)(np.random.default_rng(seed).uniform(0, 2, size=(n, 2)))


def covariances(n, length_scale=0.5, seed=0):
    return 2 * correlations(n, length_scale, seed)


def without_diagonal(A):
    return A - np.diag(np.diagonal(A))

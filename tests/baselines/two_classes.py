"""Small problems of two classes for the variational bound."""

import numpy as np

from coxfield.baselines.variational_bound import settle


def settled(K, signs):
    return settle(K, signs, np.sqrt(np.diag(K)), np.zeros(len(K)))


def random_problem(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)

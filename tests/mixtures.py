"""Mixtures by double loops, and small problems to compare with."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from coxfield.engine.store import Labelled
from coxfield.kernels.mixture import Ladder, Mixture
from coxfield.kernels.radial import recognise
from coxfield.kernels.transforms import Whitening
from coxfield.selection.mixture.concave import Problem


def problem(n=24, d=3, n_classes=3, seed=0, weighted=False, dtype=float):
    """Labelled points with correlated features of different units."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = (rng.normal(size=(n, d)) + 0.7 * y[:, None]) @ rng.normal(size=(d, d)) * np.geomspace(0.1, 10, d)
    weights = rng.uniform(0.5, 2, size=n) if weighted else None
    return Labelled(X.astype(dtype), y, n_classes, weights)


def ladder(
    transform=None,
    name="raw",
    kernel=None,
    factors=(1.0, 0.5**0.5, 0.4),
    alphas=(0.5, 0.75),
    floors=None,
    weights=None,
    d=3,
):
    """A ladder, with weights that are all different unless given."""
    shape = len(factors), len(alphas)
    weights = np.linspace(0.3, 1.2, shape[0] * shape[1]).reshape(shape) if weights is None else np.array(weights, float)
    covariance = recognise(RBF(2.0) if kernel is None else kernel, d)
    floors = np.zeros(len(alphas)) if floors is None else np.array(floors)
    return Ladder(name, transform, covariance, np.array(factors), np.array(alphas), floors, weights)


def example(labelled):
    """A mixture on two representations, with and without a floor of the density."""
    whitened = Whitening().fit(labelled.X, labelled.y, labelled.weights)
    ladders = (
        ladder(factors=(4.0, 1.0), floors=(0.7, 0.0)),
        ladder(
            whitened, "whitened", RBF(1.5), alphas=(0.5, 1.0), floors=(0.0, 2.0), weights=[[0.5, 0], [0, 0.7], [0, 0]]
        ),
    )
    return Mixture(ladders, labelled.X, labelled.weights)


def by_loops(mixture, X, Y=None, counts=None):
    """C between all rows of X and Y, one pair after the other."""
    Y = X if Y is None else Y
    counts = np.ones(len(mixture.X)) if mixture.counts is None else mixture.counts
    total = np.zeros((len(X), len(Y)))
    for part in mixture.ladders:
        for f, a in part.terms:
            kernel = part.kernel(f)

            def k(u, v, part=part, kernel=kernel):
                return kernel(part.represent(u[None]), part.represent(v[None]))[0, 0]

            def q(u, k=k):
                return sum(c * k(u, r) for c, r in zip(counts, mixture.X, strict=True))

            qx, qy = [q(u) for u in X], [q(v) for v in Y]
            for i, u in enumerate(X):
                for j, v in enumerate(Y):
                    divisor = (qx[i] + part.floors[a]) * (qy[j] + part.floors[a])
                    total[i, j] += part.weights[f, a] * k(u, v) / divisor ** part.alphas[a]
    return total


def concave_problem(seed=0, members=6, n=50, n_classes=3):
    """Class sums of made-up members of very different units, half of them informative: the problem, and the sums."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    sums = rng.gamma(2.0, size=(members, n, n_classes)) * np.geomspace(1e-6, 1e3, members)[:, None, None]
    sums[::2, np.arange(n), y] *= 1.5
    counts = rng.uniform(0.5, 2, size=n)
    return Problem.of(sums, y, counts, np.log(np.bincount(y, counts) / counts.sum())), sums

"""Random label fields, and slow but plain formulas for them."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic, WhiteKernel

from coxfield.field import LabelField
from reference import kernel_value

KERNELS = [
    RBF(0.5),
    2.0 * RBF(1.0),
    0.3 * RBF([0.4, 1.5]),
    Matern(0.7, nu=0.5),
    Matern(1.0, nu=1.5),
    RationalQuadratic(1.0, alpha=0.7),
    RBF(0.3) + ConstantKernel(0.1) * Matern(2.0),
    RBF(1.0) * RationalQuadratic(2.0) + WhiteKernel(0.3),
]


def random_arguments(seed, n_classes, n, shared, n_known=3):
    """Points, kernel or kernels, labels and means for `LabelField.from_points`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_known + n, 2)) * rng.choice([0.5, 1.0, 3.0])
    labels = np.concatenate([rng.integers(n_classes, size=n_known), np.full(n, -1)])
    order = rng.permutation(len(X))
    picks = rng.integers(len(KERNELS), size=n_classes)
    kernel = KERNELS[picks[0]] if shared else [KERNELS[pick] for pick in picks]
    return X[order], kernel, labels[order], rng.normal(size=n_classes) / 2


def random_field(seed, n_classes, n, shared, n_known=3):
    X, kernel, labels, mean = random_arguments(seed, n_classes, n, shared, n_known)
    return LabelField.from_points(X, kernel, labels, mean=mean, n_classes=n_classes)


def full_energy(X, kernels, means, labels):
    """Minus the exponent of eq. explicitMRF, all points labelled, by double loop over ordered pairs."""
    total = 0.0
    for j, x in enumerate(X):
        total -= means[labels[j]]
        for k, z in enumerate(X):
            if labels[j] == labels[k]:
                kernel = kernels[labels[j]]
                value = kernel.diag(x[None])[0] if j == k else kernel_value(kernel, x, z)
                total -= value / 2
    return total


def energy(field, labels):
    """E of the unlabelled points by double loop, from the field's unary terms."""
    total = sum(field.unary[i, label] for i, label in enumerate(labels))
    for i in range(len(labels)):
        for j in range(i):
            if labels[i] == labels[j]:
                total -= kernel_value(field.covariances[labels[i]].kernel, field.X[i], field.X[j])
    return total


def couplings(field, c):
    """C^(c) between all pairs of nodes, 0 on the diagonal."""
    values = field.covariances[c].kernel(field.X)
    np.fill_diagonal(values, 0)
    return values

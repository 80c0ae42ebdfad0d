"""Random graphs with couplings, and label fields on them: sparse, and dense with the same couplings."""

import numpy as np
from hypothesis import strategies as st

from covariance_doubles import RowCovariance
from coxfield.field import LabelField


def random_couplings(seed, n, density=0.4, scale=1.0):
    """A symmetric matrix of couplings, dense. At a low density some nodes have no links."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.exponential(scale, size=(n, n)) * (rng.random((n, n)) < density), 1)
    return upper + upper.T


def random_graph_arguments(seed, n_classes, n, n_known=2, density=0.4):
    """Couplings, labels, costs and means for `LabelField.from_graph`, with n unlabelled nodes."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.concatenate([rng.integers(n_classes, size=n_known), np.full(n, -1)]))
    couplings = random_couplings(seed, n + n_known, density)
    return couplings, labels, rng.normal(size=(n + n_known, n_classes)), rng.normal(size=n_classes) / 2


def random_graph_field(seed, n_classes, n, n_known=2, density=0.4):
    couplings, labels, unary, mean = random_graph_arguments(seed, n_classes, n, n_known, density)
    return LabelField.from_graph(couplings, labels, unary=unary, mean=mean, n_classes=n_classes)


def dense_field(couplings, labels, mean, n_classes):
    """The field on all pairs with the couplings of a matrix."""
    rows = np.arange(len(couplings), dtype=float)[:, None]
    return LabelField.from_points(rows, RowCovariance(couplings), labels, mean=mean, n_classes=n_classes)


def size(field):
    """Sum of the absolute values of everything that an energy may add up."""
    return np.abs(field.unary).max(axis=1).sum() + field.totals[:, 0].sum() / 2


@st.composite
def graph_fields(draw, n_classes, max_n=7):
    """Fields on graphs that may be empty, disconnected, or of couplings of very different sizes."""
    n = draw(st.integers(1, max_n))
    density, scale = draw(st.sampled_from([0.0, 0.2, 0.5, 1.0])), draw(st.sampled_from([0.1, 3.0]))
    couplings = random_couplings(draw(st.integers(0, 2**32 - 1)), n, density, scale)
    costs = st.floats(-4, 4, allow_subnormal=False)
    unary = draw(st.lists(st.lists(costs, min_size=n_classes, max_size=n_classes), min_size=n, max_size=n))
    return LabelField.from_graph(couplings, [-1] * n, unary=unary)

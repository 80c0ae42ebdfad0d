"""Leave-one-out sums of every member, against refits without each point."""

import numpy as np
import pytest

from coxfield.kernels.whitening import Whitening
from coxfield.selection.mixture.loo_members import member_sums, work_units
from mixtures import ladder, problem


def refitted(labelled, whitening, j):
    """The whitening without point j, with shrinkage, target and scaling held: coordinates of all points."""
    Z, counts = whitening.transform(labelled.X), labelled.counts
    others = np.delete(np.arange(len(labelled)), j)

    def scatter(rows):
        y, w = labelled.y[rows], counts[rows]
        means = {c: np.average(Z[rows][y == c], axis=0, weights=w[y == c]) for c in np.unique(y)}
        E = Z[rows] - np.stack([means[c] for c in y])
        return (E * w[:, None]).T @ E / counts.sum()

    lost = scatter(np.arange(len(labelled))) - scatter(others)
    sigma = np.eye(Z.shape[1]) - (1 - whitening.shrinkage_) * lost
    return Z @ np.linalg.inv(np.linalg.cholesky(sigma)).T


def brute_force(labelled, part, whitening=None):
    """Class sums of each member at each point, from a model without it; the densities of the others are held."""
    n, counts = len(labelled), labelled.counts
    found = np.zeros((*part.weights.shape, n, labelled.n_classes))
    log_q = np.zeros((len(part.factors), n))
    for f in range(len(part.factors)):
        kernel = part.kernel(f)
        q = kernel(part.represent(labelled.X)) @ counts
        log_q[f] = np.log(q)
        for j in range(n):
            Z = part.represent(labelled.X) if whitening is None else refitted(labelled, whitening, j)
            k = counts * kernel(Z[[j]], Z)[0]
            k[j] = 0
            for a, alpha in enumerate(part.alphas):
                values = k / (k.sum() * q) ** alpha
                found[f, a, j] = np.bincount(labelled.y, values, labelled.n_classes)
    return found.reshape(-1, n, labelled.n_classes), log_q


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("whiten", [False, True])
def test_sums_and_densities_are_those_of_refits(weighted, whiten):
    labelled = problem(weighted=weighted)
    whitening = Whitening().fit(labelled.X, labelled.y, labelled.weights) if whiten else None
    part = ladder(whitening, alphas=(0.0, 0.5, 0.75))
    found = member_sums(labelled, [part], np.arange(24))
    expected, log_q = brute_force(labelled, part, whitening)
    np.testing.assert_allclose(found.sums, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.log_densities[0], log_q, rtol=1e-10, atol=1e-12)


def test_some_rows_are_rows_of_the_whole():
    labelled = problem()
    bank = [ladder(), ladder(Whitening().fit(labelled.X, labelled.y))]
    rows = np.array([1, 5, 20])
    seen = []
    some = member_sums(labelled, bank, rows, seen.append)
    np.testing.assert_allclose(some.sums, member_sums(labelled, bank, np.arange(24)).sums[:, rows], rtol=1e-12)
    assert sum(seen) == work_units(labelled, bank, rows)


def test_length_scales_at_which_everything_underflows():
    labelled = problem()
    found = member_sums(labelled, [ladder(factors=(1.0, 1e-3, 1e-6))], np.arange(24))
    assert np.isfinite(found.sums).all()
    assert np.isfinite(found.log_densities[0]).all()

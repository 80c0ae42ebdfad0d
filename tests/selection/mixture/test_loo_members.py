"""Leave-one-out sums of every member, against refits without each point."""

import numpy as np
import pytest

from coxfield.engine.store import Labelled
from coxfield.kernels.transforms import Whitening
from coxfield.selection.mixture.loo_members import COLUMNS, member_sums, work_units
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
            for a, (alpha, floor) in enumerate(part.powers):
                values = k / ((k.sum() + floor) * (q + floor)) ** alpha
                found[f, a, j] = np.bincount(labelled.y, values, labelled.n_classes)
    return found.reshape(-1, n, labelled.n_classes), log_q


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("whiten", [False, True])
def test_sums_and_densities_are_those_of_refits(weighted, whiten):
    labelled = problem(weighted=weighted)
    whitening = Whitening().fit(labelled.X, labelled.y, labelled.weights) if whiten else None
    part = ladder(whitening, alphas=(0.0, 0.5, 0.75, 1.0), floors=(0.0, 0.0, 3.0, 0.2))
    found = member_sums(labelled, [part], np.arange(24))
    expected, log_q = brute_force(labelled, part, whitening)
    np.testing.assert_allclose(found.sums, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.log_densities[0], log_q, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("whiten", [False, True])
def test_sums_by_fold_are_those_of_the_points_of_the_fold(whiten):
    labelled = problem(weighted=True)
    whitening = Whitening().fit(labelled.X, labelled.y, labelled.weights) if whiten else None
    part = ladder(whitening, alphas=(0.5, 1.0), floors=(0.0, 3.0))
    fold = np.random.default_rng(1).integers(3, size=24)
    found = member_sums(labelled, [part], np.arange(24), fold=fold)
    np.testing.assert_allclose(found.sums, member_sums(labelled, [part], np.arange(24)).sums, rtol=1e-12)
    apart = Labelled(labelled.X, 3 * labelled.y + fold, 9, labelled.weights)  # each fold of a class is a class
    expected = member_sums(apart, [part], np.arange(24)).sums.reshape(-1, 24, 3, 3)
    if whiten:  # where the label of a point that is left out matters
        expected, _ = brute_force(labelled, part, whitening)
        np.testing.assert_allclose(found.by_fold.sum(axis=-1), expected, rtol=1e-6)
    else:
        np.testing.assert_allclose(found.by_fold, expected, rtol=1e-6, atol=1e-30)


def test_extremes_at_copies_are_those_of_all_copies():
    labelled = problem(weighted=True)
    part = ladder(alphas=(0.5, 1.0), floors=(0.0, 3.0))
    found = member_sums(labelled, [part], np.arange(24))
    for m, (f, a) in enumerate(np.ndindex(part.weights.shape)):
        k = part.kernel(f)(labelled.X) * labelled.counts
        q = k.sum(axis=1) + part.floors[a]
        sums = k / (q[:, None] * q) ** part.alphas[a] @ np.eye(3)[labelled.y]
        relative = sums - sums.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(found.at_copies[:, m], [relative.max(axis=0), relative.min(axis=0)], rtol=1e-9)


def test_the_largest_evidence_is_that_of_the_weighted_sum():
    labelled = problem(weighted=True)
    part = ladder(alphas=(0.5, 1.0), floors=(0.0, 3.0))
    found = member_sums(labelled, [part], np.arange(24))
    weights = np.where(np.arange(len(found.sums)) % 2, 0.0, 1.0 + np.arange(len(found.sums)))
    left_out, copies = np.tensordot(weights, found.sums, 1), np.zeros((24, 3))
    for weight, (f, a) in zip(weights, np.ndindex(part.weights.shape), strict=True):
        k = part.kernel(f)(labelled.X) * labelled.counts
        q = k.sum(axis=1) + part.floors[a]
        copies += weight * (k / (q[:, None] * q) ** part.alphas[a]) @ np.eye(3)[labelled.y]
    relative = [sums - sums.mean(axis=1, keepdims=True) for sums in (left_out, copies)]
    expected = [np.abs(each - relative[0].mean(axis=0)).max() for each in relative]
    np.testing.assert_allclose(found.largest_evidence(weights), expected, rtol=1e-5)  # factors are in single precision


def test_densities_that_are_known_are_not_computed_again():
    labelled = problem(weighted=True)
    bank = [ladder(), ladder(Whitening().fit(labelled.X, labelled.y, labelled.weights), alphas=(1.0,), floors=(3.0,))]
    once = member_sums(labelled, bank, np.arange(24))
    again = member_sums(labelled, bank, np.arange(24), known=once.log_densities)
    np.testing.assert_allclose(again.sums, once.sums, rtol=1e-9)


def test_many_classes_have_columns_for_those_near_and_one_for_all_others():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 3)
    X = rng.normal(size=(40, 2))[y] * 5 + 0.1 * rng.normal(size=(120, 2))
    found = member_sums(Labelled(X, y, 40), [ladder(d=2)], np.arange(120))
    all_classes, _ = brute_force(Labelled(X, y, 40), ladder(d=2))
    assert found.sums.shape == (6, 120, COLUMNS)
    assert (found.contenders[:, 0] == y).all()
    assert (found.y == 0).all()
    for m in range(6):
        own = np.take_along_axis(all_classes[m], found.contenders, axis=1)
        np.testing.assert_allclose(found.sums[m, :, :-1], own, rtol=1e-9, atol=1e-12)
        rest = (all_classes[m].sum(axis=1) - own.sum(axis=1)) / (40 - COLUMNS + 1)
        np.testing.assert_allclose(found.sums[m, :, -1], rest, rtol=1e-6, atol=1e-12)
    mean = np.log(np.arange(1.0, 41))
    offset = found.offset(mean)
    np.testing.assert_allclose(np.exp(offset).sum(axis=1), np.exp(mean).sum())


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

"""Representations that use labels: sums against a refit for each fold, and labels that mean nothing."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder

from coxfield import LGCPClassifier
from coxfield.kernels import Member
from coxfield.selection.mixture.bank import bank_of
from coxfield.selection.mixture.cross_fitting import CrossFitted, folds_of, seen_by, sums_of, uses_labels
from coxfield.selection.mixture.relevance import Smoother, relevances
from mixtures import ladder, problem


def test_which_transformers_use_labels():
    assert uses_labels(make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()))
    assert uses_labels(NeighborhoodComponentsAnalysis())
    assert not uses_labels(make_pipeline(StandardScaler(), PCA()))
    assert not uses_labels(object())


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_the_representation_that_each_fold_sees(weighted):
    labelled = problem(n=30, weighted=weighted)
    fold = folds_of(labelled.y)
    scales = [np.random.default_rng(k).uniform(0.5, 2, size=3) for k in range(6)]
    scalers = [StandardScaler(with_mean=False).fit(labelled.X) for _ in scales]
    for scaler, scale in zip(scalers, scales, strict=True):
        scaler.scale_ = scale
    plain = ladder(scalers[5], floors=(0.0, 2.0))
    cross = CrossFitted(**vars(plain), transforms=tuple(scalers[:5]), fold=fold)
    rows = np.arange(1, 30)
    found = sums_of(labelled, [plain, cross], rows, fold=fold)
    size, counts = plain.weights.size, labelled.counts
    for i, j in enumerate(rows):
        Z = labelled.X / scales[fold[j]]
        for f in range(3):
            kernel = plain.kernel(f)
            K = kernel(Z)
            q = K @ counts
            k = counts * K[j]
            k[j] = 0
            for a, (alpha, floor) in enumerate(plain.powers):
                values = k / ((k.sum() + floor) * (q + floor)) ** alpha
                expected = np.bincount(labelled.y, values, 3)
                np.testing.assert_allclose(found.sums[size + f * 2 + a, i], expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.by_fold.sum(axis=-1), found.sums, rtol=1e-5, atol=1e-12)
    q = plain.kernel(1)(labelled.X / scales[5]) @ counts
    np.testing.assert_allclose(found.log_densities[1][1], np.log(q), rtol=1e-10, atol=1e-12)


def test_every_row_sees_what_was_learned_without_its_fold():
    labelled = problem(n=30)
    seen = []

    class Spy(LinearDiscriminantAnalysis):
        def fit(self, X, y):
            seen.append(X)
            return super().fit(X, y)

    (cross,) = bank_of([Member(transform=Spy())], labelled)
    parts = seen_by(cross, np.arange(30))
    assert sorted(np.concatenate([places for places, _ in parts]).tolist()) == list(range(30))
    for (places, _), X in zip(parts, seen[1:], strict=True):
        left = {tuple(x) for x in X}
        assert not any(tuple(x) in left for x in labelled.X[places])
        assert len(X) == 30 - len(places)
    assert len(seen[0]) == 30


@pytest.mark.parametrize(
    "transformer", [LinearDiscriminantAnalysis(), NeighborhoodComponentsAnalysis(2, max_iter=30, random_state=0)]
)
def test_coin_labels_do_not_fool_transformers_that_use_labels(transformer):
    rng = np.random.default_rng(0)
    noise, coin = rng.normal(size=(60, 40)), rng.permutation(np.arange(60) % 2)
    clf = LGCPClassifier([Member(transform=transformer)]).fit(noise, coin)
    assert clf.loo_error_ > 0.3
    assert clf.predict_proba(rng.normal(size=(500, 40))).max() < 0.75


def test_target_means_of_a_category_are_cross_fitted():
    rng = np.random.default_rng(0)
    levels, coin = rng.integers(30, size=(90, 1)).astype(float), rng.permutation(np.arange(90) % 2)
    encoder = TargetEncoder(target_type="binary", smooth=1e-3, cv=2, random_state=0)
    clf = LGCPClassifier([Member(transform=encoder)]).fit(levels, coin)
    assert clf.loo_error_ > 0.35


def test_gradients_of_the_smoother():
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(12, 3)), np.arange(12) % 2
    own = np.eye(2)[y]
    smoother = Smoother.best(Z, own)

    def probabilities(j, z):
        k = np.exp(-np.square(Z - z).sum(axis=1) / (2 * smoother.scale))
        k[j] = 0
        # the class shares count as one point that is at the same distance from everywhere
        return (k @ own + own.mean(axis=0)) / (k.sum() + 1)

    square = np.zeros(3)
    for j in range(12):
        for d, step in enumerate(1e-6 * np.eye(3)):
            square[d] += np.sum(np.square((probabilities(j, Z[j] + step) - probabilities(j, Z[j] - step)) / 2e-6))
    np.testing.assert_allclose(smoother.gradients(), np.sqrt(square / 12), rtol=1e-6)


def test_relevance_finds_the_columns_that_matter():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 6))
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)
    found = relevances(X, y, np.ones(300), 2, folds_of(y))
    assert found.shape == (5, 6)
    assert (found[:, :2].min(axis=1) > 3 * found[:, 2:].max(axis=1)).all()


def test_coin_labels_make_no_column_relevant():
    rng = np.random.default_rng(0)
    for seed in range(5):
        X, y = np.random.default_rng(seed).normal(size=(100, 20)), rng.permutation(np.arange(100) % 2)
        assert relevances(X, y, np.ones(100), 2, folds_of(y)) is None

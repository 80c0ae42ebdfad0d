"""`LGCPClassifier()` with its default, a mixture of covariances: what it promises, and odd data."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.model_selection import cross_val_score

from coxfield import LGCPClassifier, PermanentalClassifier, SLGCPClassifier
from coxfield.datasets import load_pima, load_synth
from coxfield.kernels import Member

RNG = np.random.default_rng(0)


def blobs(n=60, d=3, n_classes=2, seed=0, apart=2.0):
    """Classes around different corners."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, d)) + apart * np.eye(n_classes, d)[y], y


def assert_sensible(clf, X, y):
    """Probabilities are finite and sum to one, leave-one-out too, and training points are mostly recognised."""
    for probabilities in (clf.predict_proba(X), clf.loo_predict_proba()):
        assert np.isfinite(probabilities).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert np.isfinite(clf.class_scores(X)).all()
    assert (clf.predict(X) == y).mean() >= 0.5


def test_units_of_columns_do_not_matter():
    X, y = load_wine(return_X_y=True)
    assert cross_val_score(LGCPClassifier(), X, y, cv=5).mean() > 0.96
    assert cross_val_score(LGCPClassifier(selection="loo_error"), X, y, cv=5).mean() < 0.8
    units = 10.0 ** np.arange(-6, 7)
    one, other = LGCPClassifier().fit(X, y), LGCPClassifier().fit(X * units, y)
    # The features as they are differ, but these members have little to say; the others are the same.
    assert np.mean(one.predict(X) != other.predict(X * units)) < 0.02


def test_scores_are_means_plus_class_sums():
    synth = load_synth()
    clf = LGCPClassifier().fit(synth.X_train, synth.y_train)
    C = clf.kernel_(synth.X_test[:20], synth.X_train)
    expected = clf.mean_ + np.stack([C[:, synth.y_train == c].sum(axis=1) for c in (0, 1)], axis=1)
    np.testing.assert_allclose(clf.class_scores(synth.X_test[:20]), expected, rtol=1e-8)
    np.testing.assert_allclose(clf.predict_proba(synth.X_test[:20]), softmax(expected, axis=1), rtol=1e-7)


def test_far_from_all_data_only_the_means_count():
    X, y = blobs()
    clf = LGCPClassifier().fit(X, y)
    for distance in (1e4, 1e8, 1e100, 1e150):
        far = clf.predict_proba(np.full((1, 3), distance))
        np.testing.assert_allclose(far, softmax(clf.mean_)[None], rtol=1e-9)


def test_means_may_be_given_and_held():
    X, y = blobs()
    held = LGCPClassifier(mean={1: 2.0}, learn_mean=False).fit(X, y)
    assert held.mean_.tolist() == [0.0, 2.0]
    learned = LGCPClassifier(mean={1: 2.0}).fit(X, y)
    assert 0 < learned.mean_[1] - learned.mean_[0] < 2  # the data say 0, and the prior is weak


def test_sample_weights_count_as_points():
    X, y = blobs(n=40)
    weights = RNG.integers(1, 3, size=40)
    clf = LGCPClassifier().fit(X, y, sample_weight=weights)
    C = clf.kernel_(X[:5] + 0.1, X) * weights
    expected = clf.mean_ + np.stack([C[:, y == c].sum(axis=1) for c in (0, 1)], axis=1)
    np.testing.assert_allclose(clf.class_scores(X[:5] + 0.1), expected, rtol=1e-8)
    dropped = LGCPClassifier().fit(X, y, sample_weight=np.arange(40) >= 4)
    alone = LGCPClassifier().fit(X[4:], y[4:])
    np.testing.assert_allclose(dropped.predict_proba(X), alone.predict_proba(X), rtol=1e-7)


def test_single_precision_gives_nearly_the_same():
    pima = load_pima()
    double = LGCPClassifier().fit(pima.X_train, pima.y_train).predict_proba(pima.X_test)
    single = LGCPClassifier().fit(pima.X_train.astype(np.float32), pima.y_train)
    found = single.predict_proba(pima.X_test.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, double, atol=5e-3)


def test_sparse_points_are_classified_without_whitening():
    X, y = blobs(n=80, d=6)
    X[np.abs(X) < 0.5] = 0
    with pytest.warns(UserWarning, match="X is sparse"):
        clf = LGCPClassifier().fit(sparse.csr_array(X), y)
    assert set(clf.mixture_["representation"]) <= {"raw", "standardised"}
    assert_sensible(clf, sparse.csr_array(X), y)
    np.testing.assert_allclose(clf.predict_proba(X), clf.predict_proba(sparse.csr_array(X)), rtol=1e-9)


def test_heavy_tails_need_no_care():
    X, y = blobs(n=200, apart=3.0)
    test_X, test_y = blobs(n=200, apart=3.0, seed=1)
    plain = LGCPClassifier().fit(X, y)
    clf = LGCPClassifier().fit(np.exp(3 * X), y)
    assert clf.score(np.exp(3 * test_X), test_y) > plain.score(test_X, test_y) - 0.03
    assert "ranked, whitened" in set(clf.mixture_["representation"])
    far = clf.predict_proba(np.full((1, 3), 1e300))
    np.testing.assert_allclose(far, softmax(clf.mean_)[None], rtol=1e-6)


def test_a_bank_may_be_given():
    X, y = blobs()
    clf = LGCPClassifier([RBF(1.0), Matern(2.0), Member(RBF(1.0), PCA(2)), Member(transform="whitened")]).fit(X, y)
    assert set(clf.mixture_["representation"]) <= {"raw", "PCA", "whitened"}
    assert_sensible(clf, X, y)
    one = LGCPClassifier(Matern(1.0)).fit(X, y)
    assert all(name.startswith("Matern") for name in one.mixture_["kernel"])


def test_a_kernel_per_class_needs_another_selection():
    X, y = blobs()
    with pytest.raises(ValueError, match="classes share a mixture: for a kernel per class, give selection as one of"):
        LGCPClassifier({0: RBF(1.0), 1: RBF(2.0)}).fit(X, y)


def test_the_learned_covariance_serves_other_estimators():
    X, y = blobs(n=30)
    learned = LGCPClassifier().fit(X, y).kernel_
    some = np.where(np.arange(30) < 8, y, -1)
    semi = SLGCPClassifier(learned, selection=None).fit(X, some)
    assert np.mean(semi.transduction_ != y) < 0.3
    permanental = PermanentalClassifier(learned, selection=None).fit(X, y)
    np.testing.assert_allclose(permanental.predict_proba(X).sum(axis=1), 1)
    with pytest.raises(ValueError, match="there is no length scale to choose"):
        SLGCPClassifier(learned).fit(X, some)
    with pytest.raises(ValueError, match="there is no length scale to choose"):
        LGCPClassifier(learned, selection="loo_error").fit(X, y)


ODD = {
    "constant columns": lambda X, y: (np.column_stack([X, np.ones((len(X), 2)), np.full(len(X), 1e9)]), y),
    "duplicated points": lambda X, y: (np.repeat(X, 3, axis=0), np.repeat(y, 3)),
    "four points": lambda X, y: (X[:4] + 5 * y[:4, None], y[:4]),
    "one point in a class": lambda X, y: (X[:21], np.r_[np.zeros(20, int), 1]),
    "more features than points": lambda X, y: (np.column_stack([X, RNG.normal(size=(len(X), 200))]), y),
    "ten thousand features": lambda X, y: (np.column_stack([3 * X, RNG.normal(size=(len(X), 10_000))]), y),
    "tiny and huge columns": lambda X, y: (X * [1e-12, 1.0, 1e12], y),
    "two copies of one column": lambda X, y: (X[:, [0, 1, 2, 0]], y),
    "a discrete column": lambda X, y: (np.column_stack([X[:, :2], X[:, 2] > 0]), y),
    "an outlier": lambda X, y: (np.vstack([X, np.full((1, 3), 1e6)]), np.r_[y, 0]),
    "far from the origin": lambda X, y: (X + 1e6, y),
    "heavy tails": lambda X, y: (np.exp(4 * X), y),
    "one feature": lambda X, y: (X[:, :1], y),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
def test_odd_data_are_classified(change, dtype):
    X, y = change(*blobs())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = LGCPClassifier().fit(X.astype(dtype), y)
        assert_sensible(clf, X.astype(dtype), y)


def test_points_that_are_all_the_same_are_refused():
    with pytest.raises(ValueError, match="all points are the same"):
        LGCPClassifier().fit(np.ones((6, 2)), [0, 1] * 3)

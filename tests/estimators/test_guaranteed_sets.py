"""Sets with a guarantee are those of n + 1 refits, and the guarantee holds, to the last point."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, RationalQuadratic

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.datasets import make_circles
from tolerances import rounding

PER_CLASS = {0: RBF(0.8), 1: 2.0 * Matern(1.2, nu=1.5), 2: RBF(0.8)}
KERNELS = {
    "RBF": RBF(1.0),
    "strong": 4.0 * RBF(1.5),
    "Matern": 1.5 * Matern(1.0, nu=1.5),
    "rational": RationalQuadratic(1.0, 0.7),
    "called, negative": 0.3 * DotProduct(0.5) + RBF(1.0),
    "per class": PER_CLASS,
}


def points(n=15, d=2, n_classes=3, seed=0, dtype=float):
    """Labelled points, at least three of each class, and new ones."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.normal(size=(n, d)) + 0.8 * y[:, None]
    return X.astype(dtype), y, (rng.normal(size=(4, d)) + 0.8).astype(dtype)


def classifier(kernel, **options):
    return LGCPClassifier(kernel, selection=None, **options)


def refits(kernel, X, y, weights, **options):
    """Log odds against the label of each point, from a classifier fitted to all the others; and the size of scores."""
    against, sizes = np.empty(len(y)), np.empty(len(y))
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        clf = classifier(kernel, **options).fit(X[kept], y[kept], weights[kept])
        scores = clf.class_scores(X[[i]])
        against[i] = odds_against_labels(scores, y[[i]])[0]
        sizes[i] = np.abs(scores).max()
    return against, sizes


def stack(X, x):
    return sparse.vstack([X, x[None]], format="csr") if sparse.issparse(X) else np.vstack([X, x])


def ties(X, size, dtype, shortest=0.8):
    """How near log odds are that may count as ties: 8 times the error of a score.

    Odds of two points are compared; each is a difference of two scores; estimator and reference may both err. Scores
    are sums of values whose squared distances err by eps (8 + sqrt(d)) |z|^2 for each of two points; the estimator
    finds this bound by halving, so that it may use up to 4 times as much.
    """
    dense = X.toarray() if sparse.issparse(X) else X
    norms = np.square((dense - dense.mean(axis=0)) / shortest).sum(axis=1).max()
    distances = 4 * (8 + np.sqrt(X.shape[1])) * 2 * norms
    return 8 * rounding(1 + size, dtype=dtype, terms=len(dense) + distances)


def bounds(kernel, X, y, query, c, weights=None, per_class=False, shortest=0.8, **options):
    """How many points fit as badly as the query with label c, by n + 1 refits: without ties, and with near ties."""
    weights = np.ones(len(y)) if weights is None else weights
    joined = stack(X, query), np.append(y, c), np.append(weights, 1.0)
    against, sizes = refits(kernel, *joined, **options)
    margin = ties(joined[0], sizes.max(), X.dtype, shortest)
    own = y == c if per_class else np.ones(len(y), bool)
    return [1 + np.count_nonzero(against[:-1][own] >= against[-1] + by) for by in (margin, -margin)]


def assert_as_refits(kernel, X, y, new, weights=None, per_class=False, shortest=0.8, **options):
    clf = classifier(kernel, **options).fit(X, y, weights)
    calibrating = np.bincount(y) if per_class else np.full(len(clf.classes_), len(y))
    counts = clf.set_p_values(new, per_class=per_class) * (calibrating + 1)
    clear = 0
    for t in range(len(new)):
        for c in clf.classes_:
            low, high = bounds(kernel, X, y, new[t], c, weights, per_class, shortest, **options)
            assert low - 0.5 < counts[t, c] < high + 0.5
            clear += low == high
    assert clear >= 0.8 * counts.size


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_p_values_are_those_of_refits(name, per_class):
    assert_as_refits(KERNELS[name], *points(), per_class=per_class)


@pytest.mark.parametrize("name", ["RBF", "called, negative"])
def test_two_classes(name):
    assert_as_refits(KERNELS[name], *points(n_classes=2, seed=1))


def test_weights_count_in_sums_and_calibrate_once():
    X, y, new = points(seed=2)
    weights = np.random.default_rng(0).uniform(0.2, 3, len(y))
    assert_as_refits(RBF(1.0), X, y, new, weights)
    assert_as_refits(RBF(1.0), X, y, new, weights, per_class=True)


def test_weights_with_a_kernel_per_class():
    X, y, new = points(seed=2)
    assert_as_refits(PER_CLASS, X, y, new, np.random.default_rng(1).uniform(0.2, 3, len(y)))


def test_means():
    assert_as_refits(RBF(1.0), *points(seed=3), mean={0: 1.0, 2: -0.5})


def test_single_precision():
    X, y, new = points(seed=4, dtype=np.float32)
    assert_as_refits(RBF(1.0), X, y, new)
    assert_as_refits(PER_CLASS, X, y, new)


def test_sparse_points():
    X, y, new = points(seed=5)
    clf = classifier(RBF(1.0)).fit(sparse.csr_array(X), y)
    np.testing.assert_array_equal(clf.set_p_values(new), classifier(RBF(1.0)).fit(X, y).set_p_values(new))


def test_huge_covariances():
    X, y, new = points(seed=6)
    assert_as_refits(3000.0 * RBF(1.0), X, y, new)
    assert_as_refits(400.0 * DotProduct(0.5) + RBF(1.0), X, y, new)
    assert_as_refits({0: 1e4 * RBF(1.0), 1: RBF(0.5), 2: 300.0 * RBF(2.0)}, X, y, new)


def test_covariances_that_vanish_are_ties():
    X, y, new = points(seed=7)
    np.testing.assert_array_equal(classifier(RBF(1e-4)).fit(X, y).set_p_values(new), 1)


def test_far_points_are_no_stranger_than_the_prior():
    """Without any evidence the odds against are log 2, and what counts are training points that fit worse."""
    X, y, _ = points()
    clf = classifier(RBF(1.0)).fit(X, y)
    worse = np.count_nonzero(clf.loo_predict_proba()[np.arange(len(y)), y] <= 1 / 3)
    np.testing.assert_array_equal(clf.set_p_values([[1e6, -1e6]]) * (len(y) + 1), 1 + worse)


def test_a_duplicate_is_a_tie():
    """The only training point that fits no better is the copy of the new point, with the same label."""
    for dtype in (np.float64, np.float32):
        X, y, _ = points(n=30, dtype=dtype)
        rng = np.random.default_rng(0)
        for scale in (1.0, 30.0):
            Z = (X + scale * rng.normal(size=2)).astype(dtype)
            clf = classifier(RBF(0.7)).fit(Z, y)
            found = clf.set_p_values(Z)[np.arange(30), y] * 31
            assert found.min() > 1.5  # itself and the copy, at least


def test_a_fitted_mixture_by_the_formula():
    X, y = make_circles(2, 40, random_state=0)
    clf = LGCPClassifier().fit(X, y)
    new = X[:12] + 0.1
    assert_by_formula(clf, new)
    first = clf.set_p_values(new)
    np.testing.assert_array_equal(clf.set_p_values(new), first)  # from the densities that were kept


def test_a_mixture_of_a_part_of_the_rows_by_the_formula():
    X, y = make_circles(2, 40, random_state=0)
    clf = LGCPClassifier(selection_part=0.4, random_state=0).fit(X, y)
    assert len(clf._calibrators()) == len(y) - round(0.4 * len(y))
    assert_by_formula(clf, X[:12] + 0.1)
    assert_by_formula(pickle.loads(pickle.dumps(clf)), X[:12] + 0.1)


def test_a_mixture_that_was_chosen_beforehand_is_as_refits():
    mixture = LGCPClassifier().fit(*make_circles(3, 30, random_state=1)).kernel_
    X, y, new = points(n=12)
    for per_class in (False, True):
        assert_as_refits(mixture, X, y, new[:2], per_class=per_class, shortest=0.05)


PARTS = [{}, {"selection": "loo_error"}, {"selection": "pseudo_likelihood"}]


@pytest.mark.parametrize("options", PARTS, ids=["mixture", "loo_error", "pseudo_likelihood"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_covariance_of_a_part_of_the_rows_is_as_rows_that_come_and_go(options, weighted):
    """The new point joins by `partial_fit`, and each calibrating point leaves by `forget`."""
    X, y = make_circles(2, 20, random_state=0)
    weights = np.random.default_rng(0).uniform(0.3, 2, len(y)) if weighted else None
    clf = LGCPClassifier(selection_part=0.5, random_state=0, **options).fit(X, y, weights)
    rows, new = clf._calibrators(), X[:2] + 0.15
    assert len(rows) == len(y) - round(0.5 * len(y))
    found = clf.set_p_values(new)
    if not options:  # the covariance that sets use, which was fixed before the other rows were seen
        kernel, mean = clf._set_training().store.groups[0].covariance, dict(enumerate(clf.mean_.tolist()))
        clf = LGCPClassifier(kernel, mean=mean, selection=None).fit(X, y, weights)
    clear = 0
    for t, c in np.ndindex(found.shape):
        joined = deepcopy(clf).partial_fit(new[[t]], [c])
        scores = np.concatenate([deepcopy(joined).forget([j]).class_scores(X[[j]]) for j in rows])
        against = odds_against_labels(scores, y[rows])
        least = odds_against_labels(clf.class_scores(new[[t]]), [c])[0]
        margin = ties(X, np.abs(scores).max(), float, shortest=0.05)
        low, high = (1 + np.count_nonzero(against >= least + by) for by in (margin, -margin))
        assert low - 0.5 < found[t, c] * (len(rows) + 1) < high + 0.5
        clear += low == high
    assert clear >= 0.8 * found.size


@pytest.mark.parametrize("kernel", [RBF(1.0), PER_CLASS])
def test_rows_that_come_and_go(kernel):
    X, y, new = points(n=24)
    clf = classifier(kernel).fit(X[:10], y[:10])
    clf.set_p_values(new)
    clf.partial_fit(X[10:], y[10:])
    for per_class in (False, True):
        expected = classifier(kernel).fit(X, y).set_p_values(new, per_class=per_class)
        np.testing.assert_array_equal(clf.set_p_values(new, per_class=per_class), expected)
    clf.forget(np.arange(0, 24, 5))
    kept = np.arange(24) % 5 > 0
    for per_class in (False, True):
        expected = classifier(kernel).fit(X[kept], y[kept]).set_p_values(new, per_class=per_class)
        np.testing.assert_array_equal(clf.set_p_values(new, per_class=per_class), expected)


def test_a_mixture_with_rows_that_come_and_go_by_the_formula():
    X, y = make_circles(2, 40, random_state=0)
    clf = LGCPClassifier().fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
    assert_by_formula(clf, X[:8] + 0.1)
    assert_by_formula(clf.forget(np.arange(5, 45, 4)), X[:8] + 0.1)


def odds_against_labels(scores, y):
    """Log odds against one label per row."""
    rivals, own = scores.astype(float), (np.arange(len(y)), y)
    mine = rivals[own]
    rivals[own] = -np.inf
    return logsumexp(rivals, axis=1) - mine


def assert_by_formula(clf, new):
    """A loop over queries and classes, with scores: those of the candidate class grow by the covariances."""
    rows, training = clf._calibrators(), clf._set_training()
    X, y, numbers = clf.X_fit_[rows], clf.y_fit_[rows], training.rows.numbers
    points = training.store.groups[0].parts[0].points
    k = points.at(X).left_out(numbers[rows]).tile(points.at(new))
    before, predicted = (
        clf._set_scores(training, clf.X_fit_, numbers).values[rows],
        clf._set_scores(training, new).values,
    )
    found = clf.set_p_values(new) * (len(y) + 1)
    clear = 0
    for t in range(len(new)):
        for c in range(len(clf.classes_)):
            after = before.copy()
            after[:, c] += k[:, t]
            against = odds_against_labels(after, y)
            least = odds_against_labels(predicted[[t]], [c])[0]
            sizes = np.abs(before).max(axis=1) + np.abs(predicted[t]).max() + np.abs(k[:, t]).max()
            margin = ties(X, sizes, float, shortest=0.1)
            low, high = (1 + np.count_nonzero(against >= least + by) for by in (margin, -margin))
            assert low - 0.5 < found[t, c] < high + 0.5
            clear += low == high
    assert clear >= 0.8 * found.size


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("kernel", [RBF(0.6), 5.0 * RBF(1.0), 0.2 * DotProduct(1.0) + RBF(0.5), PER_CLASS])
def test_the_guarantee_holds_for_every_set_of_points(kernel, per_class):
    """Each of n + 1 points is the new one in turn. Exactly this share of them must be covered, without any chance."""
    X, y, _ = points(n=31, seed=8)
    X[5], y[5] = X[4], y[4]
    own = np.empty(len(y))
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        clf = classifier(kernel).fit(X[kept], y[kept])
        own[i] = clf.set_p_values(X[[i]], per_class=per_class)[0, y[i]]
    for some in [y == c for c in range(3)] if per_class else [np.ones(len(y), bool)]:
        assert_guaranteed(own[some])


def assert_guaranteed(p_values):
    """Of n p-values, each of one point as the new one, at most k are among the k smallest that n points can have."""
    n = len(p_values)
    for excluded in range(1, n):
        covered = np.count_nonzero(p_values * n > excluded + 0.5)
        assert covered >= n - excluded


class ChosenFromFirst(LGCPClassifier):
    """The covariance is chosen from the first 40 rows."""

    def _drawn(self, labelled):
        return np.arange(len(labelled)) < 40


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("options", PARTS[:2], ids=["mixture", "loo_error"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights of rows that do not calibrate"])
def test_the_guarantee_holds_if_other_rows_have_chosen(options, per_class, weighted):
    """Each of the rows that did not choose the covariance is the new one in turn."""
    X, y = make_circles(2, 28, random_state=2)
    own, weights = np.empty(len(y)), np.ones(len(y))
    weights[:40] = np.random.default_rng(0).uniform(0.2, 3, 40) if weighted else 1
    for i in range(40, len(y)):
        kept = np.arange(len(y)) != i
        clf = ChosenFromFirst(selection_part=0.5, **options).fit(X[kept], y[kept], weights[kept])
        own[i] = clf.set_p_values(X[[i]], per_class=per_class)[0, y[i]]
    late = np.arange(len(y)) >= 40
    for some in [late & (y == c) for c in range(2)] if per_class else [late]:
        assert np.count_nonzero(some) > 5
        assert_guaranteed(own[some])


def test_sets_follow_from_p_values_and_grow_with_the_coverage():
    X, y, new = points(n=19)
    clf = classifier(RBF(1.0)).fit(X, y)
    ranks = np.rint(clf.set_p_values(new) * 20)
    before = np.zeros(ranks.shape, bool)
    for percent in range(5, 100, 5):  # one of twenty ranks each, so that every coverage is a boundary
        found = clf.predict_set(new, percent / 100)
        np.testing.assert_array_equal(found, ranks > 20 - percent / 5)
        assert (found >= before).all()
        before = found
    assert found.dtype == bool


def test_the_boundary_is_exact():
    """With m + 1 = 250 the 25 worst points are left out at a coverage of 0.9; 1 - 0.9 in binary digits is less."""
    X, y, _ = points(n=249, n_classes=3)
    clf = classifier(RBF(0.5)).fit(X, y)
    ranks = np.rint(clf.set_p_values(X) * 250)
    assert (ranks == 25).any()
    np.testing.assert_array_equal(clf.predict_set(X, 0.9), ranks > 25)
    np.testing.assert_array_equal(clf.predict_set(X), ranks > 25)


def test_many_points_in_threads_and_tiles():
    X, y, _ = points(n=3000, d=3)
    new = X[:700] + 0.05
    clf = classifier(2.0 * RBF(0.6), n_jobs=2).fit(X, y)
    found = clf.set_p_values(new)
    np.testing.assert_array_equal(found[650:], clf.set_params(n_jobs=1).set_p_values(new[650:]))
    assert_by_formula(classifier(2.0 * RBF(0.6)).fit(X, y), new[:3])


def test_a_class_without_calibrating_rows_is_in_every_set():
    X, y, new = points()
    clf = classifier(RBF(1.0)).fit(X, y)
    clf._calibrators = lambda: np.flatnonzero(y != 1)
    assert (clf.set_p_values(new, per_class=True)[:, 1] == 1).all()
    assert clf.predict_set(new, 0.01, per_class=True)[:, 1].all()


def test_a_class_without_any_rows():
    """It has a covariance and a mean of its own, and nothing else."""
    X, y, new = points(n=30, n_classes=3)
    kernels, mean = {**PER_CLASS, 2: 3.0 * RBF(2.0)}, {2: 1.0}
    clf = classifier(kernels, mean=mean).partial_fit(X + 3, y, classes=[0, 1, 2]).forget(y == 2)
    new, left, codes = new + 2, X[y < 2] + 3, y[y < 2]
    before, predicted = clf.loo_class_scores(), clf.class_scores(new)
    found = clf.set_p_values(new) * (len(codes) + 1)
    for t, c in np.ndindex(found.shape):
        after = before.copy()
        after[:, c] += kernels[c](left, new[[t]])[:, 0]
        margin = ties(left, np.abs(after).max() + np.abs(predicted).max(), float)
        against, least = odds_against_labels(after, codes), odds_against_labels(predicted[[t]], [c])[0]
        low, high = (1 + np.count_nonzero(against >= least + by) for by in (margin, -margin))
        assert low - 0.5 < found[t, c] < high + 0.5
    assert (clf.set_p_values(new, per_class=True)[:, 2] == 1).all()


def test_all_rows_calibrate_a_kernel_that_was_given():
    X, y, new = points(n=24)
    clf = classifier(RBF(1.0), selection_part=0.5).fit(X[:10], y[:10]).partial_fit(X[10:], y[10:])
    np.testing.assert_array_equal(clf.set_p_values(new), classifier(RBF(1.0)).fit(X, y).set_p_values(new))


def test_rows_that_chose_the_covariance_never_calibrate():
    X, y = make_circles(2, 20, random_state=0)
    clf = LGCPClassifier(selection="loo_error", selection_part=0.999, random_state=0).fit(X, y)
    (last,) = clf._calibrators()  # one row is kept back
    assert set(np.unique(clf.set_p_values(X + 0.1))) <= {0.5, 1.0}
    clf.forget([last])
    assert (clf.set_p_values(X) == 1).all()  # nothing is left to compare with
    assert clf.predict_set(X, 0.01).all()
    late = clf.partial_fit(X[:8] + 0.05, y[:8])
    assert late._calibrators().tolist() == list(range(39, 47))


def test_rows_that_do_not_calibrate_still_count_in_sums():
    X, y, new = points()
    clf = classifier(RBF(1.0)).fit(X, y)
    some = np.flatnonzero(np.arange(len(y)) % 3 > 0)
    clf._calibrators = lambda: some
    found = clf.set_p_values(new) * (len(some) + 1)
    against, _ = refits(RBF(1.0), np.vstack([X, new[:1]]), np.append(y, 2), np.ones(len(y) + 1))
    assert round(found[0, 2]) == 1 + np.count_nonzero(against[:-1][some] >= against[-1])


def test_leave_one_out_is_computed_once():
    X, y, new = points()
    clf = classifier(RBF(1.0)).fit(X, y)
    first, first_logs = clf.set_p_values(new), clf._loo_scores().log_probabilities
    clf._loo_scores = None  # not to be called again
    np.testing.assert_array_equal(clf.set_p_values(new), first)
    np.testing.assert_array_equal(clf._leave_one_out().log_probabilities, first_logs)


def test_another_fit_and_a_copy_start_again():
    X, y, new = points()
    clf = classifier(RBF(1.0)).fit(X, y)
    first = clf.set_p_values(new)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clf)).set_p_values(new), first)
    again = clf.fit(X[::2], y[::2]).set_p_values(new)
    np.testing.assert_array_equal(again, classifier(RBF(1.0)).fit(X[::2], y[::2]).set_p_values(new))


@pytest.mark.parametrize("coverage", [0, 1, 1.5, -0.1, float("nan"), "0.9", None, True])
def test_a_coverage_must_be_between_0_and_1(coverage):
    X, y, new = points()
    with pytest.raises(ValueError, match=r"coverage must be a number between 0 and 1, such as 0.9; got .*"):
        classifier(RBF(1.0)).fit(X, y).predict_set(new, coverage)


def test_soft_labels_are_refused():
    X, y = make_circles(2, 20, random_state=0)
    few = SLGCPClassifier(RBF(1.0), selection=None, inference="map").fit(X, np.where(np.arange(len(y)) % 4, -1, y))
    soft = few.classifier_
    with pytest.raises(ValueError, match=r"need one label per training row, but these rows have .*: fit an LGCP"):
        soft.predict_set(X)


def test_the_classifier_must_be_fitted():
    with pytest.raises(NotFittedError):
        LGCPClassifier().predict_set([[0.0, 0.0]])

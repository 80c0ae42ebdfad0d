"""`label_quality` against n refits, loops over rows, and data for which probabilities underflow."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.datasets import load_synth, make_circles
from coxfield.engine.class_sums import StatedScores
from coxfield.estimators.few_labels import ENOUGH
from coxfield.estimators.reasons import class_margins, quality_of
from coxfield.graphs.bank import Given
from reference import softmax
from tolerances import assert_close, assert_same_decisions, decided, rounding

COLUMNS = ["row", "label", "probability", "suggested", "suggested_probability", "rank"]
N = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
MEANS = [0.2, -0.1, 0.0, 0.1]
WEIGHTS = RNG.choice([0.4, 1.0, 2.0, 3.5], size=N)
# (|x|^2 + |z|^2) / l^2, at most: the rounding of distances made of products is relative to that.
EXPONENTS = 1 + 2 * np.square(X).sum(axis=1).max() / 0.4**2
SHARED = [RBF(0.8)] * 4
OWN = [RBF(0.4), 2.0 * Matern(1.0), RBF(2.0), 0.5 * RBF(0.8)]


def classifier(kernels):
    means = dict(enumerate(MEANS[: len(kernels)]))
    return LGCPClassifier(dict(enumerate(kernels)), mean=means, selection=None)


def refits(fit):
    """Scores of each row by a classifier that has never seen it; `fit` takes the rows to learn from."""
    everyone = np.arange(N)
    return np.concatenate([fit(everyone != j).class_scores(X[[j]]) for j in everyone])


def margins(scores, shares):
    """The documented score, by loops: log odds of each class to its best rival, averaged over the label."""
    found = np.zeros(len(scores))
    for j, row in enumerate(scores):
        for c, share in enumerate(shares[j]):
            rivals = [other for k, other in enumerate(row) if k != c]
            found[j] += share * (row[c] - max(rivals)) if share else 0
    return found


def assert_ordered(rank, margin, slack):
    """Ranks are a permutation, and no margin is above a later one by more than rounding."""
    assert sorted(rank) == list(range(len(rank)))
    by_rank = margin[np.argsort(rank)]
    assert (np.maximum.accumulate(by_rank) - by_rank <= slack).all()


def assert_table(quality, scores, shares):
    """The whole table is that of the scores and the shares of the classes in each label."""
    rows, codes, probabilities = np.arange(len(scores)), shares.argmax(axis=1), softmax(scores)
    size = np.abs(scores).max()
    rounded = {"terms": N, "condition": EXPONENTS * (1 + size)}
    assert list(quality) == COLUMNS
    assert {len(column) for column in quality.values()} == {len(scores)}
    assert quality["row"].tolist() == rows.tolist()
    assert quality["label"].tolist() == codes.tolist()
    assert_close(quality["probability"], (shares * probabilities).sum(axis=1), **rounded)
    assert_close(quality["suggested_probability"], probabilities.max(axis=1), **rounded)
    assert_same_decisions(quality["suggested"], scores.argmax(axis=1), scores, terms=N, condition=EXPONENTS)
    assert_ordered(quality["rank"], margins(scores, shares), 4 * rounding(size, terms=N, condition=EXPONENTS))


@pytest.mark.parametrize("kernels", [SHARED[:2], OWN[:2], SHARED, OWN], ids=["2", "2, own", "4", "4, own"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
def test_the_table_is_that_of_n_refits(kernels, weights):
    y = np.arange(N) % len(kernels)

    def fit(rows):
        return classifier(kernels).fit(X[rows], y[rows], sample_weight=None if weights is None else weights[rows])

    quality = fit(np.full(N, True)).label_quality()
    assert_table(quality, refits(fit), np.eye(len(kernels))[y])


@pytest.mark.parametrize("kernels", [SHARED[:3], OWN[:3]], ids=["shared", "own"])
def test_the_table_of_distributions_is_that_of_n_refits(kernels):
    weights = RNG.dirichlet(np.ones(3), size=N) * RNG.uniform(0.5, 2.0, size=(N, 1))
    weights[::5] = np.eye(3)[np.arange(0, N, 5) % 3]  # some labels are sure

    def fit(rows):
        return classifier(kernels)._fit_distributions(X[rows], weights[rows], np.arange(3))

    quality = fit(np.full(N, True)).label_quality()
    assert_table(quality, refits(fit), weights / weights.sum(axis=1, keepdims=True))


def test_the_default_mixture_is_asked_by_leave_one_out():
    synth = load_synth()
    clf = LGCPClassifier().fit(synth.X_train, synth.y_train)
    quality, probabilities, rows = clf.label_quality(), clf.loo_predict_proba(), np.arange(250)
    for name, codes in (("probability", clf.y_fit_), ("suggested_probability", quality["suggested"])):
        assert_close(quality[name], probabilities[rows, codes])
    assert quality["suggested"].tolist() == clf.loo_predict().tolist()  # the same computation twice
    scores = clf.loo_class_scores()
    slack = 4 * rounding(np.abs(scores).max())
    assert_ordered(quality["rank"], margins(scores, np.eye(2)[clf.y_fit_]), slack)


def test_changed_labels_come_first():
    synth = load_synth()
    clear = np.flatnonzero(LGCPClassifier().fit(synth.X_train, synth.y_train).label_quality()["rank"] >= 150)
    changed = clear[::20]
    y = synth.y_train.copy()
    y[changed] = 1 - y[changed]
    quality = LGCPClassifier().fit(synth.X_train, y).label_quality()
    assert (quality["suggested"][changed] == synth.y_train[changed]).all()
    assert (quality["probability"][changed] < quality["suggested_probability"][changed]).all()
    assert np.median(quality["rank"][changed]) < 10


def test_labels_may_be_strings_and_rows_of_weight_zero_are_not_counted():
    names = np.array(["ant", "bee", "cat"])
    y, weights = names[np.arange(N) % 3], (np.arange(N) >= 4).astype(float)
    kernel = RBF(0.8)
    clf = LGCPClassifier(kernel, selection=None).fit(X, y, sample_weight=weights)
    quality, alone = clf.label_quality(), LGCPClassifier(kernel, selection=None).fit(X[4:], y[4:]).label_quality()
    assert quality["label"].tolist() == y[4:].tolist()
    assert quality["suggested"].tolist() == clf.loo_predict().tolist()
    assert quality["row"].tolist() == list(range(N - 4))
    assert_close(quality["probability"], alone["probability"], terms=N, condition=EXPONENTS)


def test_probabilities_that_round_to_zero_or_one_are_still_ranked():
    # Two heaps at distance 3. With a variance of 1e4, every log odd is far beyond the range of probabilities.
    line = np.linspace(0, 1, 20)
    points, y = np.concatenate([line, line + 4])[:, None], np.repeat([0, 1], 20)
    y[[3, 30]] = 1 - y[[3, 30]]
    clf = LGCPClassifier(1e4 * RBF(1.0), selection=None).fit(points, y)
    quality, scores = clf.label_quality(), clf.loo_class_scores()
    assert len(np.unique(quality["probability"])) == 2
    assert set(quality["rank"][[3, 30]]) == {0, 1}
    slack = 4 * rounding(np.abs(scores).max(), terms=40, condition=1 + 2 * points.max() ** 2)
    assert_ordered(quality["rank"], margins(scores, np.eye(2)[y]), slack)


def test_labels_that_differ_from_the_nearest_come_first_where_all_covariances_underflow():
    pairs = np.array([0.0, 1.0, 100.0, 101.0, 200.0, 201.0])
    y = np.array([0, 0, 1, 1, 1, 0])
    quality = LGCPClassifier(RBF(1e-3), selection=None).fit(pairs[:, None], y).label_quality()
    assert (quality["probability"] == 0.5).all()
    assert quality["suggested"].tolist() == [0, 0, 1, 1, 0, 1]
    assert quality["rank"].tolist() == [2, 3, 4, 5, 0, 1]


def test_the_probabilities_have_the_precision_of_the_points():
    y = np.arange(N) % 2
    single, double = (classifier(SHARED[:2]).fit(X.astype(kind), y) for kind in (np.float32, np.float64))
    assert single.label_quality()["probability"].dtype == np.float32
    assert double.label_quality()["probability"].dtype == np.float64


def test_stated_probabilities_may_be_zero():
    with np.errstate(divide="ignore"):
        logs = np.log([[1.0, 0.0, 0.0], [0.2, 0.5, 0.3], [0.0, 1.0, 0.0], [0.6, 0.4, 0.0]])
    quality = quality_of(StatedScores(logs), np.array(list("abc")), np.array([0, 2, 0, 1]))
    assert quality["rank"].tolist() == [3, 1, 0, 2]
    assert_close(quality["probability"], np.array([1.0, 0.3, 0.0, 0.4]))
    soft = quality_of(StatedScores(logs), np.arange(3), np.array([0, 2, 1, 1]), np.eye(3)[[0, 2, 1, 1]])
    assert soft["rank"].tolist() == [2, 0, 3, 1]


def test_margins_of_equal_scores_are_zero():
    assert class_margins(np.array([[2.0, 2.0, 1.0]])).tolist() == [[0.0, 0.0, -1.0]]


@pytest.mark.filterwarnings("ignore::coxfield.estimators.trivial.ChainsDisagreeWarning")  # few draws are enough here
def test_the_classifier_of_a_label_field_has_it():
    some = np.where(np.arange(N) < 8, np.arange(N) % 2, -1)
    clf = SLGCPClassifier(0.5 * RBF(1.0), selection=None, inference="marginals", n_draws=50, random_state=0)
    soft = clf.fit(X, some)
    quality, shares = soft.classifier_.label_quality(), soft.label_distributions_
    expected = (shares * soft.classifier_.loo_predict_proba()).sum(axis=1)
    assert_close(quality["probability"], expected, terms=2)
    clear = decided(shares, margin=0.0, at_least=0.5)
    assert (quality["label"] == shares.argmax(axis=1))[clear].all()


def test_the_classifier_must_be_fitted():
    with pytest.raises(NotFittedError):
        LGCPClassifier().label_quality()


def few_labels(n_labels, seed=0):
    """Three rings, some labels on each, and points of the same rings to be labelled."""
    points, truth = make_circles(3, 100, random_state=seed)
    known = np.random.default_rng(seed).permutation(len(truth))[:n_labels]
    y = np.full(len(truth), -1)
    y[known] = truth[known]
    return points, y, truth


@pytest.mark.parametrize("n_labels", [12, 3 * ENOUGH + 30])
def test_few_labels_are_asked_without_themselves(n_labels):
    """Members and their weights stay; each label leaves the class sums of all members."""
    points, y, _ = few_labels(n_labels)
    clf = SLGCPClassifier().fit(points, y)
    few, rows = clf._few_labels, np.flatnonzero(y >= 0)
    assert (few.alone is None) == (n_labels < 3 * ENOUGH)
    alone = None if few.alone is None else few.alone.loo_predict_proba()
    blocks = few.prepared.blocks(3)
    expected = np.empty((len(rows), 3))
    for j, row in enumerate(rows):
        others = Given(np.delete(rows, j), np.delete(y[rows], j), 3)
        found = dict(pair for block in blocks for pair in zip(block.members, block.sums(others), strict=True))
        found |= dict(pair for block in blocks for pair in block.kriged(others))
        sums = [found[one].whole[[row]] for one in few.committee.members]
        expected[j] = few.committee.probabilities(sums, None if alone is None else alone[[j]])[0]
    quality, codes = clf.label_quality(), y[rows]
    assert list(quality) == COLUMNS
    assert quality["row"].tolist() == rows.tolist()
    assert quality["label"].tolist() == codes.tolist()
    nats = largest_evidence(few.committee, np.bincount(codes).max())
    rounded = {"terms": n_labels, "condition": 1 + nats, "dtype": np.float32}  # features are in single precision
    assert_close(quality["probability"], expected[np.arange(len(rows)), codes], scale=1.0, **rounded)
    assert_same_decisions(quality["suggested"], expected.argmax(axis=1), expected, **rounded)


def largest_evidence(committee, count):
    """Bound on the nats of a voice: a product of unit features is 1 at most, and a mean of others is twice that."""
    sizes = np.array([2 if member.means else count for member in committee.members])
    average, blend = committee.average, committee.blend
    return max((average.strengths * (average.weights > 0) * sizes[:, None]).max(), (blend.weights * sizes).sum())


def test_a_wrong_label_among_few_comes_first():
    points, y, truth = few_labels(30, seed=1)
    wrong = np.flatnonzero(y >= 0)[7]
    y[wrong] = (y[wrong] + 1) % 3
    names = np.array(["ant", "bee", "cat", "unknown"])
    quality = SLGCPClassifier(missing_label="unknown").fit(points, names[y]).label_quality()
    (first,) = np.flatnonzero(quality["rank"] == 0)
    assert quality["row"][first] == wrong
    assert quality["suggested"][first] == names[truth[wrong]]


def test_a_label_without_company_cannot_be_compared():
    points, y, truth = few_labels(20, seed=2)
    y[y == 2] = -1
    single = np.flatnonzero(truth == 2)[0]
    y[single] = 2
    quality = SLGCPClassifier().fit(points, y).label_quality()
    (place,) = np.flatnonzero(quality["row"] == single)
    assert quality["rank"][place] == len(quality["rank"]) - 1
    assert quality["suggested"][place] == 2
    for name in ("probability", "suggested_probability"):
        assert np.flatnonzero(np.isnan(quality[name])).tolist() == [place]
    y[(y >= 0) & ~np.isin(np.arange(len(y)), [single, *(np.flatnonzero(y == c)[0] for c in (0, 1))])] = -1
    with pytest.raises(ValueError, match=r"each of 3 classes has one label, so .*: give more labels"):
        SLGCPClassifier().fit(points, y).label_quality()


def test_a_label_field_is_refused_unless_every_label_is_given():
    points, y, truth = few_labels(30)
    clf = SLGCPClassifier(0.5 * RBF(0.5), selection=None)
    with pytest.raises(ValueError, match=r"inference='map' has given each label to its neighbours.*: fit with kernel"):
        clf.fit(points, y).label_quality()
    for full in (clf, SLGCPClassifier()):
        quality, own = full.fit(points, truth).label_quality(), full.classifier_.label_quality()
        assert {name: column.tolist() for name, column in quality.items()} == {
            name: column.tolist() for name, column in own.items()
        }


def test_few_labels_must_be_fitted():
    with pytest.raises(NotFittedError):
        SLGCPClassifier().label_quality()

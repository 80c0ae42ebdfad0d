"""The default bank of `LGCPClassifier`: free members and relevant columns keep what the class promises."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_gaussian_quantiles

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.datasets import make_circles
from coxfield.io.model_check import checked_mixture
from coxfield.io.model_data import Reader, Writer
from coxfield.io.model_file import load, save
from coxfield.kernels.namespace import Library, to_numpy
from coxfield.selection.mixture import learn
from coxfield.selection.mixture.concave import MEAN_PRECISION

N = 150


@pytest.fixture(scope="module")
def data():
    X, y = make_gaussian_quantiles(n_samples=700, n_features=3, n_classes=3, random_state=0)
    return X[:N], y[:N], X[N:], y[N:]


@pytest.fixture(scope="module")
def fitted(data):
    return LGCPClassifier().fit(*data[:2])


def scores_by_loops(clf, X, leave_out=None):
    """mu + tied covariances + free kernels, one pair after the other; the latter never from a point to itself."""
    mixture, y = clf.kernel_, clf.y_fit_
    F = np.tile(clf.mean_, (len(X), 1))
    if mixture.tied:
        C = mixture(X, mixture.X)
        F += np.stack([C[:, y == c].sum(axis=1) for c in range(len(clf.classes_))], axis=1)
    for ladder in mixture.ladders:
        if ladder.point_weights is not None:
            for f, weights in enumerate(ladder.point_weights):
                K = ladder.kernel(f)(ladder.represent(X), ladder.represent(mixture.X)) * weights
                F += np.stack([K[:, y == c].sum(axis=1) for c in range(len(clf.classes_))], axis=1)
    return F


def test_free_members_are_found_and_scores_are_plain_sums(data, fitted):
    assert 0 < fitted.n_support_ < N
    np.testing.assert_allclose(fitted.class_scores(data[2]), scores_by_loops(fitted, data[2]), rtol=1e-8, atol=1e-10)
    simple = LGCPClassifier(bank="simple").fit(*data[:2])
    assert simple.n_support_ == 0
    assert fitted.score(*data[2:]) > simple.score(*data[2:]) + 0.03


def test_the_table_lists_free_members(fitted):
    table = fitted.mixture_
    free = np.char.endswith(table["representation"], ", free weights")
    assert free.any()
    assert (table["support"][free] > 0).all()
    assert not table["support"][~free].any()
    assert table["share"].sum() == pytest.approx(1)
    sums = [w.sum() for ladder in fitted.kernel_.ladders if ladder.free for w in ladder.point_weights]
    np.testing.assert_allclose(table["weight"][free], sums)


def test_forgetting_takes_the_terms_of_a_point_away(data, fitted):
    clf = pickle.loads(pickle.dumps(fitted))
    gone = np.flatnonzero(clf.kernel_.support)[[0, 3]]
    clf.forget(gone)
    assert clf.n_support_ == fitted.n_support_ - 2
    np.testing.assert_allclose(clf.class_scores(data[2]), scores_by_loops(clf, data[2]), rtol=1e-8, atol=1e-10)
    for old, new in zip(fitted.kernel_.ladders, clf.kernel_.ladders, strict=True):
        if old.free:
            np.testing.assert_array_equal(np.delete(old.point_weights, gone, axis=1), new.point_weights)


def test_rows_that_arrive_have_no_free_weight_until_the_weights_follow(data, fitted):
    X, y, Z, z = data
    clf = pickle.loads(pickle.dumps(fitted)).partial_fit(Z[:10], z[:10])
    assert clf.n_support_ == fitted.n_support_
    assert not clf.kernel_.support[N:].any()
    np.testing.assert_allclose(clf.class_scores(Z), scores_by_loops(clf, Z), rtol=1e-8, atol=1e-10)
    clf.partial_fit(Z[10:60], z[10:60])  # a tenth of the rows is new
    assert clf.kernel_.support[N:].any()
    np.testing.assert_allclose(clf.class_scores(Z), scores_by_loops(clf, Z), rtol=1e-8, atol=1e-10)
    again, whole = clf.reselect(), LGCPClassifier().fit(np.vstack([X, Z[:60]]), np.append(y, z[:60]))
    np.testing.assert_allclose(again.predict_proba(Z), whole.predict_proba(Z), rtol=1e-6)


def test_the_last_word_on_weights_is_that_of_all_rows(data, monkeypatch):
    """Points with weights are found by some rows. Then means are where their derivative over all rows is zero."""
    X, y, Z, z = (part[:140] for part in data)
    clf = LGCPClassifier().fit(X, y)

    def slope():
        residual = clf.loo_predict_proba() - (clf.y_fit_[:, None] == np.arange(3))
        return residual.sum(axis=0) + MEAN_PRECISION * (clf.mean_ - np.log(np.bincount(clf.y_fit_) / len(clf.y_fit_)))

    np.testing.assert_allclose(slope(), 0, atol=1e-3)
    monkeypatch.setattr(learn, "MOST_FREE_ROWS", 100)
    clf.fit(X, y)
    assert clf.n_support_
    np.testing.assert_allclose(slope(), 0, atol=1e-3)
    del clf._n_chosen  # so that weights follow; all would be chosen again
    clf.partial_fit(Z[:20], z[:20])
    assert clf.n_support_
    np.testing.assert_allclose(slope(), 0, atol=1e-3)


def log_loss(clf, Z, z):
    return -np.log(clf.predict_proba(Z)[np.arange(len(z)), z]).mean()


@pytest.mark.parametrize("step", [20, 140])
def test_weights_that_follow_are_as_good_as_those_of_a_new_fit(data, fitted, step):
    X, y, Z, z = data
    clf, alone = pickle.loads(pickle.dumps(fitted)), fitted
    del clf._n_chosen  # so that weights follow; all would be chosen again
    for start in range(0, 140, step):
        clf.partial_fit(Z[start : start + step], z[start : start + step])
    new = LGCPClassifier().fit(np.vstack([X, Z[:140]]), np.append(y, z[:140]))
    assert log_loss(clf, Z[200:], z[200:]) < 1.15 * log_loss(new, Z[200:], z[200:])
    assert log_loss(clf, Z[200:], z[200:]) < 0.9 * log_loss(alone, Z[200:], z[200:])
    assert clf.loo_log_loss_ == pytest.approx(log_loss(clf, Z[200:], z[200:]), rel=0.3)


def test_weights_that_follow_are_the_optimum_of_the_fit(data, fitted):
    """On the same rows, with the same kernels and the same rate, nothing changes."""
    clf = pickle.loads(pickle.dumps(fitted))
    clf._become(clf._live_state(), changed=N)
    np.testing.assert_allclose(clf.class_scores(data[2]), fitted.class_scores(data[2]), atol=0.3)


def test_a_window_that_moves_is_as_good_as_new_fits():
    ratios = []
    for seed in range(4):
        X, y = make_gaussian_quantiles(n_samples=1450, n_features=3, n_classes=3, random_state=seed)
        clf = LGCPClassifier().fit(X[:N], y[:N])
        for start in range(N, 3 * N, 50):
            clf.partial_fit(X[start : start + 50], y[start : start + 50]).forget(np.arange(50))
        assert len(clf.y_fit_) == N
        assert 0 < clf.n_support_ < N
        new = LGCPClassifier().fit(clf.X_fit_, clf.y_fit_)
        ratios.append(log_loss(clf, X[3 * N :], y[3 * N :]) / log_loss(new, X[3 * N :], y[3 * N :]))
    assert np.mean(ratios) < 1.1


@pytest.mark.parametrize("seed", range(4))
def test_members_that_follow_are_not_louder_than_what_was_shown(seed):
    """At copies of training points, isolated ones included."""
    rng = np.random.default_rng(seed)
    X, y = make_gaussian_quantiles(n_samples=300, n_features=3, n_classes=2, random_state=seed)
    X[rng.integers(150, 300, size=6)] *= rng.choice([3, 10, 30], size=(6, 1))
    clf = LGCPClassifier().fit(X[:150], y[:150])
    assert clf.n_support_ > 0
    shown = clf._largest_evidence
    clf.partial_fit(X[150:], y[150:])
    left_out = clf.loo_class_scores()
    middle = (left_out - left_out.mean(axis=1, keepdims=True)).mean(axis=0)
    now, heard = (
        np.abs(scores - scores.mean(axis=1, keepdims=True) - middle).max() for scores in (left_out, clf.class_scores(X))
    )
    assert heard <= 2 * max(shown, now)


def test_contributions_are_shares_of_the_scores(data, fitted):
    Z = data[2][:20]
    found = fitted.contributions(Z, top=N)
    np.testing.assert_allclose(found.shares.sum(axis=2) + found.rest, fitted.class_scores(Z), rtol=1e-8)
    np.testing.assert_allclose(found.rest, np.tile(fitted.mean_, (20, 1)), atol=1e-8)  # no row is left out
    few = fitted.loo_contributions([3, 5], top=2)
    np.testing.assert_allclose(few.shares.sum(axis=2) + few.rest, fitted.loo_class_scores()[[3, 5]], rtol=1e-8)


def test_far_away_only_the_means_are_left(fitted):
    far = fitted.class_scores(np.full((1, 3), 1e4))
    np.testing.assert_allclose(far[0], fitted.mean_, atol=1e-6)


def test_files_hold_free_weights_and_relevance(data, fitted, tmp_path):
    save(fitted, tmp_path / "model.skops", target="y", features=["a", "b", "c"])
    loaded = load(tmp_path / "model.skops").model
    np.testing.assert_array_equal(loaded.predict_proba(data[2]), fitted.predict_proba(data[2]))
    np.testing.assert_array_equal(loaded.relevance_, fitted.relevance_)
    assert (loaded.bank, loaded.n_support_) == ("wide", fitted.n_support_)
    here = pickle.loads(pickle.dumps(fitted))
    for each in (here, loaded):
        each.partial_fit(data[2][:60], data[3][:60])  # weights follow, so the rate of their prior is part of the state
    np.testing.assert_allclose(loaded.predict_proba(data[2]), here.predict_proba(data[2]), rtol=1e-6)


@pytest.fixture
def untied():
    """A fit in which all weights are those of points, its rows, and more."""
    X, y = make_gaussian_quantiles(n_samples=700, n_features=3, n_classes=2, random_state=0)
    clf = LGCPClassifier().fit(X[:400], y[:400])
    assert not clf.kernel_.tied
    return clf, X, y


def test_weights_of_points_alone_are_no_covariance(untied):
    clf, X, y = untied
    assert not clf.kernel_(X[:3]).any()
    for use in (
        lambda: LGCPClassifier(clf.kernel_, selection=None).fit(X, y),
        lambda: SLGCPClassifier(clf.kernel_, selection=None).fit(X[:60], np.where(np.arange(60) < 20, y[:60], -1)),
    ):
        with pytest.raises(ValueError, match=r"as a covariance it is 0: learn one with .*bank='simple'"):
            use()


def test_weights_of_points_alone_follow_too(untied):
    clf, X, y = untied
    clf.partial_fit(X[400:500], y[400:500])
    assert not clf.kernel_.tied
    assert clf.kernel_.support[400:].any()
    assert clf.loo_log_loss_ == pytest.approx(log_loss(clf, X[500:], y[500:]), abs=0.05)
    clf.forget(np.arange(400))
    assert len(clf.y_fit_) == 100 > clf.n_support_ > 0


def with_free(clf, **parts):
    """The mixture of a fit, whose first free ladder has other parts, as it comes back from a file."""
    ladders, write = list(clf.kernel_.ladders), Writer()
    place = next(k for k, ladder in enumerate(ladders) if ladder.free)
    ladders[place] = replace(ladders[place], **parts)
    data = write(replace(clf.kernel_, ladders=tuple(ladders)))
    return Reader(write.arrays.__getitem__)(data)


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        (lambda beta: {"point_weights": -beta}, "point_weights of the mixture holds negative numbers"),
        (lambda beta: {"point_weights": beta[:, 1:]}, "point_weights of the mixture has the shape"),
        (lambda beta: {"point_weights": 2 * beta}, "log_densities of the mixture are not the weights of its points"),
        (lambda beta: {"point_weights": None}, "a part of the mixture has neither or both kinds of weights"),
        (
            lambda beta: {"alphas": np.ones(1), "floors": np.zeros(1), "weights": np.ones((len(beta), 1))},
            "a part of the mixture has neither or both kinds of weights",
        ),
    ],
)
def test_free_weights_that_no_fit_makes_are_refused(fitted, change, clause):
    checked_mixture(with_free(fitted))
    beta = next(ladder.point_weights for ladder in fitted.kernel_.ladders if ladder.free)
    with pytest.raises(ValueError, match=clause):
        checked_mixture(with_free(fitted, **change(beta)))


@pytest.mark.usefixtures("dispatch")
def test_arrays_of_other_libraries(data, fitted, given, library):
    clf = LGCPClassifier().fit(given(data[0]), given(data[1]))
    found = clf.predict_proba(given(data[2]))
    assert Library.of(found) == Library.of(clf.relevance_) == library
    assert clf.n_support_ == fitted.n_support_
    np.testing.assert_allclose(to_numpy(found), fitted.predict_proba(data[2]), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", ["float32", "weights", "sparse"])
def test_kinds_of_input(data, kind):
    X, y, Z, z = data
    options, clf = {}, LGCPClassifier()
    if kind == "float32":
        X, Z = X.astype(np.float32), Z.astype(np.float32)
    if kind == "weights":
        options["sample_weight"] = np.random.default_rng(0).uniform(0.5, 2, size=N)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # sparse points have no whitened members
        if kind == "sparse":
            X, Z = sparse.csr_array(X), sparse.csr_array(Z)
        clf.fit(X, y, **options)
    assert clf.n_support_ > 0
    assert clf.score(Z, z) > 0.85


def test_sets_of_classes_hold_what_they_promise():
    held, sizes = [], {"wide": [], "simple": []}
    for seed in range(4):
        X, y = make_gaussian_quantiles(n_samples=600, n_features=3, n_classes=3, random_state=seed)
        for bank, found in sizes.items():
            clf = LGCPClassifier(bank=bank, selection_part=0.5, random_state=seed).fit(X[:300], y[:300])
            sets = clf.predict_set(X[300:], 0.9)
            found.append(sets.sum(axis=1).mean())
            if bank == "wide":
                assert clf.n_support_ > 0
                held.append(sets[np.arange(300), y[300:]].mean())
    # Beside the 1,200 new points, 4 x 150 points that calibrate make the share vary.
    assert np.mean(held) > 0.9 - 3 * np.sqrt(0.09 * (1 / 1200 + 1 / 600))
    assert np.mean(sizes["wide"]) < np.mean(sizes["simple"])


def test_relevance_is_one_number_per_column():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 6))
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)
    clf = LGCPClassifier().fit(X, y)
    assert clf.relevance_.shape == (6,)
    assert clf.relevance_[:2].min() > 3 * clf.relevance_[2:].max()
    assert "relevant" in clf.mixture_["representation"].tolist() or clf.n_support_
    fresh = rng.uniform(-1, 1, size=(500, 6))
    truth = ((fresh[:, 0] > 0) ^ (fresh[:, 1] > 0)).astype(int)
    assert clf.score(fresh, truth) > LGCPClassifier(bank="simple").fit(X, y).score(fresh, truth) + 0.05


def test_a_category_has_one_relevance():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    colour, other = rng.choice(["red", "green", "blue"], 200), rng.normal(size=200)
    table = pandas.DataFrame({"colour": pandas.Categorical(colour), "other": other})
    clf = LGCPClassifier().fit(table, (colour == "red").astype(int))
    assert clf.relevance_.shape == (2,)


def test_coin_labels_find_nothing():
    losses = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(120, 10)), rng.permutation(np.arange(120) % 2)
        losses.append(-np.log(LGCPClassifier().fit(X, y).predict_proba(rng.normal(size=(500, 10)))).mean())
    assert np.mean(losses) < np.log(2) + 0.01


def test_a_wrong_name_is_refused():
    with pytest.raises(ValueError, match="bank must be"):
        LGCPClassifier(bank="wild").fit(*load_iris(return_X_y=True))


def test_curvatures_that_rounding_makes_negative_do_not_stop_a_fit():
    X, y = make_circles(3, random_state=0)
    order = np.random.default_rng(0).permutation(len(y))
    model = LGCPClassifier(random_state=0).fit(X[order], y[order])
    assert model.score(X, y) == 1

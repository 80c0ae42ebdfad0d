"""After the fit: rows that come and go, isolated and far rows, interrupts, and threads that pickle."""

import copy
import pickle
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import train_test_split

from coxfield import LGCPClassifier
from coxfield.engine.training import Training
from coxfield.estimators import live_data
from coxfield.estimators.live_data import FOLLOWED
from coxfield.kernels import Member

RNG = np.random.default_rng(0)


def two_normals(n, rng=RNG, d=2):
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, d)) + 1.2 * y[:, None], y


def log_loss(clf, X, y):
    return -np.mean(clf.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(clf.classes_, y)])


def test_a_window_on_one_distribution_is_as_good_as_a_new_fit():
    X, y = two_normals(1400, np.random.default_rng(1))
    T, t = two_normals(2000, np.random.default_rng(2))
    clf = LGCPClassifier().fit(X[:200], y[:200])
    for start in range(200, 1400, 100):
        clf.partial_fit(X[start : start + 100], y[start : start + 100]).forget(np.arange(100))
    assert log_loss(clf, T, t) < 1.1 * log_loss(LGCPClassifier().fit(X[-200:], y[-200:]), T, t)


@pytest.mark.parametrize("weighted", [False, True])
def test_densities_are_those_of_the_rows_that_are_there(weighted):
    X, y = two_normals(90, np.random.default_rng(3))
    weights = RNG.uniform(0.5, 2, size=90) if weighted else None
    clf = LGCPClassifier().fit(X[:60], y[:60], None if weights is None else weights[:60])
    clf.partial_fit(X[60:], y[60:], sample_weight=None if weights is None else weights[60:]).forget(np.arange(10))
    mixture = clf.kernel_
    assert mixture.n_reference == 80
    np.testing.assert_array_equal(mixture.X, X[10:])
    fresh = mixture.over(X[10:], None if weights is None else weights[10:], np.full(80, -1))
    for one, other in zip(mixture.log_densities, fresh.log_densities, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    C = mixture(X[:7], X[10:]) * (1 if weights is None else weights[10:])
    expected = clf.mean_ + np.stack([C[:, y[10:] == c].sum(axis=1) for c in (0, 1)], axis=1)
    np.testing.assert_allclose(clf.class_scores(X[:7]), expected, rtol=1e-8)


def test_weights_follow_when_a_tenth_of_the_rows_has_changed():
    X, y = two_normals(300, np.random.default_rng(4))
    clf = LGCPClassifier().fit(X[:200], y[:200])
    del clf._n_chosen  # so that weights follow; all would be chosen again
    before = [ladder.weights for ladder in clf.kernel_.ladders]
    clf.partial_fit(X[200:215], y[200:215])
    assert all(one is ladder.weights for one, ladder in zip(before, clf.kernel_.ladders, strict=True))
    assert not hasattr(clf, "loo_error_")
    held = pickle.loads(pickle.dumps(clf))  # the count is part of the state
    for each in (clf, held):
        each.partial_fit(X[215:225], y[215:225])
        assert FOLLOWED * 225 <= 25
        assert any((one != ladder.weights).any() for one, ladder in zip(before, each.kernel_.ladders, strict=True))
        assert 0 < each.loo_error_ < 0.5
        assert each.mixture_["share"].sum() == pytest.approx(1)
    np.testing.assert_allclose(clf.class_scores(X), held.class_scores(X), rtol=1e-7)


def test_weights_of_a_part_of_the_rows_stay():
    X, y = two_normals(300, np.random.default_rng(5))
    clf = LGCPClassifier(selection_part=0.5, random_state=0).fit(X[:200], y[:200])
    weights, mean = [ladder.weights for ladder in clf.kernel_.ladders], clf.mean_
    clf.partial_fit(X[200:], y[200:])
    assert all((one == ladder.weights).all() for one, ladder in zip(weights, clf.kernel_.ladders, strict=True))
    assert (clf.mean_ == mean).all()
    assert clf.kernel_.n_reference == 300


def test_sets_of_a_part_do_not_depend_on_densities_of_the_other_rows():
    """Calibrating rows and a new row are exchangeable: swapping one for the other swaps their odds."""
    X, y = two_normals(80, np.random.default_rng(6))
    clf = LGCPClassifier(selection_part=0.5, random_state=0).fit(X, y)
    sets = clf._set_training().store.groups[0].covariance
    chosen = clf._training.rows.chosen_from
    np.testing.assert_array_equal(sets.X, X[chosen])
    k = sets.ladders[0].kernel(0)
    expected = k(sets.ladders[0].represent(X), sets.ladders[0].represent(X[chosen])).sum(axis=1) * 2
    np.testing.assert_allclose(np.exp(sets.bind(X).log_densities[0][0]), expected, rtol=1e-8)
    clf.forget(np.flatnonzero(chosen))  # none of the rows is left that the covariance was chosen from
    assert clf.predict_set(X[:5]).shape == (5, 2)


def largest(scores, middle=0.0):
    return np.abs(scores - scores.mean(axis=1, keepdims=True) - middle).max()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(12, 80),
    d=st.integers(1, 4),
    lonely=st.integers(0, 4),
    repeated=st.integers(0, 6),
    weighted=st.booleans(),
    single=st.booleans(),
)
def test_no_point_hears_more_than_the_fit_has_seen(seed, n, d, lonely, repeated, weighted, single):
    """At points left out and at copies of training points; twice as much is allowed between them."""
    rng = np.random.default_rng(seed)
    X, y = two_normals(n, rng, d)
    y[:2] = 0, 1
    X[:lonely] *= 10.0 ** rng.integers(1, 4, size=(lonely, 1))
    X[lonely : lonely + repeated] = X[-1]
    X = X.astype(np.float32 if single else float)
    clf = LGCPClassifier().fit(X, y, rng.uniform(0.3, 3, size=n) if weighted else None)
    left_out = clf.loo_class_scores().astype(float)
    middle = (left_out - left_out.mean(axis=1, keepdims=True)).mean(axis=0)
    seen = max(largest(left_out, middle), largest(clf.class_scores(X), middle), 1e-3)
    pairs = X[rng.integers(n, size=(2, 400))]
    between = pairs[0] + rng.random((400, 1)).astype(X.dtype) * (pairs[1] - pairs[0])
    around = X[rng.integers(n, size=400)] + (X.std(axis=0) * rng.normal(size=(400, d))).astype(X.dtype)
    for points in (between, around):
        assert largest(clf.class_scores(points), middle) <= 2 * seen


def test_rows_that_arrive_where_no_row_was_give_bounded_evidence():
    X, y = two_normals(200, np.random.default_rng(7))
    clf = LGCPClassifier().fit(X, y)
    far = np.array([[50.0, 50.0], [1e6, -1e6], [60.0, 50.0]])
    seen = largest(clf.class_scores(X))
    np.testing.assert_allclose(clf.class_scores(far), np.tile(clf.mean_, (3, 1)), atol=1e-3)
    clf.partial_fit(far, [0, 1, 1])
    assert largest(clf.class_scores(far)) <= 2 * seen
    assert np.isfinite(clf.class_scores(X)).all()


def shown_by(clf, X):
    """The largest evidence at rows left out, and at copies of rows."""
    left_out = clf.loo_class_scores().astype(float)
    middle = (left_out - left_out.mean(axis=1, keepdims=True)).mean(axis=0)
    return largest(left_out, middle), largest(clf.class_scores(X), middle)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(30, 90),
    d=st.integers(1, 5),
    lonely=st.integers(0, 8),
    weighted=st.booleans(),
    single=st.booleans(),
)
def test_weights_that_follow_arriving_rows_are_not_louder_than_what_was_shown(seed, n, d, lonely, weighted, single):
    rng = np.random.default_rng(seed)
    X, y = two_normals(2 * n, rng, d)
    y[:2] = 0, 1
    X[rng.integers(n, 2 * n, size=lonely)] *= rng.choice([3, 10, 30], size=(lonely, 1))
    X = X.astype(np.float32 if single else float)
    come = slice(n, 2 * n - 1)
    weights = rng.uniform(0.3, 3, size=2 * n) if weighted else np.ones(2 * n)
    clf = LGCPClassifier().fit(X[:n], y[:n], weights[:n])
    del clf._n_chosen  # so that weights follow; all would be chosen again
    at_the_fit = max(shown_by(clf, X[:n]))
    unbounded = copy.deepcopy(clf)
    del unbounded._largest_evidence
    for each in (clf, unbounded):
        each.partial_fit(X[come], y[come], sample_weight=weights[come])
    now, _ = shown_by(unbounded, X[: come.stop])
    _, heard = shown_by(clf, X[: come.stop])
    assert heard <= 2 * max(at_the_fit, now, 1e-3)


@pytest.mark.parametrize(("few", "last", "step"), [(0, 240, 1), (0, 240, 80), (1000, 176, 1), (1000, 176, 8)])
def test_half_as_many_rows_again_choose_again_what_few_could_not(monkeypatch, few, last, step):
    """And a tenth of few rows."""
    monkeypatch.setattr(live_data, "FEW", few)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(last, 5))
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)
    clf = LGCPClassifier().fit(X[:160], y[:160])
    for start in range(160, last, step):
        assert clf._n_chosen == 160
        clf.partial_fit(X[start : start + step], y[start : start + step])
    fresh = LGCPClassifier().fit(X, y)
    assert clf.mixture_["representation"].tolist() == fresh.mixture_["representation"].tolist()
    np.testing.assert_allclose(clf.predict_proba(X), fresh.predict_proba(X), rtol=1e-12)
    assert clf.loo_error_ == fresh.loo_error_


def test_a_stream_without_a_class_that_was_announced_goes_on():
    rng = np.random.default_rng(0)
    X, y = two_normals(200, rng)
    clf = LGCPClassifier().partial_fit(X[:20], y[:20], classes=[0, 1, 2])
    for start in range(20, 200, 20):
        clf.partial_fit(X[start : start + 20], y[start : start + 20])
    assert clf.predict_proba(X).shape == (200, len(clf.classes_))


def test_a_single_row_that_hears_far_more_than_was_shown_makes_the_weights_follow():
    X, y = load_breast_cancer(return_X_y=True)
    A, T, b, t = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=1)
    clf = LGCPClassifier(bank="simple").fit(A, b)
    at_the_fit, held = max(shown_by(clf, A)), copy.deepcopy(clf)
    del held._largest_evidence
    few = len(b) // 11
    assert few < FOLLOWED * len(b)
    for each in (clf, held):
        each.partial_fit(T[:few], t[:few])
    assert not hasattr(held, "loo_error_")  # too few rows for weights to follow
    assert hasattr(clf, "loo_error_")
    heard = [shown_by(each, np.concatenate([A, T[:few]]))[1] for each in (clf, held)]
    assert heard[0] <= 2 * at_the_fit < heard[1]


@pytest.mark.parametrize("part", [0.7, 0.3])
def test_weights_of_a_part_hear_of_more_rows_what_they_heard_of_the_part(part):
    """Each row counts as much as the share of the part."""
    X, y = two_normals(120, np.random.default_rng(8))
    clf = LGCPClassifier(selection_part=part, random_state=0).fit(X, y)
    chosen = clf._training.rows.chosen_from
    alone = LGCPClassifier().fit(X[chosen], y[chosen])
    share, T = chosen.mean(), RNG.normal(size=(5, 2))
    np.testing.assert_allclose(clf.mixture_["floor"] * share, alone.mixture_["floor"])
    np.testing.assert_allclose(
        clf.mixture_["weight"], alone.mixture_["weight"] * share ** (1 - 2 * alone.mixture_["alpha"])
    )
    counted = alone.kernel_.over(X, np.full(120, share), np.full(120, -1)).covariance
    sums = [share * counted(T, X[y == c]).sum(axis=1) for c in (0, 1)]
    np.testing.assert_allclose(clf.class_scores(T) - clf.mean_, np.stack(sums, axis=1), rtol=1e-7)


def test_isolated_rows_that_arrive_are_followed_by_members_with_a_floor():
    X, y = two_normals(160, np.random.default_rng(14), 5)
    X[60::17] *= 10
    clf = LGCPClassifier().fit(X[:60], y[:60])
    at_the_fit = max(shown_by(clf, X[:60]))
    assert not clf.mixture_["floor"].any()
    del clf._n_chosen  # so that weights follow; all would be chosen again
    clf.partial_fit(X[60:], y[60:])
    assert clf.mixture_["floor"].any()
    assert max(shown_by(clf, X)) <= 2 * at_the_fit
    T, t = two_normals(2000, np.random.default_rng(42), 5)
    assert log_loss(clf, T, t) < 1.1 * log_loss(LGCPClassifier().fit(X, y), T, t)


def test_members_without_a_floor_are_held_to_what_they_have_shown():
    X, y = two_normals(160, np.random.default_rng(14), 5)
    X[60::17] *= 10
    clf = LGCPClassifier([Member(transform="ranked", alphas=(0.75,))]).fit(X[:60], y[:60])
    del clf._n_chosen  # so that weights follow; all would be chosen again
    at_the_fit, unbounded = max(shown_by(clf, X[:60])), copy.deepcopy(clf)
    del unbounded._largest_evidence
    held = pickle.loads(pickle.dumps(clf))  # the bound is part of the state
    heard = [max(shown_by(each.partial_fit(X[60:], y[60:]), X)) for each in (clf, held, unbounded)]
    assert max(heard[:2]) <= 2 * at_the_fit < heard[2]


class Interrupt(BaseException):
    pass


def interrupted_at(call, entry):
    """Run `call` with an exception at the entry of the n-th function of the package; whether it came that far."""
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        if event == "call" and "coxfield" in frame.f_code.co_filename:
            count += 1
            if count == entry:
                sys.setprofile(None)
                raise Interrupt

    sys.setprofile(profile)
    try:
        call()
    except Interrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


def entries(call):
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event == "call" and "coxfield" in frame.f_code.co_filename

    sys.setprofile(profile)
    call()
    sys.setprofile(None)
    return count


@pytest.mark.parametrize("method", ["fit", "reselect", "partial_fit", "forget", "new class"])
@pytest.mark.parametrize("selection", ["mixture", None])
def test_an_interrupted_call_has_done_all_or_nothing(method, selection):
    X, y = two_normals(40, np.random.default_rng(8))
    new, labels = two_normals(6, np.random.default_rng(9))
    calls = {
        "fit": lambda clf: clf.fit(np.concatenate([X, new]), np.concatenate([y, labels])),
        "reselect": lambda clf: clf.reselect(),
        "partial_fit": lambda clf: clf.partial_fit(new, labels),
        "forget": lambda clf: clf.forget([0, 1, 2, 20, 30]),
        "new class": lambda clf: clf.partial_fit(new, np.full(6, 2), classes=[2]),
    }
    kernel = None if selection else 0.5 * RBF(0.7)
    fitted = LGCPClassifier(kernel, selection=selection, n_jobs=1).fit(X, y)

    def started():
        return pickle.loads(pickle.dumps(fitted))

    before, done = started(), started()
    total = entries(lambda: calls[method](done))
    outcomes = [before.class_scores(X), done.class_scores(X)]
    for entry in np.unique(np.geomspace(1, total, 40).round().astype(int)).tolist():
        clf = started()
        interrupted_at(lambda clf=clf: calls[method](clf), entry)
        scores = clf.class_scores(X)
        assert any(scores.shape == one.shape and np.allclose(scores, one, rtol=1e-9) for one in outcomes), entry


def test_a_call_that_fails_changes_nothing(monkeypatch):
    X, y = two_normals(60, np.random.default_rng(10))
    clf = LGCPClassifier().fit(X, y)
    before = dict(clf.__dict__)

    def fails(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(Training, "of", fails)
    for call in (clf.reselect, lambda: clf.fit(X, y)):
        with pytest.raises(MemoryError):
            call()
        assert clf.__dict__ == before


def test_pickling_changes_nothing_and_copies_share_nothing():
    X, y = two_normals(50, np.random.default_rng(11))
    clf = LGCPClassifier(RBF(0.5), selection=None).fit(X, y)
    before = dict(clf.__dict__)
    pickle.dumps(clf)
    twin = copy.copy(clf)
    assert all(clf.__dict__[name] is value for name, value in before.items())
    scores = twin.class_scores(X)
    clf.forget(np.arange(10))
    np.testing.assert_array_equal(twin.class_scores(X), scores)


def test_a_thread_that_pickles_while_another_updates_loses_nothing():
    X, y = two_normals(600, np.random.default_rng(12))
    clf = LGCPClassifier(RBF(0.5), selection=None, n_jobs=1).fit(X[:200], y[:200])
    pickles, stop = [], threading.Event()

    def keep_pickling():
        while not stop.is_set():
            pickles.append(pickle.dumps(clf))

    thread = threading.Thread(target=keep_pickling)
    thread.start()
    try:
        for start in range(200, 600, 4):
            clf.partial_fit(X[start : start + 4], y[start : start + 4])
            clf.forget(np.arange(2))
    finally:
        stop.set()
        thread.join()
    assert len(clf.y_fit_) == 400
    np.testing.assert_array_equal(clf.X_fit_, X[200:])
    for content in pickles[:: max(1, len(pickles) // 20)]:
        found = pickle.loads(content)
        first = int(np.flatnonzero((found.X_fit_[0] == X).all(axis=1))[0])
        np.testing.assert_array_equal(found.X_fit_, X[first : first + len(found.y_fit_)])
        assert (found.y_fit_ == y[first : first + len(found.y_fit_)]).all()

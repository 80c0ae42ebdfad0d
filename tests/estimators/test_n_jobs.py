"""`n_jobs=None` follows joblib, and a number is kept to, in fit and in predict."""

import joblib
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier, SLGCPClassifier, threads
from coxfield.field import LabelField
from tolerances import assert_close

RNG = np.random.default_rng(0)
Y = np.arange(40) % 2
X = RNG.normal(size=(40, 2)) + 2 * Y[:, None]
SOME = np.where(np.arange(40) < 8, Y, -1)
ESTIMATORS = {
    "supervised": (LGCPClassifier(), Y),
    "learned": (LGCPClassifier(selection="pseudo_likelihood"), Y),
    "semi-supervised": (SLGCPClassifier(0.3 * RBF(0.7), length_scales=[1.0, 0.7]), SOME),
    "marginals": (
        SLGCPClassifier(0.3 * RBF(0.7), selection=None, inference="marginals", n_draws=16, random_state=0),
        SOME,
    ),
}


@pytest.fixture
def counts(monkeypatch):
    """How many threads were to be taken, whenever somebody asked."""
    heard, count = [], threads.count

    def listening():
        heard.append(count())
        return heard[-1]

    monkeypatch.setattr(threads, "count", listening)
    return heard


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("clf", "y"), ESTIMATORS.values(), ids=ESTIMATORS)
@pytest.mark.parametrize(("around", "n_jobs", "taken"), [(1, None, 1), (3, None, 3), (1, 2, 2), (3, 1, 1)])
def test_none_follows_the_context_and_a_number_is_kept_to(clf, y, around, n_jobs, taken, counts):
    clf.set_params(n_jobs=n_jobs)
    with joblib.parallel_config(backend="threading", n_jobs=around):
        clf.fit(X, y).predict_proba(X)
    assert taken in counts
    assert set(counts) <= {1, taken}  # work in small steps is done by one thread


def test_a_field_follows_too(counts):
    with joblib.parallel_config(backend="threading", n_jobs=3):
        LabelField.from_points(X, RBF(1.0), SOME)
        LabelField.from_points(X, RBF(1.0), SOME, n_jobs=2)
    assert set(counts) == {3, 2}


def test_jobs_of_joblib_may_fit_at_the_same_time():
    def probabilities(seed):
        order = np.random.default_rng(seed).permutation(40)
        return LGCPClassifier(RBF(1.0), selection=None).fit(X[order], Y[order]).predict_proba(X)

    found = joblib.Parallel(n_jobs=3, backend="threading")(joblib.delayed(probabilities)(seed) for seed in range(6))
    for one in found:
        assert_close(one, probabilities(0), terms=40, condition=4 * np.square(X).sum(axis=1).max())

"""What columns are worth, beside a plain computation and where the answer is known."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.estimators import reasons
from coxfield.estimators.reasons import FEWEST
from coxfield.utils.numbers import weighted_mean


def made_up(n=240, seed=0):
    """A category that matters most, a number that matters less, and columns of noise, some of them with blanks."""
    rng = np.random.default_rng(seed)
    level, number = rng.integers(3, size=n), rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "number": number,
            "level": np.array(["u", "v", "w"])[level],
            "silence": rng.choice(["x", "y"], n),
        }
    )
    frame.loc[rng.random(n) < 0.2, "noise"] = np.nan
    y = 3 * (level == 1) + 1.2 * number + rng.logistic(scale=0.4, size=n) > 1
    return frame, y.astype(int)


def test_the_order_is_right_and_noise_is_worth_nothing():
    frame, y = made_up()
    found = LGCPClassifier().fit(frame, y).feature_importance()
    assert found["column"].tolist() == ["noise", "number", "level", "silence"]
    assert np.argsort(-found["importance"])[:2].tolist() == [2, 1]
    assert (found["importance"] > 3 * found["standard_error"]).tolist() == [False, True, True, False]


def test_one_kernel_by_double_loops():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(7, 2)), np.array([0, 1, 0, 1, 1, 0, 1])
    found = LGCPClassifier(RBF(0.8), selection=None, mean={1: 0.3}).fit(X, y).feature_importance(7)

    def loss(j, x):
        F = np.array([0.5, 0.8])
        for i in range(7):
            if i != j:
                F[y[i]] += np.exp(-np.sum((x - X[i]) ** 2) / (2 * 0.64))
        return np.log(np.exp(F).sum()) - F[y[j]]

    draws, expected = np.random.default_rng(0), []
    draws.permutation(7)  # all rows are taken
    for k in range(2):
        moved = X.copy()
        moved[:, k] = X[draws.permutation(7)][:, k]
        expected.append(np.mean([loss(j, moved[j]) - loss(j, X[j]) for j in range(7)]))
    np.testing.assert_allclose(found["importance"], expected, rtol=1e-9)


def test_cells_as_they_are_give_the_leave_one_out_loss():
    frame, y = made_up(120)
    clf = LGCPClassifier().fit(frame, y)
    rows = np.array([3, 40, 7, 119])
    losses = clf._loo_losses(rows, clf.X_fit_[rows])
    np.testing.assert_allclose(losses, -np.log(clf.loo_predict_proba()[rows, y[rows]]), rtol=1e-9)


def test_rows_are_drawn_and_weights_count():
    frame, y = made_up(400)
    clf = LGCPClassifier().fit(frame, y, sample_weight=np.where(np.arange(400) % 7 == 0, 0, 1.5))
    few, many = clf.feature_importance(FEWEST), clf.feature_importance()
    assert few["standard_error"][2] > many["standard_error"][2]
    np.testing.assert_array_equal(few["importance"], clf.feature_importance(FEWEST, random_state=0)["importance"])


def test_columns_one_by_one_are_worth_the_same(monkeypatch):
    frame, y = made_up(150)
    clf = LGCPClassifier().fit(frame, y)
    together = clf.feature_importance()
    monkeypatch.setattr(reasons, "TOGETHER", 1)
    apart = clf.feature_importance()
    for name in ("importance", "standard_error"):
        np.testing.assert_allclose(together[name], apart[name], rtol=1e-9, atol=1e-14)


def test_a_column_of_equal_cells_is_worth_nothing_at_all():
    frame, y = made_up(120)
    found = LGCPClassifier().fit(frame.assign(level="u"), y).feature_importance()
    assert found["importance"][2] == found["standard_error"][2] == 0


def test_arrays_have_places_and_sparse_ones_are_refused():
    X = np.random.default_rng(0).normal(size=(40, 2))
    clf = LGCPClassifier(selection="loo_error").fit(X, X[:, 0] > 0)
    assert clf.feature_importance()["column"].tolist() == [0, 1]
    with pytest.raises(ValueError, match="needs dense points"):
        LGCPClassifier(selection="loo_error").fit(sparse.csr_array(X), X[:, 0] > 0).feature_importance()


@pytest.mark.parametrize("size", [1.0, 1e-200, 1e300])
def test_a_mean_and_its_error_at_any_magnitude(size):
    values, weights = np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 2.0])
    wanted = np.array([2.75, np.sqrt(1.75**2 + 0.75**2 + 4 * 1.25**2) / 4])
    np.testing.assert_allclose(weighted_mean(size * values, weights), size * wanted, rtol=1e-14)

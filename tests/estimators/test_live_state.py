import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield import LGCPClassifier
from coxfield.estimators.live_data import check_places
from tolerances import assert_close

X, Y = np.random.default_rng(0).normal(size=(12, 2)), np.array(["b", "d", "f"])[np.arange(12) % 3]


def state(**options):
    return LGCPClassifier(**({"kernel": RBF(1.0), "selection": None} | options)).fit(X, Y)._live_state()


def test_announced_classes_have_their_places_among_the_others():
    found = state(mean={"b": 1.0, "d": 2.0, "f": 3.0}).announcing(np.array(["a", "d", "e"]))
    assert found.classes.tolist() == ["a", "b", "d", "e", "f"]
    assert found.announced.tolist() == [True, False, True, True, False]
    assert found.arrived.tolist() == [True, False, False, True, False]
    assert found.mean.tolist() == [0.0, 1.0, 2.0, 0.0, 3.0]
    assert found.classes[found.training.rows.y].tolist() == Y.tolist()
    assert found.training.store.n_classes == 5


def test_means_of_classes_that_arrived_are_given_or_follow_their_shares():
    found = state(mean=7.0).announcing(np.array(["a"]))
    assert found.settled_mean(0.5, shares=False).tolist() == [0.5, 7.0, 7.0, 7.0]
    assert found.settled_mean({"a": 0.25}, shares=False).tolist() == [0.25, 7.0, 7.0, 7.0]
    assert_close(found.settled_mean(0.5, shares=True), [0.5 + np.log(1 / 12), 7.0, 7.0, 7.0])  # as if it had one row
    grown = found.grown(X[:4], np.zeros(4, int), None)
    assert_close(grown.settled_mean(0.0, shares=True), [np.log(4 / 16), 7.0, 7.0, 7.0])
    assert state(mean=7.0).settled_mean(0.5, shares=True).tolist() == [7.0] * 3


def test_a_class_without_rows_leaves_unless_it_was_announced():
    places = np.flatnonzero(Y == "d")
    left = state().without(places)
    assert left.classes.tolist() == ["b", "f"]
    assert left.classes[left.training.rows.y].tolist() == Y[Y != "d"].tolist()
    stays = state().announcing(np.array(["d"])).without(places)
    assert stays.classes.tolist() == ["b", "d", "f"]


def test_kernels_of_classes_stay_theirs():
    kernels = {"b": RBF(1.0), "d": Matern(2.0), "f": RBF(3.0)}
    left = state(kernel=kernels).without(np.flatnonzero(Y == "b"))
    assert [covariance.kernel for covariance in left.covariances] == [kernels["d"], kernels["f"]]


def test_places_are_numbers_or_a_mask():
    assert check_places([3, 1, 3], 5).tolist() == [1, 3]
    assert check_places(np.array([False, True, True]), 3).tolist() == [1, 2]
    assert check_places([], 3).tolist() == []
    with pytest.raises(ValueError, match="there is no training row 5: rows are counted from 0 to 4"):
        check_places([5], 5)

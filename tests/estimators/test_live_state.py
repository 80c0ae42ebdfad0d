import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.estimators.live_state import check_places
from tolerances import assert_close

X = np.random.default_rng(0).normal(size=(12, 2))
Y = np.array(list("aabb" * 3))


def state(**options):
    return LGCPClassifier(**({"kernel": RBF(1.0), "selection": None} | options)).fit(X, Y)._live_state()


def test_classes_that_are_announced_have_their_place_among_the_others():
    found = state().announcing(np.array(["a", "aa", "c"]))
    assert found.classes.tolist() == ["a", "aa", "b", "c"]
    assert found.announced.tolist() == [True, True, False, True]
    assert found.arrived.tolist() == [False, True, False, True]
    assert found.training.rows.y.tolist() == [0 if label == "a" else 2 for label in Y]


def test_a_class_without_a_kernel_of_its_own_is_refused():
    with pytest.raises(ValueError, match="the class 'c' has no kernel, because each class has one of its own"):
        state(kernel={"a": RBF(1.0), "b": RBF(2.0)}).announcing(np.array(["c"]))


def test_a_class_leaves_with_its_last_row_unless_it_was_announced():
    rows = np.flatnonzero(Y == "b")
    plain = state().announcing(np.array(["c", "d"]))
    assert plain.without(rows).classes.tolist() == ["a", "c", "d"]
    assert state().announcing(np.array(["b"])).without(rows).classes.tolist() == ["a", "b"]


def test_means_of_classes_that_have_arrived():
    found = state().announcing(np.array(["c"]))
    assert found.settled_mean({"c": 2.0}, shares=False).tolist() == [0, 0, 2]
    grown = found.grown(X[:3] + 1, np.full(3, 2), None)
    assert_close(grown.settled_mean(0.5, shares=True)[2], 0.5 + np.log(3 / 15), terms=3)
    assert_close(found.settled_mean(0.0, shares=True)[2], np.log(1 / 12), terms=3)  # no row counts like one


def test_too_few_rows_may_not_be_left():
    with pytest.raises(ValueError, match="6 training rows of 1 classes would be left"):
        state().check_what_is_left(np.flatnonzero(Y == "a"))
    part = state(kernel=None, selection="mixture", selection_part=0.5, random_state=0)
    with pytest.raises(ValueError, match="none of the rows from which the covariance was chosen would be left"):
        part.check_what_is_left(np.flatnonzero(part.training.rows.chosen_from))


@pytest.mark.parametrize(("rows", "places"), [([3, 1, 1], [1, 3]), (np.eye(5, dtype=bool)[2], [2]), ([], [])])
def test_places(rows, places):
    assert check_places(rows, 5).tolist() == places

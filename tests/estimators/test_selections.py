import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = np.arange(40) % 2


def test_a_part_of_the_rows_learns_a_mixture_in_which_each_row_counts_as_much_as_the_part_has_of_all():
    clf = LGCPClassifier(selection_part=0.5, random_state=3).fit(X, Y)
    chosen = clf._training.rows.chosen_from
    part, whole = LGCPClassifier().fit(X[chosen], Y[chosen]).mixture_, clf.mixture_
    for column in ("length_scale", "alpha"):
        np.testing.assert_array_equal(whole[column], part[column])
    np.testing.assert_allclose(whole["floor"], part["floor"] / 0.5)
    np.testing.assert_allclose(whole["weight"], part["weight"] * 0.5 ** (1 - 2 * part["alpha"]))


@pytest.mark.parametrize("selection", ["loo_error", "loo_log_loss", "pseudo_likelihood"])
def test_a_part_of_the_rows_chooses_as_if_there_were_no_others(selection):
    clf = LGCPClassifier(selection=selection, selection_part=0.5, random_state=3).fit(X, Y)
    chosen = clf._training.rows.chosen_from
    assert chosen.sum() == 20
    alone = LGCPClassifier(selection=selection).fit(X[chosen], Y[chosen])
    assert repr(clf.kernel_) == repr(alone.kernel_)
    np.testing.assert_array_equal(clf.mean_, alone.mean_)
    assert len(clf.y_fit_) == 40


def test_a_kernel_that_is_given_needs_no_part():
    clf = LGCPClassifier(RBF(1.0), selection=None, selection_part=0.5).fit(X, Y)
    assert clf._training.rows.chosen_from.all()


def test_at_least_one_row_is_left_to_calibrate():
    clf = LGCPClassifier(selection_part=0.999, random_state=0).fit(X, Y)
    assert clf._training.rows.chosen_from.sum() == 39


def test_a_part_without_a_class_is_refused():
    with pytest.raises(ValueError, match=r"selection_part=0\.05 has drawn 2 of 40 rows and none of the class"):
        LGCPClassifier(selection_part=0.05, random_state=0).fit(X, np.where(np.arange(40) < 2, 1, 0))


@pytest.mark.parametrize("part", [0.0, -0.5, 1.5, np.nan, "half", True, None])
def test_a_part_that_is_no_share_is_refused(part):
    with pytest.raises(ValueError, match="selection_part must be a number above 0 and at most 1, got"):
        LGCPClassifier(selection_part=part).fit(X, Y)

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.datasets import make_circles
from coxfield.plotting import figure, plot_selection_path


def test_selection_path_is_drawn_as_it_was_tried():
    X, y = make_circles(2, 30, random_state=0)
    clf = LGCPClassifier(selection="loo_error").fit(X, y)
    ax = plot_selection_path(clf)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), 100 * clf.selection_path_["loo_error"])
    assert ax.get_xscale() == "log"
    assert ax.lines[1].get_xdata()[0] == clf.selection_path_["length_scale"][clf.selection_path_["chosen"]]


def test_cross_validated_path_is_drawn_where_it_was_tried():
    X, truth = make_circles(2, random_state=0)
    y = np.where(np.arange(len(truth)) % 20 == 0, truth, -1)
    clf = SLGCPClassifier(inference="map", length_scales=[30.0, 1.0, 0.7]).fit(X, y)
    ax = plot_selection_path(clf)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), 100 * clf.selection_path_["cv_error"])
    assert "cross-validation" in ax.get_ylabel()
    assert np.isnan(ax.lines[0].get_ydata()[0])


def test_there_is_no_path_without_a_selection():
    X, y = make_circles(2, 30, random_state=0)
    with pytest.raises(ValueError, match='selection=None; give selection="loo_error", or "cv_error" to an SLGCP'):
        plot_selection_path(LGCPClassifier(RBF(1.0), selection=None).fit(X, y))


def test_a_mixture_has_no_path_but_another_picture():
    X, y = make_circles(2, 30, random_state=0)
    with pytest.raises(ValueError, match="fitted with selection='mixture'; use plot_mixture"):
        plot_selection_path(LGCPClassifier().fit(X, y))


def test_pairs_of_length_scale_and_variance_are_points_coloured_by_their_loss():
    X, truth = make_circles(2, 30, random_state=0)
    y = np.where(np.arange(len(truth)) % 6 == 0, truth, -1)
    clf = SLGCPClassifier(inference="marginals", length_scales=[1.0, 0.7], random_state=0).fit(X, y)
    path = clf.selection_path_
    path["trivial"] = np.arange(len(path["trivial"])) == (1 if path["chosen"][0] else 0)
    ax = plot_selection_path(clf, figure().subplots())
    points, crosses, ring = ax.collections
    usual = ~path["trivial"]
    at = np.column_stack([path["length_scale"], path["variance"]])
    np.testing.assert_array_equal(points.get_offsets(), at[usual])
    np.testing.assert_array_equal(points.get_array(), path["cv_log_loss"][usual])
    np.testing.assert_array_equal(crosses.get_offsets(), at[~usual])
    np.testing.assert_array_equal(ring.get_offsets(), at[path["chosen"]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length scale", "signal variance")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[0] == "one class takes all"
    assert names[1].startswith("chosen: length scale ")

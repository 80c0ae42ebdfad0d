"""Pictures of sets show every set that there is, with a look of its own."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.datasets import load_synth
from coxfield.plotting import figure
from coxfield.plotting.guaranteed_sets import plot_sets


class Stripes(BaseEstimator):
    """A classifier whose sets are stripes from left to right."""

    n_features_in_ = 2

    def __init__(self, sets):
        self.sets = np.array(sets, dtype=bool)
        self.classes_ = np.array([f"c{k}" for k in range(self.sets.shape[1])])

    def fit(self, X, y):
        return self

    def predict_set(self, X, coverage, *, per_class):
        left, right = X[:, 0].min(), X[:, 0].max()
        stripe = np.minimum((X[:, 0] - left) / (right - left) * len(self.sets), len(self.sets) - 1)
        return self.sets[stripe.astype(int)]


SQUARE = np.array([[0.0, 0.0], [1.0, 1.0]])


def drawn(classifier, X=SQUARE, y=None, **options):
    return plot_sets(classifier, X, y, ax=figure().subplots(), resolution=24, **options)


def names(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_sets_are_ordered_by_size_and_the_empty_set_is_last():
    ax = drawn(Stripes([[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0], [0, 1, 1], [1, 0, 1]]))
    assert names(ax) == ["{c0}", "{c1}", "{c0, c2}", "{c1, c2}", "{c0, c1, c2}", "empty"]


def test_each_kind_of_set_has_a_look_of_its_own():
    ax = drawn(Stripes([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 1]]))
    looks = {(patch.get_facecolor(), patch.get_hatch()) for patch in ax.get_legend().get_patches()}
    assert len(looks) == 5


def test_regions_are_where_the_sets_are():
    ax = drawn(Stripes([[1, 0], [0, 1]]))
    regions = [each for each in ax.collections if isinstance(each, mpl.contour.QuadContourSet)]
    middles = [np.mean(region.get_paths()[0].get_extents().intervalx) for region in regions]
    assert middles[0] < 0.5 < middles[1]


def test_points_are_drawn_if_labels_are_given():
    X, y, *_ = load_synth(return_X_y=True)
    clf = LGCPClassifier(0.3 * RBF(0.2), selection=None).fit(X, y)
    ax = drawn(clf, X, y, coverage=0.95, per_class=True)
    scattered = [each for each in ax.collections if isinstance(each, mpl.collections.PathCollection)]
    assert sum(len(each.get_offsets()) for each in scattered) == len(y)
    assert ax.get_title() == "sets that cover 95 %"
    ax.figure.canvas.draw()


def test_the_plane_is_needed():
    X = np.random.default_rng(0).normal(size=(20, 3))
    clf = LGCPClassifier(RBF(1.0), selection=None).fit(X, np.arange(20) % 2)
    with pytest.raises(ValueError, match=r"X has the shape \(20, 3\) and the classifier has 3 features: fit it to two"):
        plot_sets(clf, X)


def test_the_classifier_must_be_fitted():
    with pytest.raises(NotFittedError):
        plot_sets(LGCPClassifier(), SQUARE)

"""Pictures of sets show every set that there is, with a look of its own; pictures of doubtful labels."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.datasets import load_synth, make_circles
from coxfield.plotting import figure
from coxfield.plotting.figures import style
from coxfield.plotting.guaranteed_sets import plot_label_quality, plot_sets


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


def fitted(X, y, length_scale=1.0):
    return LGCPClassifier(RBF(length_scale), selection=None).fit(X, y)


def rings(n_changed=2):
    """Points on two rings, of which a few have the other label."""
    X, y = make_circles(2, 60, random_state=0)
    y[:n_changed] = 1 - y[:n_changed]
    return X, y


def pictures(n=60):
    X, y = load_digits(return_X_y=True)
    return fitted(X[:n], y[:n], 20.0)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_doubtful_points_have_rings_in_the_colour_of_the_suggested_label(container):
    X, y = rings()
    ax = plot_label_quality(fitted(container(X), y), 2)
    *points, ring = ax.collections
    assert sum(len(drawn.get_offsets()) for drawn in points) == len(X)
    assert np.array_equal(np.sort(ring.get_offsets(), axis=0), np.sort(X[:2], axis=0))
    assert y[0] == y[1]
    assert to_hex(ring.get_edgecolors()[0]).upper() == style(1 - y[0])[0]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["0", "1", f"doubtful, {1 - y[0]} suggested"]


def test_classes_may_have_names():
    X, y = rings()
    ax = plot_label_quality(fitted(X, y), 2, names=["in", "out"])
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["in", "out", f"doubtful, {['in', 'out'][1 - y[0]]} suggested"]


@pytest.mark.parametrize("n", [1, 5, 12])
def test_pictures_are_in_the_order_of_their_ranks(n):
    clf = pictures()
    ax, quality = plot_label_quality(clf, n), clf.label_quality()
    order = np.argsort(quality["rank"])[:n]
    assert len(ax.images) == len(ax.texts) == n
    for k, drawn, text in zip(order, ax.images, ax.texts, strict=True):
        assert np.array_equal(drawn.get_array(), clf.X_fit_[k].reshape(8, 8))
        assert text.get_text() == f"given: {quality['label'][k]}\nsuggested: {quality['suggested'][k]}"


def test_pictures_do_not_overlap_and_are_inside_the_axes():
    ax = plot_label_quality(pictures(), 7)
    boxes = np.array([drawn.get_extent() for drawn in ax.images])  # left, right, bottom, top; up is less
    for k, (left, right, bottom, top) in enumerate(boxes):
        others = np.delete(boxes, k, axis=0)
        beside = (others[:, 0] > right) | (others[:, 1] < left) | (others[:, 3] > bottom) | (others[:, 2] < top)
        assert beside.all()
    assert ax.get_xlim()[0] < boxes[:, 0].min() < boxes[:, 1].max() < ax.get_xlim()[1]
    assert ax.get_ylim()[0] > boxes[:, 2].max() > boxes[:, 3].min() > ax.get_ylim()[1]


def test_pictures_need_not_be_square():
    X, y = np.random.default_rng(0).normal(size=(20, 6)), np.arange(20) % 2
    ax = plot_label_quality(fitted(X, y), 3, image_shape=(2, 3))
    assert ax.images[0].get_array().shape == (2, 3)


def test_other_points_are_not_drawn():
    X, y = np.random.default_rng(0).normal(size=(20, 16)), np.arange(20) % 2
    with pytest.raises(ValueError, match="points with 16 features are neither in the plane nor square pictures"):
        plot_label_quality(fitted(X, y))
    with pytest.raises(ValueError, match=r"shape \(3, 5\) does not have 16 pixels"):
        plot_label_quality(fitted(X, y), image_shape=(3, 5))


def test_at_least_one_label_is_shown():
    with pytest.raises(ValueError, match="n is 0"):
        plot_label_quality(fitted(*rings()), 0)


def test_the_classifier_of_doubtful_labels_must_be_fitted():
    with pytest.raises(NotFittedError):
        plot_label_quality(LGCPClassifier())

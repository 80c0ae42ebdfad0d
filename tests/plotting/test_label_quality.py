import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.datasets import make_circles
from coxfield.plotting.figures import style
from coxfield.plotting.guaranteed_sets import plot_label_quality


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


def test_the_classifier_must_be_fitted():
    with pytest.raises(NotFittedError):
        plot_label_quality(LGCPClassifier())

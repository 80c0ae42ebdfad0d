"""Figures, their styles, and files of pictures."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.datasets import make_circles
from coxfield.plotting import check_picture, encode, figure, plot_points, plot_probability
from coxfield.plotting.figures import COLOURS, MARKERS, are_pictures, draw_pictures, image_shape, style


def test_figures_for_files_leave_pyplot_alone():
    import matplotlib.pyplot as plt

    X = np.eye(2)
    fig = figure()
    plot_points(X, X[:, 0], fig.subplots())
    assert encode(fig, Path("a.png")).startswith(b"\x89PNG")
    assert plt.get_fignums() == []
    assert plot_points(X, X[:, 0]).figure.number in plt.get_fignums()


def test_pictures_are_refused_before_they_are_drawn(tmp_path, monkeypatch):
    check_picture(tmp_path / "a.SVG")
    with pytest.raises(ValueError, match=r"a\.jpeg is none of \.png, \.pdf, \.svg"):
        check_picture(tmp_path / "a.jpeg")
    with pytest.raises(ValueError, match="There is no folder"):
        check_picture(tmp_path / "absent" / "a.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install coxfield\[plot\]"):
        check_picture(tmp_path / "a.png")


def test_no_two_of_the_first_64_classes_look_alike():
    assert len({style(code) for code in range(64)}) == 64
    assert style(0) == (COLOURS[0], MARKERS[0])


def test_the_ninth_class_has_another_colour_than_the_first():
    assert len({style(code)[0] for code in range(16)}) == 16


def test_probability_picture_covers_the_points_and_shows_the_asked_class():
    X, y = make_circles(3, 30, random_state=0)
    clf = LGCPClassifier(RBF(1.0), selection=None).fit(X, y)
    ax = plot_points(X, y, plot_probability(clf, X, label=1, resolution=30))
    assert len(ax.collections) >= 4
    values = np.asarray(ax.collections[0].get_array())
    assert values.max() > 0.9
    assert values.min() < 0.1
    assert ax.get_xlim()[0] < X[:, 0].min()


def test_missing_matplotlib_is_said_plainly(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install coxfield\[plot\]"):
        plot_points(np.zeros((2, 2)), np.array([0, 1]))


def test_large_squares_are_pictures():
    assert [d for d in (2, 49, 63, 64, 65, 784) if are_pictures(d)] == [64, 784]


def test_the_shape_is_that_given_or_that_of_a_square():
    assert image_shape(64) == (8, 8)
    assert image_shape(6, (2, 3)) == (2, 3)
    with pytest.raises(ValueError, match=r"shape \(3, 5\) does not have 16 pixels: give another image_shape"):
        image_shape(16, (3, 5))
    with pytest.raises(ValueError, match=r"shape \(4, 4\) does not have 17 pixels"):
        image_shape(17)


def test_pictures_are_at_their_places_below_their_texts():
    pictures = np.arange(18.0).reshape(3, 2, 3)
    ax = draw_pictures(figure().subplots(), pictures, ["a", "b", "c"], [(0, 0), (0, 1), (2, 1)])
    a, b, c = ([*drawn.get_extent()] for drawn in ax.images)  # left, right, bottom, top; up is less
    assert a[3] == b[3]
    assert b[:2] == c[:2]
    assert a[1] < b[0]
    assert b[2] < c[3]
    for drawn, text, picture in zip(ax.images, ax.texts, pictures, strict=True):
        assert np.array_equal(drawn.get_array(), picture)
        assert drawn.get_clim() == (0.0, 17.0)  # the same grey is the same number everywhere
        assert text.get_position()[1] < drawn.get_extent()[3]
    assert ax.get_xlim()[0] < a[0] < b[1] < ax.get_xlim()[1]
    assert ax.get_ylim()[0] > c[2] > a[3] > ax.get_ylim()[1]

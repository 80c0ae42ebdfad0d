"""Pictures of patterns and intensities show what they are pictures of."""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.plotting import COLOURS, draw_sample, encode, figure, plot_map, processes
from coxfield.process import (
    Envelope,
    Grid,
    LogGaussianCoxProcess,
    Pattern,
    PolygonWindow,
    l_function,
    pair_correlation,
    poisson_process,
)

PROCESS = LogGaussianCoxProcess(RBF(1.0), mean=1.0)


def test_points_of_each_mark_in_their_window():
    pattern = Pattern([[1, 1], [2, 2], [3, 1]], [(0, 4), (0, 3)], marks=["cat", "dog", "cat"])
    ax = pattern.plot()
    assert ax.get_xlim() == (0, 4)
    assert ax.get_ylim() == (0, 3)
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), [[1, 1], [3, 1]])
    np.testing.assert_array_equal(ax.collections[1].get_offsets(), [[2, 2]])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["cat", "dog"]
    colours = [mpl.colors.to_hex(c.get_facecolor()[0]).upper() for c in ax.collections]
    assert colours == list(COLOURS[:2])


@pytest.mark.parametrize("window", [(0, 3), [(0, 3), (0, 2)], [(0, 1), (0, 1), (0, 2)]])
def test_a_sample_of_any_dimension_is_drawn(window):
    pattern = PROCESS.sample(window, resolution=16, random_state=0)
    figure = draw_sample(pattern)
    points = figure.axes[-1 if len(figure.axes) < 3 else 1].collections[0].get_offsets()
    assert len(points) == len(pattern)
    np.testing.assert_array_equal(points[:, 0], pattern.points[:, 0])
    assert encode(figure, Path("sample.png")).startswith(b"\x89PNG")


def test_picture_of_an_intensity_is_upright():
    pattern = PROCESS.sample([(0, 4), (0, 2)], resolution=8, random_state=0)
    image = pattern.intensity.plot().get_images()[0]
    np.testing.assert_array_equal(image.get_array(), pattern.intensity.values.T)
    assert image.origin == "lower"
    assert image.get_extent() == [0, 4, 0, 2]


def test_an_empty_pattern_is_drawn():
    assert Pattern([], [(0, 1), (0, 1)]).plot().get_xlim() == (0, 1)
    assert Pattern([], (0, 1), marks=[]).plot().get_xlim() == (0, 1)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="points of 4 coordinates cannot be drawn"):
        poisson_process(1.0, [(0, 1)] * 4, random_state=0).plot()
    with pytest.raises(ValueError, match="an intensity in three dimensions cannot be drawn"):
        PROCESS.sample([(0, 1)] * 3, resolution=4, random_state=0).intensity.plot()
    with pytest.raises(ValueError, match="has no intensity"):
        draw_sample(poisson_process(1.0, [(0, 1)] * 2, random_state=0))


def test_missing_matplotlib_is_said_plainly(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install coxfield\[plot\]"):
        Pattern([[0.5]], (0, 1)).plot()


@pytest.mark.parametrize("window", [[(0, 1)], [(0, 1), (0, 1)], [(0, 1)] * 3])
def test_of_very_many_points_some_are_drawn(window, monkeypatch):
    monkeypatch.setattr(processes, "MOST", 50)
    points = np.random.default_rng(0).random((200, len(window)))
    ax = Pattern(points, window, marks=np.arange(200) % 2).plot()
    drawn = [collection.get_offsets() for collection in ax.collections]
    assert sum(map(len, drawn)) == 50
    assert np.isin(np.round(np.concatenate(drawn)[:, 0], 9), np.round(points[:, 0], 9)).all() or len(window) == 3


def test_summaries_envelopes_and_maps_are_drawn():
    pattern = poisson_process(100.0, [(0, 1), (0, 1)], random_state=0)
    g = pair_correlation(pattern)
    ax = g.plot(figure().subplots())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("distance r", "pair correlation g(r)")
    curve = ax.get_lines()[-1].get_ydata()
    np.testing.assert_array_equal(curve, g.values)
    ax = l_function(pattern).plot(figure().subplots())
    assert ax.get_ylabel() == "L(r) - r"
    one = np.ones(3)
    envelope = Envelope("pcf", one.cumsum(), one, 0 * one, 2 * one, one, 0.25, (0.2, 0.3), 0.95, 39, "m")
    ax = envelope.plot(figure().subplots())
    assert (ax.get_title(), ax.get_xlabel()) == ("p = 0.25", "distance r (m)")
    ax = plot_map(Grid.over([(0, 2), (0, 1)], 4), np.arange(8.0).reshape(4, 2), "height", figure().subplots())
    assert ax.images[0].get_array().shape == (2, 4)
    plot_map(Grid.over((0, 2), 4), np.arange(4.0), "height", figure().subplots())
    with pytest.raises(ValueError, match="three dimensions"):
        plot_map(Grid.over([(0, 1)] * 3, 2), np.ones((2, 2, 2)), "height")


def test_the_outline_of_a_polygon_is_drawn():
    ell = PolygonWindow([(0, 0), (2, 0), (2, 1), (0, 1)], [[(0.5, 0.2), (1, 0.2), (1, 0.6)]])
    ax = poisson_process(50.0, ell, random_state=0).plot(figure().subplots())
    assert len(ax.get_lines()) == 2

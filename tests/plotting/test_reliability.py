import numpy as np

from coxfield.calibration import reliability
from coxfield.plotting import COLOURS, figure, plot_reliability


def forecasts(n):
    """Labels drawn from probabilities, and these probabilities."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), size=n)
    return (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1), truth


def test_diagram_shows_confidence_against_accuracy():
    found = reliability(*forecasts(300))
    fig = figure()
    ax = plot_reliability({"one": found, "two": found}, fig.subplots())
    full = found.counts > 0
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), found.confidence[full])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), found.accuracy[full])
    assert ax.lines[0].get_color() == COLOURS[0]
    fig.draw_without_rendering()
    assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1 - 1
    assert "classifier: log loss" in plot_reliability(found, fig.add_subplot()).get_legend().get_texts()[0].get_text()

"""Pictures of mixtures, of what was tried, and of reliability: every member is shown, and no marker hides another."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.calibration import reliability
from coxfield.datasets import make_circles
from coxfield.plotting import COLOURS, MARKERS, figure, plot_mixture, plot_reliability, plot_selection_path


def members(representation, length_scale, alpha=None, share=None, kernel=None):
    """A classifier with such members, as if it had learned them."""
    n = len(representation)
    alpha = [0.75] * n if alpha is None else alpha
    share = np.arange(1, n + 1) / np.arange(1, n + 1).sum() if share is None else share
    kernel = [f"RBF(length_scale={length:.3g})" for length in length_scale] if kernel is None else kernel
    columns = {"representation": representation, "kernel": kernel, "length_scale": length_scale, "alpha": alpha}
    clf = LGCPClassifier()
    clf.mixture_ = {name: np.array(values) for name, values in {**columns, "share": share}.items()}
    return clf


def drawn(classifier):
    """The axes, the stems and the markers."""
    ax = plot_mixture(classifier, figure().subplots())
    return ax, ax.lines[::2], ax.lines[1::2]


def legend(ax):
    """Names in the legend, without the blank ones."""
    return {text.get_text() for text in ax.get_legend().get_texts()} - {" "}


def test_every_member_of_a_fitted_mixture_is_a_stem():
    X, y = make_circles(2, 30, random_state=0)
    clf = LGCPClassifier().fit(X, y)
    ax, stems, markers = drawn(clf)
    shares = 100 * clf.mixture_["share"]
    np.testing.assert_array_equal([stem.get_ydata() for stem in stems], [[0, share] for share in shares])
    np.testing.assert_array_equal([marker.get_ydata()[0] for marker in markers], shares)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert set(clf.mixture_["representation"]) <= legend(ax)


def test_members_that_are_apart_are_drawn_at_their_length_scales():
    scales = [8.0, 1.0, 0.1]
    ax, stems, markers = drawn(members(["raw", "raw", "whitened"], scales))
    # Places are exponentials of logarithms.
    np.testing.assert_allclose([marker.get_xdata()[0] for marker in markers], scales, rtol=1e-12)
    assert [stem.get_xdata()[0] for stem in stems] == [marker.get_xdata()[0] for marker in markers]
    low, high = ax.get_xlim()
    assert low < 0.1
    assert high > 8


def test_members_of_one_length_scale_are_side_by_side():
    scales = [1.0, 1.0, 1.001, 0.01, 1.0]
    ax, _, markers = drawn(members(["raw", "raw", "whitened", "raw", "standardised"], scales))
    ax.figure.canvas.draw()
    at = np.array([ax.transData.transform([marker.get_xdata()[0], 0])[0] for marker in markers])
    width = 7 * ax.figure.dpi / 72
    assert np.diff(np.sort(at)).min() > width
    crowd = np.exp(np.mean(np.log([markers[k].get_xdata()[0] for k in (0, 1, 2, 4)])))
    np.testing.assert_allclose(crowd, 1.0, rtol=1e-3)  # they stay around their length scale


def test_a_single_member_has_an_axis_around_it():
    ax, _, _ = drawn(members(["raw"], [2.0]))
    low, high = ax.get_xlim()
    assert low < 1 < 4 < high


@pytest.mark.parametrize(("scales", "count"), [([1.0, 100.0], 7), ([1e-3, 1e3], 7)])
def test_ticks_do_not_overlap(scales, count):
    ax, _, _ = drawn(members(["raw", "whitened"], scales))
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    assert 3 <= np.count_nonzero([low <= tick <= high for tick in ax.get_xticks()]) <= count


def test_a_representation_looks_the_same_in_all_pictures():
    _, _, both = drawn(members(["raw", "whitened"], [1.0, 2.0]))
    _, _, alone = drawn(members(["whitened"], [1.0]))
    assert both[1].get_color() == alone[0].get_color() == COLOURS[2]
    assert both[1].get_marker() == alone[0].get_marker() == MARKERS[2]


def test_own_representations_look_different_from_the_usual_ones():
    ax, _, markers = drawn(members(["raw", "PCA", "Nystroem"], [1.0, 2.0, 4.0]))
    looks = {(marker.get_color(), marker.get_marker()) for marker in markers}
    assert len(looks) == 3
    assert legend(ax) == {"raw", "PCA", "Nystroem", "density power 0.75"}


def test_powers_of_the_density_differ_in_filling():
    alphas = [0.75, 0.5, 0.0, 1.0]
    ax, _, markers = drawn(members(["raw"] * 4, [1.0, 2.0, 4.0, 8.0], alphas))
    looks = {(marker.get_fillstyle(), marker.get_markerfacecolor()) for marker in markers}
    assert len(looks) == 4
    assert markers[0].get_markerfacecolor() == markers[0].get_color()
    assert markers[1].get_markerfacecolor() == "white"
    assert legend(ax) == {"raw", *(f"density power {alpha:g}" for alpha in alphas)}


def test_the_legend_has_rows_of_representations_and_rows_of_powers():
    ax, _, _ = drawn(members(["raw", "whitened", "standardised"], [1.0, 2.0, 4.0], [0.5, 0.75, 0.75]))
    by_columns = np.array([text.get_text() for text in ax.get_legend().get_texts()]).reshape(3, 2)
    assert by_columns.T.tolist() == [
        ["raw", "standardised", "whitened"],
        ["density power 0.75", "density power 0.5", " "],
    ]


def test_kinds_of_kernels_are_named_if_there_are_several():
    kernels = ["RBF(length_scale=1)", "1.41**2 * Matern(length_scale=2, nu=1.5)", "RBF(length_scale=4) + RBF(9)"]
    ax, _, markers = drawn(members(["raw", "raw", "PCA"], [1.0, 2.0, 4.0], kernel=kernels))
    assert legend(ax) == {"raw, RBF", "raw, Matern", "PCA, RBF with RBF", "density power 0.75"}
    assert len({marker.get_color() for marker in markers}) == 3


def test_there_is_no_mixture_with_another_selection():
    X, y = make_circles(2, 30, random_state=0)
    clf = LGCPClassifier(RBF(1.0), selection="loo_error").fit(X, y)
    with pytest.raises(ValueError, match=r"fitted with selection='loo_error'; .*selection=\"mixture\""):
        plot_mixture(clf)


def test_a_mixture_of_nothing_is_not_drawn():
    with pytest.raises(ValueError, match="no member has a weight; give other features or kernels"):
        plot_mixture(members([], []))


def test_the_classifier_must_be_fitted():
    with pytest.raises(NotFittedError):
        plot_mixture(LGCPClassifier())


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

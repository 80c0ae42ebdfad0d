"""Pictures of mixtures show every member, and no marker hides another."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.datasets import make_circles
from coxfield.plotting import COLOURS, MARKERS, figure, plot_mixture


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

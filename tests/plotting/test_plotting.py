import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.datasets import make_circles
from coxfield.plotting import (
    COLOURS,
    check_picture,
    encode,
    figure,
    plot_labelling,
    plot_points,
    plot_probability,
    plot_selection_path,
)

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def test_selection_path_is_drawn_as_it_was_tried():
    X, y = make_circles(2, 30, random_state=0)
    clf = LGCPClassifier().fit(X, y)
    ax = plot_selection_path(clf)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), 100 * clf.selection_path_["loo_error"])
    assert ax.get_xscale() == "log"
    assert ax.lines[1].get_xdata()[0] == clf.selection_path_["length_scale"][clf.selection_path_["chosen"]]


def test_cross_validated_path_is_drawn_where_it_was_tried():
    X, truth = make_circles(2, random_state=0)
    y = np.where(np.arange(len(truth)) % 20 == 0, truth, -1)
    clf = SLGCPClassifier(length_scales=[30.0, 1.0, 0.7]).fit(X, y)
    ax = plot_selection_path(clf)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), 100 * clf.selection_path_["cv_error"])
    assert "cross-validation" in ax.get_ylabel()
    assert np.isnan(ax.lines[0].get_ydata()[0])


def test_there_is_no_path_without_a_selection():
    X, y = make_circles(2, 30, random_state=0)
    with pytest.raises(ValueError, match="selection=None"):
        plot_selection_path(LGCPClassifier(RBF(1.0), selection=None).fit(X, y))


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


def drawn(ax):
    """Positions, face colour and size of each group of points, the legend's left out."""
    from matplotlib.colors import to_hex

    groups = [group for group in ax.collections if len(group.get_offsets())]
    return [
        (np.asarray(group.get_offsets()), to_hex(group.get_facecolor()[0]), group.get_sizes()[0]) for group in groups
    ]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


X2 = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0], [3.0, 3.0], [4.0, 0.0]])
LABELS = np.array(["a", "a", "b", "b", "b"])
GIVEN = np.array([True, False, True, False, False])
CERTIFIED = np.array([True, True, True, True, False])


def test_labelling_tells_given_from_found_and_proven_from_not():
    ax = plot_labelling(X2, LABELS, GIVEN, CERTIFIED, ax=figure().subplots(), feature_names=["u", "v"], title="kind")
    groups = {tuple(map(tuple, at.tolist())): (colour, size) for at, colour, size in drawn(ax)}
    assert len(groups) == 5
    given_a, found_a = groups[((0, 0),)], groups[((1, 2),)]
    given_b, found_b, doubtful_b = groups[((2, 1),)], groups[((3, 3),)], groups[((4, 0),)]
    assert given_a[0] == found_a[0] == COLOURS[0].lower()
    assert given_b[0] == found_b[0] == COLOURS[1].lower()
    assert doubtful_b[0] == "#ffffff"
    assert given_a[1] == given_b[1] > 2 * max(found_a[1], found_b[1], doubtful_b[1])
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_legend().get_title().get_text()) == ("u", "v", "kind")
    assert legend(ax) == ["a", "b", " ", "given: 2", "found, proven: 2", "found, not proven: 1"]


def test_the_legend_is_beside_the_points_and_within_the_picture():
    fig = figure()
    ax = plot_labelling(X2, LABELS, GIVEN, CERTIFIED, ax=fig.subplots())
    fig.draw_without_rendering()
    box = ax.get_legend().get_window_extent()
    assert box.x0 > ax.get_window_extent().x1
    assert box.x1 < fig.bbox.x1


def test_more_than_two_features_are_drawn_by_principal_components():
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    scores = rng.normal(size=(40, 5)) * [5, 4, 0.1, 0.1, 0.1]
    known = np.arange(40) % 2 == 0
    ax = plot_labelling(scores @ rotation, known, known, np.ones(40, bool), ax=figure().subplots())
    at = np.concatenate([group[0] for group in drawn(ax)])
    distances = np.linalg.norm(at[:, None] - at, axis=-1)
    order = np.concatenate([np.flatnonzero(~known), np.flatnonzero(known)])
    truth = scores[order, :2]
    np.testing.assert_allclose(distances, np.linalg.norm(truth[:, None] - truth, axis=-1), atol=0.4)
    *_, second, first = np.linalg.eigvalsh(np.cov(scores.T))
    share = 100 / np.trace(np.cov(scores.T))
    assert ax.get_xlabel() == f"principal component 1 ({first * share:.0f}% of the variance)"
    assert ax.get_ylabel() == f"principal component 2 ({second * share:.0f}%)"


def test_one_feature_is_drawn_on_a_line_a_class():
    ax = plot_labelling(X2[:, :1], LABELS, GIVEN, CERTIFIED, ax=figure().subplots(), feature_names=["u"])
    at = np.concatenate([group[0] for group in drawn(ax)])
    assert {tuple(point) for point in at.tolist()} == {(0, 0), (1, 0), (2, 1), (3, 1), (4, 1)}
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b"]


def test_distances_are_true_unless_nothing_could_be_seen():
    for stretch, aspect in ((1, 1), (100, "auto")):
        ax = plot_labelling(X2 * [1, stretch], LABELS, GIVEN, CERTIFIED, ax=figure().subplots())
        assert ax.get_aspect() == aspect


def test_many_classes_differ_in_colour_or_marker():
    n = 64
    X = np.random.default_rng(0).normal(size=(n, 2))
    ax = plot_labelling(X, np.arange(n), np.zeros(n, bool), np.ones(n, bool), ax=figure().subplots())
    looks = {
        (group.get_facecolor().tobytes(), group.get_paths()[0].vertices.tobytes())
        for group in ax.collections
        if len(group.get_offsets())
    }
    assert len(looks) == n


def test_figures_for_files_leave_pyplot_alone():
    import matplotlib.pyplot as plt

    fig = figure()
    plot_labelling(X2, LABELS, GIVEN, CERTIFIED, ax=fig.subplots())
    assert encode(fig, Path("a.png")).startswith(b"\x89PNG")
    assert plt.get_fignums() == []
    assert plot_labelling(X2, LABELS, GIVEN, CERTIFIED).figure.number in plt.get_fignums()


def test_pictures_are_refused_before_they_are_drawn(tmp_path, monkeypatch):
    check_picture(tmp_path / "a.SVG")
    with pytest.raises(ValueError, match=r"a\.jpeg is none of \.png, \.pdf, \.svg"):
        check_picture(tmp_path / "a.jpeg")
    with pytest.raises(ValueError, match="There is no folder"):
        check_picture(tmp_path / "absent" / "a.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install coxfield\[plot\]"):
        check_picture(tmp_path / "a.png")

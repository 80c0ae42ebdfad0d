"""Pictures of few labels: classes and doubt of every point, at places that show the shape of the data."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy.special import entr
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.gaussian_process.kernels import RBF

from coxfield import SLGCPClassifier
from coxfield.datasets import make_circles
from coxfield.plotting import COLOURS, MANY, encode, figure, plot_few_labels, plot_labelling
from tolerances import assert_close

X, TRUTH = make_circles(2, 60, random_state=0)
Y = np.where(np.arange(len(X)) % 20 == 0, TRUTH, -1)
RINGS = SLGCPClassifier().fit(X, Y)


def drawn(classifier, *args, **options):
    """The two panels."""
    return plot_few_labels(classifier, *args, axes=figure(11, 4.6).subplots(1, 2), **options)


def groups(ax):
    """Groups of points, without those of the legend."""
    return [group for group in ax.collections if len(group.get_offsets())]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def digits(n=300):
    """Digits with one label in ten."""
    pixels, truth = load_digits(return_X_y=True)
    return pixels[:n], np.where(np.arange(n) % 10 == 0, truth[:n], -1)


def test_every_point_has_the_colour_of_its_class_and_given_ones_are_large():
    left, _ = drawn(RINGS)
    codes = RINGS.label_distributions_.argmax(axis=1)
    sizes = {}
    for code in (0, 1):
        own = [group for group in groups(left) if to_hex(group.get_facecolor()[0]) == COLOURS[code].lower()]
        found, given = sorted(own, key=lambda group: group.get_sizes()[0])
        np.testing.assert_array_equal(found.get_offsets(), X[(codes == code) & (Y < 0)])
        np.testing.assert_array_equal(given.get_offsets(), X[(Y >= 0) & np.equal(TRUTH, code)])
        sizes[code] = found.get_sizes()[0], given.get_sizes()[0]
        assert given.get_zorder() > found.get_zorder()
    assert sizes[0] == sizes[1]
    assert sizes[0][1] > 3 * sizes[0][0]
    assert legend(left) == ["0", "1", " ", f"given: {(Y >= 0).sum()}", f"found: {(Y < 0).sum()}"]


def test_doubt_is_the_entropy_in_bits_and_the_most_doubtful_are_on_top():
    _, right = drawn(RINGS)
    points, rings = groups(right)
    p = RINGS.label_distributions_[Y < 0]
    entropy = entr(p).sum(axis=1) / np.log(2)  # the same computation, so that ties are the same
    assert_close(entropy, -(p * np.log2(p)).sum(axis=1), terms=10, scale=1.0)
    np.testing.assert_array_equal(points.get_array(), np.sort(entropy))
    np.testing.assert_array_equal(points.get_offsets(), X[Y < 0][np.argsort(entropy, kind="stable")])
    np.testing.assert_array_equal(rings.get_offsets(), X[Y >= 0])
    low, high = points.get_clim()
    assert low == 0
    assert high == max(1, entropy.max())
    errors = (1 - p.max(axis=1)).sum()
    assert right.get_title("left") == f"doubt: {errors:.1f} errors to expect"


def test_two_features_are_the_coordinates():
    left, right = drawn(RINGS)
    assert [ax.get_xlabel() for ax in (left, right)] == ["feature 1"] * 2
    np.testing.assert_array_equal(RINGS.map_, X)
    far = X + np.array([1e6, 0.0])  # such points are moved before they are compared
    assert_close(SLGCPClassifier().fit(far, Y).map_, far, terms=2, scale=1e6)
    left, _ = drawn(RINGS, feature_names=["length", "width"], title="species")
    assert (left.get_xlabel(), left.get_ylabel()) == ("length", "width")
    assert left.get_legend().get_title().get_text() == "species"
    frames = pytest.importorskip("pandas").DataFrame(X, columns=["u", "v"])
    left, _ = drawn(SLGCPClassifier().fit(frames, Y))
    assert (left.get_xlabel(), left.get_ylabel()) == ("u", "v")


def test_other_points_are_drawn_by_principal_components_of_the_loudest_covariance():
    pixels, y = digits()
    clf = SLGCPClassifier().fit(pixels, y)
    left, _ = drawn(clf)
    assert left.get_xlabel() == "component 1 of the loudest graph"
    at = clf.map_
    assert at.shape == (300, 2)
    assert_close(at.mean(axis=0), np.zeros(2), terms=300, scale=1.0)
    assert at[:, 0].var() >= at[:, 1].var() > 0
    covariance = np.cov(at.T)
    assert_close(covariance[0, 1], 0.0, terms=300, scale=1.0, condition=10)
    # Covariances of unit vectors are cosines: no point is farther from the mean than two.
    assert np.linalg.norm(at, axis=1).max() < 2
    np.testing.assert_array_equal(clf.map_, at)
    distance = np.linalg.norm(at[:, None] - at, axis=2)
    alike = clf.transduction_[:, None] == clf.transduction_
    assert np.median(distance[alike]) < np.median(distance[~alike]) / 2


def test_a_graph_is_drawn_too():
    grid = grid_to_graph(6, 9).astype(float)
    y = np.full(54, -1)
    y[[0, 53]] = 0, 1
    clf = SLGCPClassifier("precomputed").fit(grid, y)
    left, _ = drawn(clf)
    assert left.get_xlabel() == "component 1 of the loudest graph"
    assert sum(len(group.get_offsets()) for group in groups(left)) == 54


def test_if_only_linear_covariances_speak_there_is_a_map_all_the_same():
    pixels, y = digits(100)
    clf = SLGCPClassifier().fit(pixels, y)
    committee = clf._few_labels.committee
    linear = tuple(one for one in committee.members if one.source < 0)
    object.__setattr__(committee, "members", linear)
    object.__setattr__(committee, "loudness", np.array([1.0, 0, 0, 0]))
    object.__setattr__(committee, "blend", None)
    object.__setattr__(committee.average, "weights", np.ones((len(linear), 1)))
    assert np.isfinite(clf.map_).all()
    assert clf.map_.shape == (100, 2)


def test_own_coordinates_may_be_given():
    own = X[:, ::-1] + 3
    left, _ = drawn(RINGS, own)
    assert left.get_xlabel() == "coordinate 1"
    at = np.concatenate([group.get_offsets() for group in groups(left)])
    np.testing.assert_array_equal(np.sort(at, axis=0), np.sort(own, axis=0))
    with pytest.raises(ValueError, match=r"shape \(120, 2\), got \(120, 3\): give two columns, or leave X out"):
        drawn(RINGS, np.zeros((120, 3)))


def test_many_points_are_pixels_in_any_file_and_no_class_covers_the_others(tmp_path):
    clf = SLGCPClassifier().fit(X, Y)
    copies = MANY // len(X) + 1
    clf.label_distributions_ = np.tile(RINGS.label_distributions_, (copies, 1))
    many = np.tile(X, (copies, 1))
    left, right = drawn(clf, many)
    cloud = groups(left)[0]
    assert cloud.get_rasterized()
    assert groups(right)[0].get_rasterized()
    colours = [to_hex(colour) for colour in cloud.get_facecolors()[:200]]
    assert set(colours) == {COLOURS[0].lower(), COLOURS[1].lower()}
    assert len(encode(left.figure, tmp_path / "picture.svg")) < 1_000_000


def test_the_legend_covers_no_point():
    fig = figure(11, 4.6)
    left, right = plot_few_labels(RINGS, axes=fig.subplots(1, 2))
    fig.draw_without_rendering()
    box = left.get_legend().get_window_extent()
    assert left.get_window_extent().x1 < box.x0 < box.x1 < right.get_window_extent().x0


def test_new_axes_are_made_if_none_are_given():
    left, right = plot_few_labels(RINGS)
    assert left.figure is right.figure


@pytest.mark.parametrize("options", [{"inference": "map"}, {"kernel": RBF(1.0), "selection": None}])
def test_other_inferences_have_another_picture(options):
    clf = SLGCPClassifier(**options).fit(X, Y)
    with pytest.raises(ValueError, match="fitted with inference_='map'; use plot_labelling"):
        plot_few_labels(clf)


def test_the_classifier_must_be_fitted():
    with pytest.raises(NotFittedError):
        plot_few_labels(SLGCPClassifier())


def test_the_farthest_point_of_a_map_is_right_and_above_whatever_the_signs_of_the_modes():
    pixels, y = digits(100)
    clf = SLGCPClassifier().fit(pixels, y)
    at = clf.map_
    assert (at.max(axis=0) >= -at.min(axis=0)).all()
    for modes in clf._few_labels.prepared.views[0].spectrum.modes:
        modes.vectors[:] *= np.where(np.arange(len(modes)) % 2, -1, 1)
    assert_close(clf.map_, at, terms=100, scale=1.0, condition=100)


def marks(ax):
    """Positions, face colour and size of each group of points, the legend's left out."""
    from matplotlib.colors import to_hex

    groups = [group for group in ax.collections if len(group.get_offsets())]
    return [
        (np.asarray(group.get_offsets()), to_hex(group.get_facecolor()[0]), group.get_sizes()[0]) for group in groups
    ]


X2 = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0], [3.0, 3.0], [4.0, 0.0]])


LABELS = np.array(["a", "a", "b", "b", "b"])


GIVEN = np.array([True, False, True, False, False])


CERTIFIED = np.array([True, True, True, True, False])


def test_labelling_tells_given_from_found_and_proven_from_not():
    ax = plot_labelling(X2, LABELS, GIVEN, CERTIFIED, ax=figure().subplots(), feature_names=["u", "v"], title="kind")
    groups = {tuple(map(tuple, at.tolist())): (colour, size) for at, colour, size in marks(ax)}
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
    at = np.concatenate([group[0] for group in marks(ax)])
    distances = np.linalg.norm(at[:, None] - at, axis=-1)
    order = np.concatenate([np.flatnonzero(~known), np.flatnonzero(known)])
    truth = scores[order, :2]
    np.testing.assert_allclose(distances, np.linalg.norm(truth[:, None] - truth, axis=-1), atol=0.4)
    *_, second, first = np.linalg.eigvalsh(np.cov(scores.T))
    share = 100 / np.trace(np.cov(scores.T))
    assert ax.get_xlabel() == f"principal component 1 ({first * share:.0f}% of the variance)"
    assert ax.get_ylabel() == f"principal component 2 ({second * share:.0f}%)"


def test_one_feature_is_drawn_with_a_line_per_class():
    ax = plot_labelling(X2[:, :1], LABELS, GIVEN, CERTIFIED, ax=figure().subplots(), feature_names=["u"])
    at = np.concatenate([group[0] for group in marks(ax)])
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

import numpy as np

from coxfield.plotting import COLOURS, figure, plot_labelling


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


def test_one_feature_is_drawn_with_a_line_per_class():
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

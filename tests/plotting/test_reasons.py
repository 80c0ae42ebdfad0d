"""Pictures of reasons: training rows that speak for a class, and columns that do."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.datasets import make_circles
from coxfield.plotting import figure, plot_features, plot_reasons
from coxfield.plotting.figures import style
from tolerances import assert_close

X, Y = make_circles(3, 90, random_state=0)
QUERY = np.array([0.4, 0.2])


def fitted(points=X, y=Y, length_scale=0.7):
    return LGCPClassifier(RBF(length_scale), selection=None).fit(points, y)


def digits():
    points, y = load_digits(return_X_y=True)
    return fitted(points[:60], y[:60], 20.0), points[60]


def table_model():
    return fitted(np.random.default_rng(0).normal(size=(20, 5)), np.arange(20) % 4)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_lines_go_from_the_query_to_the_witnesses_and_are_wider_for_louder_ones(container):
    clf = fitted(container(X))
    ax = plot_reasons(clf, container(QUERY[None]), 4, n_classes=2)
    found, scores = clf.contributions(container(QUERY[None]), 4), clf.class_scores(container(QUERY[None]))[0]
    best = np.argsort(-scores)[:2]
    assert len(ax.lines) == 8
    rows, shares = found.rows[0, best].ravel(), found.shares[0, best].ravel()
    for line, row, code in zip(ax.lines, rows, np.repeat(best, 4), strict=True):
        assert np.array_equal(line.get_xydata(), [QUERY, X[row]])
        assert to_hex(line.get_color()).upper() == style(code)[0]
    widths = [line.get_linewidth() for line in ax.lines]
    assert np.array_equal(np.argsort(widths), np.argsort(shares))
    *points, first, second, query = ax.collections
    assert sum(len(drawn.get_offsets()) for drawn in points) == len(X)
    assert np.array_equal(np.concatenate([first.get_offsets(), second.get_offsets()]), X[rows])
    assert np.array_equal(query.get_offsets(), QUERY[None])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2", "query"]


def test_pictures_are_the_query_and_a_line_of_witnesses_for_each_class():
    clf, query = digits()
    ax = plot_reasons(clf, query, 3, n_classes=2, ids=[f"no. {k}" for k in range(60)])
    found = clf.contributions(query[None], 3)
    best = np.argsort(-clf.class_scores(query[None])[0])[:2]
    assert len(ax.images) == len(ax.texts) == 1 + 2 * 3
    assert np.array_equal(ax.images[0].get_array().ravel(), query)
    assert ax.texts[0].get_text() == f"query\npredicted: {clf.predict(query[None])[0]}"
    for k, (drawn, text) in enumerate(zip(ax.images[1:], ax.texts[1:], strict=True)):
        code, rank = best[k // 3], k % 3
        row, share = found.rows[0, code, rank], found.shares[0, code, rank]
        assert np.array_equal(drawn.get_array().ravel(), clf.X_fit_[row])
        assert text.get_text() == f"no. {row}\nclass {code}: {share:.2g}"
    tops = [drawn.get_extent()[3] for drawn in ax.images]
    assert len(set(tops[:4])) == len(set(tops[4:])) == 1
    assert tops[4] > tops[0]  # downwards


def test_two_features_may_be_pictures_and_many_may_be_a_table():
    assert len(plot_reasons(fitted(), QUERY, 2, image_shape=(1, 2)).images) == 1 + 3 * 2
    clf, query = digits()
    assert not plot_reasons(clf, query, kind="table").images
    assert len(plot_reasons(table_model(), np.zeros(5), 1, kind="images", image_shape=(5, 1)).images) == 4


@pytest.mark.parametrize("given", [[0.0, 0, 0, 0, 0], np.zeros((1, 5)), sparse.csr_array((1, 5))])
def test_a_query_is_a_row(given):
    assert plot_reasons(table_model(), given).get_xlabel() == "score"


def test_a_query_may_be_a_row_of_a_data_frame():
    frame = pd.DataFrame(X, columns=["u", "v"])
    assert len(plot_reasons(fitted(frame), frame[:1], 2).lines) == 6


REFUSED = [
    ({"kind": "lines"}, "kind must be one of 'points', 'images', 'table', or None to choose it, got 'lines'"),
    ({"kind": "points"}, "points with 5 features are not in the plane: give kind='table'"),
    ({"kind": "images"}, r"shape \(2, 2\) does not have 5 pixels: give another image_shape"),
    ({"n_classes": 0}, "n_classes is 0; give the number of classes to show"),
    ({"top": 0}, "top must be a whole number of at least 1"),
    ({"x": np.zeros((2, 5))}, "one query is drawn at a time, but x has 2 rows: give one of them"),
    ({"names": ["a"]}, "names has 1 entries, but there are 4 classes"),
    ({"ids": ["a"]}, "ids has 1 entries, but there are 20 training rows: give one for each"),
]


@pytest.mark.parametrize(("options", "sentence"), REFUSED, ids=[next(iter(options)) for options, _ in REFUSED])
def test_what_cannot_be_drawn_is_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        plot_reasons(table_model(), **({"x": np.zeros(5)} | options))


def test_the_classifier_must_be_fitted():
    with pytest.raises(NotFittedError):
        plot_reasons(LGCPClassifier(), QUERY)


RNG = np.random.default_rng(0)
ROWS, CLASSES = RNG.normal(size=(20, 5)), np.array(["a", "b", "c", "d"])[np.arange(20) % 4]
ROW = RNG.normal(size=5)


@pytest.mark.parametrize("mean", [0.0, {"a": -2.0, "b": 1.0}])
def test_bars_of_a_class_are_a_chain_that_ends_at_the_score(mean):
    clf = LGCPClassifier(RBF(2.0), mean=mean, selection=None).fit(ROWS, CLASSES)
    ax = plot_reasons(clf, ROW, 3, n_classes=4)
    scores, found = clf.class_scores(ROW[None])[0], clf.contributions(ROW[None], 3)
    bars = np.array(ax.patches).reshape(4, 1 + 3 + 2)  # the score, three rows, other rows and the prior
    for block, code in zip(bars, np.argsort(-scores), strict=True):
        total, *parts = block
        ends = [bar.get_x() + bar.get_width() for bar in parts]
        assert_close(total.get_width(), scores[code], terms=30, scale=5.0)
        assert_close(ends[-1], scores[code], terms=30, scale=5.0)
        assert_close([bar.get_x() for bar in parts], [0.0, *ends[:-1]], terms=30, scale=5.0)
        assert_close([bar.get_width() for bar in parts[:3]], found.shares[0, code])
        assert_close(parts[-1].get_width(), found.prior[0, code])


def test_bars_have_names_and_numbers():
    clf = LGCPClassifier(RBF(2.0), selection=None).fit(ROWS, CLASSES)
    options = {"n_classes": 2, "names": ["ash", "beech", "cedar", "deal"], "ids": [f"tree {k}" for k in range(20)]}
    ax, found = plot_reasons(clf, ROW, 2, **options), clf.contributions(ROW[None], 2)
    best = np.argsort(-clf.class_scores(ROW[None])[0])[:2]
    expected = []
    for code in best:
        rows = [f"tree {row}" for row in found.rows[0, code]]
        expected += [f"score of {options['names'][code]}", *rows, "all other rows", "prior"]
    assert [text.get_text() for text in ax.get_yticklabels()] == expected
    assert ax.texts[1].get_text() == f"{found.shares[0, best[0], 0]:.3g}"
    heights = [bar.get_y() for bar in ax.patches]
    assert heights == sorted(heights)
    assert ax.yaxis_inverted()


def test_numbers_stand_outside_of_their_bars():
    clf = LGCPClassifier(RBF(2.0), mean={"a": -20.0}, selection=None).fit(ROWS, CLASSES)
    ax = plot_reasons(clf, ROW, 2, n_classes=4)
    low, high = ax.get_xlim()
    for text, bar in zip(ax.texts, ax.patches, strict=True):
        left, right = sorted((bar.get_x(), bar.get_x() + bar.get_width()))
        assert low < text.xy[0] < high
        assert text.xy[0] == (right if bar.get_width() >= 0 else left)


def test_bars_are_ordered_and_named():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"noise": rng.normal(size=80), "level": rng.choice(["u", "v"], 80)})
    clf = LGCPClassifier().fit(frame, frame["level"] == "u")
    ax = plot_features(clf, figure().subplots(), n_rows=50)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["level", "noise"]
    widths = [bar.get_width() for bar in ax.patches]
    found = clf.feature_importance(50)["importance"]
    np.testing.assert_allclose(widths, found[[1, 0]])
    assert ax.yaxis_inverted()
    assert len(plot_features(clf, figure().subplots(), most=1).patches) == 1

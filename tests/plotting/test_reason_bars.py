import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.plotting import plot_reasons
from tolerances import assert_close

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 5)), np.array(["a", "b", "c", "d"])[np.arange(20) % 4]
QUERY = RNG.normal(size=5)


@pytest.mark.parametrize("mean", [0.0, {"a": -2.0, "b": 1.0}])
def test_bars_of_a_class_are_a_chain_that_ends_at_the_score(mean):
    clf = LGCPClassifier(RBF(2.0), mean=mean, selection=None).fit(X, Y)
    ax = plot_reasons(clf, QUERY, 3, n_classes=4)
    scores, found = clf.class_scores(QUERY[None])[0], clf.contributions(QUERY[None], 3)
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
    clf = LGCPClassifier(RBF(2.0), selection=None).fit(X, Y)
    options = {"n_classes": 2, "names": ["ash", "beech", "cedar", "deal"], "ids": [f"tree {k}" for k in range(20)]}
    ax, found = plot_reasons(clf, QUERY, 2, **options), clf.contributions(QUERY[None], 2)
    best = np.argsort(-clf.class_scores(QUERY[None])[0])[:2]
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
    clf = LGCPClassifier(RBF(2.0), mean={"a": -20.0}, selection=None).fit(X, Y)
    ax = plot_reasons(clf, QUERY, 2, n_classes=4)
    low, high = ax.get_xlim()
    for text, bar in zip(ax.texts, ax.patches, strict=True):
        left, right = sorted((bar.get_x(), bar.get_x() + bar.get_width()))
        assert low < text.xy[0] < high
        assert text.xy[0] == (right if bar.get_width() >= 0 else left)

"""Pictures of what columns are worth: one bar each, the most important at the top."""

import numpy as np
import pandas as pd

from coxfield import LGCPClassifier
from coxfield.plotting import figure, plot_features


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

import sys

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.datasets import make_circles
from coxfield.plotting import plot_points, plot_probability


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

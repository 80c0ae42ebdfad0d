import sys
from pathlib import Path

import numpy as np
import pytest

from coxfield.plotting import check_picture, encode, figure, plot_points


def test_figures_for_files_leave_pyplot_alone():
    import matplotlib.pyplot as plt

    X = np.eye(2)
    fig = figure()
    plot_points(X, X[:, 0], fig.subplots())
    assert encode(fig, Path("a.png")).startswith(b"\x89PNG")
    assert plt.get_fignums() == []
    assert plot_points(X, X[:, 0]).figure.number in plt.get_fignums()


def test_pictures_are_refused_before_they_are_drawn(tmp_path, monkeypatch):
    check_picture(tmp_path / "a.SVG")
    with pytest.raises(ValueError, match=r"a\.jpeg is none of \.png, \.pdf, \.svg"):
        check_picture(tmp_path / "a.jpeg")
    with pytest.raises(ValueError, match="There is no folder"):
        check_picture(tmp_path / "absent" / "a.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install coxfield\[plot\]"):
        check_picture(tmp_path / "a.png")

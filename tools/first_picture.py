"""The picture of the first screen: digits labelled from ten labels, the surest and the most doubtful ones.

Run ``python tools/first_picture.py``. It writes docs/images/first.png and prints what the picture shows.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from coxfield import SLGCPClassifier, plotting

SEED = 0  # of the draw of ten labels; not chosen among several
SHOWN = 10


def main() -> None:
    """Label the digits, and draw some of them."""
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(SEED)
    given = np.array([rng.choice(np.flatnonzero(truth == digit)) for digit in range(10)])
    y = np.full(len(truth), -1)
    y[given] = truth[given]
    model = SLGCPClassifier().fit(X, y)
    sure = model.label_distributions_.max(axis=1)
    others = np.setdiff1d(np.arange(len(y)), given)
    wrong = model.transduction_ != truth
    order = others[np.argsort(sure[others])]
    typical = np.sort(rng.choice(others, SHOWN, replace=False))
    count = wrong[others].sum()
    parts = (
        ("Ten labels were given:", given),
        (f"{len(others):,} were found, and {count} of them are wrong (orange). Some at random:", typical),
        ("The most doubtful ones, to look at first:", order[:SHOWN]),
    )
    figure = Figure(figsize=(9.2, 4.2))
    grid = figure.subplots(3, SHOWN, gridspec_kw={"hspace": 0.9, "wspace": 0.15})
    rows = np.concatenate([rows for _, rows in parts])
    for ax, row in zip(grid.ravel(), rows, strict=True):
        ax.imshow(X[row].reshape(8, 8), cmap="gray_r", interpolation="nearest")
        ax.set_axis_off()
        known = row in given
        text = f"{model.transduction_[row]}" if known else f"{model.transduction_[row]}  {100 * sure[row]:.0f} %"
        colour = "#b04a00" if wrong[row] else "black"
        ax.set_title(text, fontsize=9, color=colour, pad=2, weight="bold" if known else "normal")
    for line, (title, _) in zip(range(3), parts, strict=True):
        grid[line, 0].text(-0.05, 1.4, title, transform=grid[line, 0].transAxes, fontsize=10, va="bottom")
    path = Path(__file__).resolve().parents[1] / "docs" / "images" / "first.png"
    path.write_bytes(plotting.encode(figure, path))
    expected = (1 - sure[others]).sum()
    print(f"{wrong[others].sum()} of {len(others)} found labels are wrong; {expected:.0f} were to be expected")


if __name__ == "__main__":
    main()

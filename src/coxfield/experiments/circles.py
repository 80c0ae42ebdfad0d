"""Figure concentricCircles: data and predictive probability, with the covariance that the paper states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.datasets import make_circles
from coxfield.plotting import plot_points, plot_probability

if TYPE_CHECKING:
    from pathlib import Path

KERNEL = 0.5**2 * RBF(1.0)  # signal standard deviation 0.5, length scale 1; means are zero


def draw(path: Path, random_state: int = 3) -> None:
    """Draw the data and the predictive surface for two and for three rings, and save the picture."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
    for row, n_rings in zip(panels, (2, 3), strict=True):
        X, y = make_circles(n_rings, random_state=random_state)
        classifier = LGCPClassifier(KERNEL, selection=None).fit(X, y)
        plot_points(X, y, row[0]).set(title=f"{n_rings} rings: data", xlabel="$x_1$", ylabel="$x_2$")
        row[0].legend(title="ring", loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
        plot_probability(classifier, X, row[1], label=0)
        row[1].set(title="predictive probability", xlabel="$x_1$", ylabel="$x_2$")
        row[1].set(xlim=row[0].get_xlim(), ylim=row[0].get_ylim())
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)

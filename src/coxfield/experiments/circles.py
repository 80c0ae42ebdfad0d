"""Figure concentricCircles: data, predictive probability, and the semi-supervised version, for two and three rings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.datasets import make_circles
from coxfield.plotting import plot_points, plot_probability

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

KERNEL = 0.5**2 * RBF(1.0)  # signal standard deviation 0.5, length scale 1, as the paper states; means are zero


@dataclass(frozen=True)
class Record:
    """Rings, the labels that were given, and the labels that were found."""

    X: NDArray
    truth: NDArray
    y: NDArray
    """Given labels, -1 for the others."""
    found: NDArray
    gap: float
    """Relative gap between energy and lower bound."""
    certified: float
    """Share of labels that are proven."""

    @property
    def errors(self) -> NDArray:
        """Rows whose label was not recovered."""
        return np.flatnonzero(self.found != self.truth)


def run(n_rings: int = 2, labels_per_ring: int = 5, noise: float = 0.5, random_state: int = 8) -> Record:
    """Draw rings, label a few points of each, and find the rest."""
    X, truth = make_circles(n_rings, noise=noise, random_state=random_state)
    rng = np.random.default_rng(random_state)
    known = [rng.choice(np.flatnonzero(truth == ring), labels_per_ring, replace=False) for ring in range(n_rings)]
    y = np.full(len(truth), -1)
    y[np.concatenate(known)] = truth[np.concatenate(known)]
    classifier = SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    gap, certified = classifier.result_.relative_gap, float(classifier.certified_.mean())
    return Record(X, truth, y, classifier.transduction_, gap, certified)


def draw(path: Path, records: list[Record]) -> None:
    """Draw for each record the data with the errors circled, the predictive surface, and what was labelled."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        len(records), 3, figsize=(13, 4.2 * len(records)), layout="constrained", squeeze=False
    )
    for row, record in zip(panels, records, strict=True):
        _draw_data(row[0], record)
        classifier = LGCPClassifier(KERNEL, selection=None).fit(record.X, record.truth)
        plot_probability(classifier, record.X, row[1], label=0)
        row[1].set_title("predictive probability of the inner ring")
        _draw_labelled(row[2], record)
        for panel in row:
            panel.set(xlabel="$x_1$", ylabel="$x_2$", xlim=row[0].get_xlim(), ylim=row[0].get_ylim())
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _draw_data(panel, record: Record) -> None:
    plot_points(record.X, record.truth, panel)
    wrong = record.X[record.errors]
    panel.scatter(
        wrong[:, 0], wrong[:, 1], s=130, facecolors="none", edgecolors="black", linewidths=1.5, label="not recovered"
    )
    panel.set_title(f"data; {len(wrong)} of {np.sum(record.y < 0)} labels not recovered")
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4, fontsize="small", frameon=False)


def _draw_labelled(panel, record: Record) -> None:
    unknown = record.X[record.y < 0]
    panel.scatter(unknown[:, 0], unknown[:, 1], s=10, c="0.75", linewidths=0, label="unlabelled")
    plot_points(record.X[record.y >= 0], record.y[record.y >= 0], panel, size=45)
    panel.set_title("semi-supervised: what was labelled")
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4, fontsize="small", frameon=False)

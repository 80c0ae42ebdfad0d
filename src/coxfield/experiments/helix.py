"""Figure doubleHelix3D, with what the supervised and the semi-supervised classifier make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.datasets import make_double_helix
from coxfield.plotting import COLOURS, MARKERS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Record:
    """A double helix, the labels given, and two attempts at the rest."""

    X: NDArray
    truth: NDArray
    y: NDArray
    supervised: NDArray
    semi_supervised: NDArray


def run(labels_per_strand: int = 15, random_state: int = 0, **parameters) -> Record:
    """Draw a double helix, label a few points of each strand, and find the rest in two ways.

    Further parameters go to `SLGCPClassifier`.
    """
    rng = np.random.default_rng(random_state)
    X, truth = make_double_helix(random_state=rng)
    known = [rng.choice(np.flatnonzero(truth == strand), labels_per_strand, replace=False) for strand in (0, 1)]
    y = np.full(len(truth), -1)
    y[np.concatenate(known)] = truth[np.concatenate(known)]
    supervised = LGCPClassifier().fit(X[y >= 0], y[y >= 0]).predict(X)
    return Record(X, truth, y, supervised, SLGCPClassifier(**parameters).fit(X, y).transduction_)


def draw(path: Path, record: Record) -> None:
    """Draw the data and both labellings, with the labelled points large."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(13, 5), layout="constrained", subplot_kw={"projection": "3d"})
    unknown = record.y < 0
    titles = {
        "the data": record.truth,
        f"supervised: {_errors(record.supervised, record):.1%} wrong": record.supervised,
        f"semi-supervised: {_errors(record.semi_supervised, record):.1%} wrong": record.semi_supervised,
    }
    for panel, (title, labels) in zip(panels, titles.items(), strict=True):
        for strand in (0, 1):
            for rows, size in ((unknown & (labels == strand), 6), (~unknown & (record.y == strand), 45)):
                style = {"s": size, "c": COLOURS[strand], "marker": MARKERS[strand], "linewidths": 0.6}
                panel.scatter(*record.X[rows].T, edgecolors="black" if size > 10 else "none", **style)
        panel.set(title=title, xlabel="$x_1$", ylabel="$x_2$", zlabel="$x_3$", box_aspect=(1, 1, 1.7))
        panel.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        panel.view_init(elev=12, azim=-60)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _errors(labels, record: Record) -> float:
    unknown = record.y < 0
    return float(np.mean(labels[unknown] != record.truth[unknown]))

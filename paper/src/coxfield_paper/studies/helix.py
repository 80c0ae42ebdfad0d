"""Figure doubleHelix3D, with the labels that the supervised and the semi-supervised classifier find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield import LGCPClassifier
from coxfield.datasets import make_double_helix
from coxfield.plotting import COLOURS, DARK, MARKERS, figure
from coxfield_paper.report.blocks import Figure, Note
from coxfield_paper.report.item import Item, Task
from coxfield_paper.studies.paper_methods import paper_slgcp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coxfield_paper.report.records import Record

NAME = "figure-helix"
TASK = f"{NAME}/labels"
INKS = (COLOURS[0], COLOURS[4])  # blue and orange: one is dark and one is light in grey too
SIZES = {"unlabelled": 9, "labelled": 48}


def label_helix(labels_per_strand: int, seed: int, n_per_strand: int = 500) -> dict[str, Any]:
    """Draw a double helix, label a few points of each strand, and find the other labels in two ways."""
    rng = np.random.default_rng(seed)
    X, truth = make_double_helix(n_per_strand, random_state=rng)
    known = np.concatenate(
        [rng.choice(np.flatnonzero(truth == strand), labels_per_strand, replace=False) for strand in (0, 1)]
    )
    y = np.full(len(truth), -1)
    y[known] = truth[known]
    return {
        "X": X.round(4).tolist(),
        "truth": truth.tolist(),
        "given": y.tolist(),
        "supervised": LGCPClassifier(selection="loo_error").fit(X[known], y[known]).predict(X).tolist(),
        "semi-supervised": paper_slgcp().fit(X, y).transduction_.tolist(),
    }


def tasks(quick: bool) -> list[Task]:
    """The one task there is."""
    return [Task(TASK, label_helix, {"labels_per_strand": 15, "seed": 0})]


def render(found: Mapping[str, Record]) -> Sequence[Figure | Note]:
    """The data beside both labellings."""
    record = found.get(TASK)
    if record is None or not record.done:
        return [Note(f"There is no result, so no figure. Run `coxfield reproduce {NAME}`.")]
    result = {key: np.array(value) for key, value in record.result.items()}
    labels = int((result["given"] >= 0).sum())
    wrong = {way: _wrong(result, way) for way in ("supervised", "semi-supervised")}
    caption = (
        f"The double helix, with {labels} of its {len(result['X']):,} points labelled (large, edged). From left: "
        "the data; labels found by LGCP from the labelled points alone; labels found by SLGCP from all points."
    )
    description = (
        "Two strands of points wind around each other. The supervised classifier gives pieces of each strand to the "
        f"other class, {wrong['supervised']:.1f} % of the unlabelled points; the semi-supervised one follows the "
        f"strands and errs on {wrong['semi-supervised']:.1f} %."
    )
    return [Figure(caption, draw(result, wrong), description, NAME)]


def _wrong(result: Mapping[str, np.ndarray], way: str) -> float:
    unknown = result["given"] < 0
    return 100 * float(np.mean(result[way][unknown] != result["truth"][unknown]))


def draw(result: Mapping[str, np.ndarray], wrong: Mapping[str, float]):
    """Three views of the points: with their classes, and with the labels that each classifier found."""
    drawn = figure(11, 5.4)
    panels = drawn.subplots(1, 3, subplot_kw={"projection": "3d"})
    titles = {"the data": "truth"} | {f"{way}: {share:.1f} % wrong": way for way, share in wrong.items()}
    for panel, (title, key) in zip(panels, titles.items(), strict=True):
        _draw_points(panel, result["X"], result[key], result["given"])
        panel.set(xlabel="$x_1$", ylabel="$x_2$", zlabel="$x_3$", title=title)
        panel.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1], zticks=[0, 1, 2, 3, 4])
        panel.set_box_aspect((1, 1, 1.7), zoom=1.1)
        panel.view_init(elev=12, azim=-60)
    handles, names = panels[0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
    return drawn


def _draw_points(panel, X, labels, given) -> None:
    for strand in (0, 1):
        kinds = {"unlabelled": (given < 0) & (labels == strand), "labelled": given == strand}
        for kind, members in kinds.items():
            edge = {
                "linewidths": 1.1,
                "edgecolors": DARK,
                "depthshade": False,
            }  # the same near and far
            look = edge if kind == "labelled" else {"linewidths": 0}
            style = {"s": SIZES[kind], "c": INKS[strand], "marker": MARKERS[strand], **look}
            panel.scatter(*X[members].T, label=f"strand {strand + 1}, {kind}", **style)


ITEM = Item(NAME, "Figure doubleHelix3D: the double helix", tasks, render)

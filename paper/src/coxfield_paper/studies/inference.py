"""Most probable labelling, marginals and perturb-and-MAP with very few labels: errors and calibration."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.calibration import reliability
from coxfield.estimators.label_fields import DRAWS
from coxfield.estimators.trivial import ChainsDisagreeWarning, TrivialLabellingWarning
from coxfield.plotting import figure, plot_reliability
from coxfield_paper.report.blocks import MISSING, Figure, Mean, Note, Table
from coxfield_paper.report.item import Item, Task
from coxfield_paper.studies.paper_methods import paper_slgcp
from coxfield_paper.studies.reliability import pooled, sums
from coxfield_paper.studies.semi_supervised import partition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from coxfield import SLGCPClassifier
    from coxfield.calibration import Reliability
    from coxfield_paper.report.records import Record

NAME = "table-inference"
DATA = ("oil", "rMNIST", "digit1")
LABELS, PARTITIONS = (4, 10), 10
NAMES = {"map": "MAP", "marginals": "marginals", "perturb_and_map": "perturb-and-MAP"}
SAMPLED = ("marginals", "perturb_and_map")
TRIVIAL = 5.0  # per cent of the unlabelled points: a class with fewer has lost to the other
JUDGED = (
    "Test error: % of the unlabelled points, mean and standard error over random choices of the labelled points. Both "
    "classes have a label. Trivial: one class gets less than 5 % of the unlabelled points, of which it has about half."
)
SET_UP = (
    "MAP chooses the length scale of least error in cross validation of the labelled points, at most ten folds. The "
    "others take the length scale and signal variance for which the marginals have the least log loss in these folds."
)
LOSS = "Log loss: nats per point, after one draw of uniform labels is mixed in; a coin has log 2 = 0.69."


def most_probable(data: str, labels: int, seed: int) -> dict[str, Any]:
    """Label the unlabelled points of one partition by the most probable labelling, and count errors."""
    X, truth, y = partition(data, labels, seed)
    classifier = _fit(paper_slgcp(), X, y)
    return _errors(classifier, truth, y < 0) | {"length_scale": _chosen(classifier, "length_scale")}


def sampled(data: str, labels: int, seed: int) -> dict[str, Any]:
    """Label them by marginals and by perturb-and-MAP, both with the parameters that are best for the marginals."""
    X, truth, y = partition(data, labels, seed)
    marginals = _fit(paper_slgcp(inference="marginals", random_state=seed), X, y)
    perturbed = paper_slgcp(marginals.kernel_, inference="perturb_and_map", selection=None, random_state=seed)
    return {
        "length_scale": _chosen(marginals, "length_scale"),
        "variance": _chosen(marginals, "variance"),
        "r_hat": float(min(marginals.r_hat_.max(), 1e6)),  # infinite where chains never moved
        "marginals": judge(marginals, truth, y < 0),
        "perturb_and_map": judge(_fit(perturbed, X, y), truth, y < 0),
    }


def _fit(classifier: SLGCPClassifier, X: NDArray, y: NDArray) -> SLGCPClassifier:
    with warnings.catch_warnings():  # a trivial labelling counts as an error, and R-hat is recorded
        warnings.simplefilter("ignore", TrivialLabellingWarning)
        warnings.simplefilter("ignore", ChainsDisagreeWarning)
        return classifier.fit(X, y)


def _chosen(classifier: SLGCPClassifier, column: str) -> float:
    path = classifier.selection_path_
    return float(path[column][path["chosen"]].item())


def _errors(classifier: SLGCPClassifier, truth: NDArray, unknown: NDArray) -> dict[str, Any]:
    """The error in per cent, and whether the labelling is trivial."""
    found = classifier.transduction_[unknown]
    smallest = min(100 * float(np.mean(found == label)) for label in classifier.classes_)
    return {"error": 100 * float(np.mean(found != truth[unknown])), "trivial": smallest < TRIVIAL}


def judge(classifier: SLGCPClassifier, truth: NDArray, unknown: NDArray) -> dict[str, Any]:
    """Errors, log loss and the bins of a reliability diagram."""
    draws = DRAWS[classifier.inference]
    distributions = (draws * classifier.label_distributions_[unknown] + 1 / 2) / (draws + 1)
    judged = reliability(truth[unknown], distributions, classifier.classes_)
    return _errors(classifier, truth, unknown) | sums(judged)


WAYS = {"map": most_probable, "sampled": sampled}


def tasks(quick: bool) -> list[Task]:
    """Two tasks per data set, number of labels and partition; none in the quick run, because they take long."""
    return [
        Task(name(data, labels, way, seed), WAYS[way], {"data": data, "labels": labels, "seed": seed})
        for data in DATA
        for labels in LABELS
        for way in WAYS
        for seed in range(PARTITIONS)
        if not quick
    ]


def name(data: str, labels: int, way: str, seed: int) -> str:
    """The name of a task."""
    return f"{NAME}/{data}/{labels}/{way}/{seed}"


def render(found: Mapping[str, Record]) -> Sequence[Table | Figure | Note]:
    """Errors and log losses as a table, and reliability diagrams."""
    if not any(record.done for record in found.values()):
        text = "There are no results: this item is not part of the quick run, because its data are read from a folder."
        return [Note(f"{text} Run `coxfield reproduce {NAME}`.")]
    rows = tuple(_row(found, data, labels) for data in DATA for labels in LABELS)
    losses = tuple(f"log loss, {NAMES[inference]}" for inference in SAMPLED)
    trivial = ("trivial MAP", "trivial marginals")
    headings = ("data", "labels", *(f"{one}, %" for one in NAMES.values()), *trivial, *losses)
    caption = "Test error and log loss of three ways to take labels from the label field."
    drawn = _diagrams(found)
    return [Table(caption, headings, rows, (JUDGED, SET_UP, LOSS)), *([drawn] if drawn else [])]


def _row(found: Mapping[str, Record], data: str, labels: int) -> tuple[str, ...]:
    by_way = {inference: _results(found, data, labels, inference) for inference in NAMES}
    cuts, ours = ([result["trivial"] for result in by_way[way]] for way in ("map", "marginals"))
    trivial = (f"{sum(each)} of {len(each)}" if each else MISSING for each in (cuts, ours))
    errors = (str(_mean(results, "error")) for results in by_way.values())
    losses = (str(_mean(by_way[inference], "log_loss")) for inference in SAMPLED)
    return data, str(labels), *errors, *trivial, *losses


def _mean(results: Sequence[dict[str, Any]], key: str) -> Mean:
    return Mean(tuple(result[key] for result in results))


def _results(found: Mapping[str, Record], data: str, labels: int, inference: str) -> list[dict[str, Any]]:
    """The results of all partitions, in the order of the seeds."""
    way = "map" if inference == "map" else "sampled"
    names = [name(data, labels, way, seed) for seed in range(PARTITIONS)]
    done = [found[task].result for task in names if task in found and found[task].done]
    return done if inference == "map" else [result[inference] for result in done]


def _diagrams(found: Mapping[str, Record]) -> Figure | None:
    """One reliability diagram per data set, with all partitions and numbers of labels together."""
    panels = {data: _pooled_ways(found, data) for data in DATA}
    panels = {data: ways for data, ways in panels.items() if ways}
    if not panels:
        return None
    drawn = figure(4.2 * len(panels), 4.8)
    for ax, (data, ways) in zip(drawn.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        plot_reliability(ways, ax)
        ax.set_title(data, y=1.18)
    caption = (
        "How often the predicted class was right, against its probability; unlabelled points of all partitions with "
        f"{' and '.join(map(str, LABELS))} labels. Bars: two standard errors as if points were independent, which the "
        "points of one partition are not."
    )
    return Figure(caption, drawn, _describe(panels), NAME)


def _pooled_ways(found: Mapping[str, Record], data: str) -> dict[str, Reliability]:
    by_way = {NAMES[way]: [one for labels in LABELS for one in _results(found, data, labels, way)] for way in SAMPLED}
    return {way: pooled(results) for way, results in by_way.items() if results}


def _describe(panels: Mapping[str, Mapping[str, Reliability]]) -> str:
    return "; ".join(
        f"{data}, {way}: mean distance of accuracy from probability {found.expected_calibration_error:.3f}"
        for data, ways in panels.items()
        for way, found in ways.items()
    )


ITEM = Item(NAME, "Marginals instead of the most probable labelling", tasks, render, beyond=True)

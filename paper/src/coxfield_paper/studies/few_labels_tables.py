"""Tables of few labels: errors of all methods, and their times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield_paper.report.blocks import MISSING, Mean, Note, Table
from coxfield_paper.studies.few_labels_methods import FROM_GRAPH_LEARNING, METHODS
from coxfield_paper.studies.few_labels_sets import FAMILY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from coxfield_paper.studies.few_labels_sets import Family

    Results = Mapping[tuple[str, int, str], Mapping[int, Mapping[str, Any]]]

JUDGED = (
    "Mean and standard error over draws of the labelled points. Only unlabelled points are judged. A number in "
    "brackets is the number of draws, where a method has fewer of them than the row."
)
OWN = (
    "SLGCP: `SLGCPClassifier()`. SLGCP of the paper: the most probable labelling, with one squared exponential "
    "covariance; cross validation chooses its length scale. On digits it is slow, so it has two draws. LGCP "
    "(`LGCPClassifier()`) and 1-NN see the labelled points only."
)
PEERS = (
    "LabelSpreading and LabelPropagation: scikit-learn's, on the graph of 7 nearest neighbours. Alpha is 0.2, the "
    "default of scikit-learn, or 0.99, the value in the article that proposed the method. The rbf kernel of these "
    "methods is left out, because its default, gamma = 20, suits few data. Harmonic functions: the length scale by "
    "cross validation. Self-training SVC: standardised features, the defaults of scikit-learn, and sigmoids fitted to "
    "the scores. It needs two labels per class; draws with fewer are left out."
)
GRAPH_LEARNING = (
    "Laplace learning and Poisson learning: the package GraphLearning, its graph of 10 nearest neighbours, no class "
    "priors. Poisson learning expects classes of equal size; those of USPS are not."
)
ABSENT = (
    "Laplace learning and Poisson learning are missing: they need the package GraphLearning, "
    "`pip install 'coxfield[bench]'`."
)


def notes(results: Results) -> list[Note]:
    """What the figures and the methods of all tables are."""
    package = GRAPH_LEARNING if _has_graph_learning(results) else ABSENT
    return [Note(text) for text in (JUDGED, OWN, PEERS, package)]


def errors(family: Family, results: Results) -> Table:
    """The errors of one family of data sets: one row per set and number of labels, one column per method."""
    return Table(
        caption=f"{family.title}: error of the unlabelled points, %.",
        headings=("data", family.unit, "draws", *METHODS),
        rows=tuple(_error_row(data, labels, results) for data in family.sets for labels in family.labels),
    )


def _has_graph_learning(results: Results) -> bool:
    """Whether anything was measured with the package GraphLearning."""
    return any(by_seed for (_, _, method), by_seed in results.items() if method in FROM_GRAPH_LEARNING)


def _error_row(data: str, labels: int, results: Results) -> tuple[str, ...]:
    found = [tuple(one["error"] for one in results[data, labels, method].values()) for method in METHODS]
    draws = max(map(len, found))
    return data, str(labels), str(draws), *(_error_cell(Mean(one), draws) for one in found)


def _error_cell(mean: Mean, draws: int) -> str:
    """The mean error, and the number of draws where it is not that of the row."""
    fewer = f" [{len(mean.values)}]" if 0 < len(mean.values) < draws else ""
    return f"{mean.text(1)}{fewer}"


def seconds(results: Results) -> Table:
    """The time of one labelling: one row per data set, the mean over all draws and numbers of labels."""
    rows = [(data, [_taken(results, data, method) for method in METHODS]) for data in FAMILY]
    return Table(
        caption="Seconds to label all points of one draw, with the choice of parameters.",
        headings=("data", *METHODS),
        rows=tuple((data, *map(_short, taken)) for data, taken in rows if not all(map(np.isnan, taken))),
        notes=("Other tasks ran at the same time, on one thread each. The times are a rough guide.",),
    )


def _taken(results: Results, data: str, method: str) -> float:
    """Mean seconds over numbers of labels and draws; NaN if there are none."""
    return Mean(tuple(_seconds_of(results, data, method))).value


def _seconds_of(results: Results, data: str, method: str) -> Iterator[float]:
    for labels in FAMILY[data].labels:
        yield from (one["seconds"] for one in results[data, labels, method].values())


def _short(number: float) -> str:
    """A time to two digits; one digit below a tenth."""
    if np.isnan(number):
        return MISSING
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}" if number >= 0.1 else f"{number:.1g}"

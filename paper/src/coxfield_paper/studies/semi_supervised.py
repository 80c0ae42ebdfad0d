"""Figures sslDoubleHelix, sslExperiment and sslOil: test error against the number of labels, five methods."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_digits

from coxfield import LGCPClassifier
from coxfield.baselines import HarmonicFunctions, SVMClassifier, VariationalGPClassifier
from coxfield.datasets import fetch_mnist, load_oil, make_double_helix
from coxfield.datasets.fetch import require
from coxfield.estimators.trivial import TrivialLabellingWarning
from coxfield_paper.report.blocks import Claim, Figure, Note, Table, mean_of
from coxfield_paper.report.item import Item, Task
from coxfield_paper.studies import neighbour_graph
from coxfield_paper.studies.curves import (
    FEWEST,
    beats_supervised,
    curves_of,
    describe,
    draw,
    harmonic_ahead,
    like_harmonic,
    table,
)
from coxfield_paper.studies.paper_methods import paper_slgcp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from coxfield import SLGCPClassifier
    from coxfield_paper.report.records import Record

Draw = tuple["NDArray", "NDArray"]


def double_helix(rng: np.random.Generator) -> Draw:
    """A double helix of 500 points per strand."""
    return make_double_helix(random_state=rng)


def reduced_mnist(rng: np.random.Generator) -> Draw:
    """Digits 0 and 4 of the MNIST training set, 500 of each, pixels in [0, 1]."""
    X, y = _of_each(*_training_digits(), (0, 4), rng)
    return X / 255.0, y


@cache
def _training_digits() -> Draw:
    """Images and digits. They are kept between tasks: reading and checking them takes longer than some methods."""
    data = fetch_mnist()
    return data.X_train, data.y_train


def oil(rng: np.random.Generator) -> Draw:
    """Homogeneous and annular flow, 500 points of each, drawn from all three parts of the data."""
    data = load_oil()
    X, y = (np.concatenate([data[f"{kind}_{part}"] for part in ("train", "valid", "test")]) for kind in "Xy")
    return _of_each(X, y, (0, 1), rng)


def _of_each(X, y, classes, rng, count: int = 500) -> Draw:
    rows = [rng.choice(np.flatnonzero(y == label), count, replace=False) for label in classes]
    return X[np.concatenate(rows)], np.repeat(np.arange(len(classes)), count)


def digit1(rng: np.random.Generator) -> Draw:
    """All of digit1 from the benchmark of the book 'Semi-Supervised Learning': 1,500 artificial images, 241 pixels."""
    with np.load(require("ssl_digit1.npz", "digit1")) as arrays:
        return arrays["X"].astype(float), arrays["y"].astype(int)


def small_digits(rng: np.random.Generator) -> Draw:
    """Zeros and fours of scikit-learn's digits, 150 of each, 8 by 8 pixels in [0, 1]: at hand without a download."""
    X, y = load_digits(return_X_y=True)
    return _of_each(X / 16.0, y, (0, 4), rng, count=150)


DATA: dict[str, Callable[[np.random.Generator], Draw]] = {
    "double helix": double_helix,
    "rMNIST": reduced_mnist,
    "oil": oil,
    "digit1": digit1,
    "small digits": small_digits,
}


def partition(name: str, labels: int, seed: int) -> tuple[NDArray, NDArray, NDArray]:
    """Points, their classes, and the labels given: the classes of `labels` points, and -1 for all others.

    Points to label are drawn again until both classes have one.

    Examples
    --------
    >>> X, truth, y = partition("double helix", 10, seed=0)
    >>> X.shape, int((y >= 0).sum()), bool((y == truth)[y >= 0].all())
    ((1000, 3), 10, True)
    """
    rng = np.random.default_rng(seed)
    X, truth = DATA[name](rng)
    while True:
        known = rng.choice(len(truth), labels, replace=False)
        if len(np.unique(truth[known])) == 2:
            break
    y = np.full(len(truth), -1)
    y[known] = truth[known]
    return X, truth, y


SUPERVISED: dict[str, Callable[[int], Any]] = {
    "SVM": lambda seed: SVMClassifier(),
    "GPC": lambda seed: VariationalGPClassifier(random_state=seed),
    "LGCP": lambda seed: LGCPClassifier(selection="loo_error"),
}
TRANSDUCTIVE: dict[str, Callable[[], Any]] = {"SLGCP": paper_slgcp, "harmonic": HarmonicFunctions}
METHODS = (*SUPERVISED, *TRANSDUCTIVE)


def partition_error(data: str, labels: int, method: str, seed: int) -> dict[str, Any]:
    """Label the unlabelled points of one partition, and count the wrong labels, in per cent.

    Supervised methods see the labelled points only. For SLGCP the record also has the chosen length scale and the share
    of labels that are proven.
    """
    X, truth, y = partition(data, labels, seed)
    known, more = y >= 0, {}
    if method in SUPERVISED:
        found = SUPERVISED[method](seed).fit(X[known], y[known]).predict(X[~known])
    else:
        with warnings.catch_warnings():  # a trivial labelling counts as an error, without a warning
            warnings.simplefilter("ignore", TrivialLabellingWarning)
            classifier = TRANSDUCTIVE[method]().fit(X, y)
        found = classifier.transduction_[~known]
        more = _how(classifier) if method == "SLGCP" else {}
    return {"error": 100 * float(np.mean(found != truth[~known])), **more}


def _how(classifier: SLGCPClassifier) -> dict[str, float]:
    path = classifier.selection_path_
    return {
        "length_scale": path["length_scale"][path["chosen"]].item(),
        "certified": float(classifier.certified_.mean()),
    }


def neighbours(data: str, labels: int, seed: int) -> dict[str, Any]:
    """Look for a trivial solution in the nearest-neighbour graphs of one partition."""
    return neighbour_graph.search(*partition(data, labels, seed))


LABELS, PARTITIONS = (FEWEST, 20, 30, 50, 100), 10
QUICK_LABELS, QUICK_PARTITIONS = (FEWEST, 30, 100), 3
STANDS_IN = (
    "A stand-in: zeros and fours of scikit-learn's digits, 150 of each at 8 by 8 pixels, in the place of {data}, which "
    "the paper draws from MNIST. So it shows the method, and tests no statement of the paper. `coxfield reproduce "
    "{name}` computes the figure itself."
)
SET_UP = (
    "SVM, GPC and LGCP see the labelled points only and are set up as in table 1. SLGCP and harmonic functions choose "
    "the length scale by ten-fold cross validation of the labelled points, and see all points. Harmonic functions are "
    "without class mass normalisation, because the paper does not say how it modified the original code."
)


@dataclass(frozen=True)
class Curve:
    """One of the three figures."""

    name: str
    data: str
    """Name in `DATA`."""
    figure: str
    """Label in the paper."""
    quick: str
    """Name of the data of the quick run: the same, or a stand-in; "" for none. Others are in no package."""
    alike: bool
    """Whether the paper finds no difference between harmonic functions and SLGCP for any number of labels."""

    def tasks(self, quick: bool) -> list[Task]:
        """One task per number of labels, method and partition; and one per partition for the trivial solution."""
        data = self.quick if quick else self.data
        if not data:
            return []
        counts, seeds = (QUICK_LABELS, QUICK_PARTITIONS) if quick else (LABELS, PARTITIONS)
        errors = [
            self._task(data, f"{labels}/{method}/{seed}", partition_error, labels=labels, method=method, seed=seed)
            for labels in counts
            for method in METHODS
            for seed in range(seeds)
        ]
        graphs = [self._task(data, f"neighbours/{seed}", neighbours, labels=FEWEST, seed=seed) for seed in range(seeds)]
        return errors + (graphs if data == self.data else [])

    def _task(self, data: str, end: str, function: Callable[..., dict[str, Any]], **arguments) -> Task:
        folder = self.name if data == self.data else f"{self.name}/{data}"
        return Task(f"{folder}/{end}", function, {"data": data, **arguments})

    def _own(self, found: Mapping[str, Record]) -> dict[str, Record]:
        """The records of the data of the figure, without those of a stand-in."""
        return {name: record for name, record in found.items() if record.arguments["data"] == self.data}

    def render(self, found: Mapping[str, Record]) -> Sequence[Figure | Table | Note]:
        """The curves as a figure and as a table, and the neighbour graphs."""
        own = self._own(found)
        stands_in = bool(found) and not curves_of(own.values()).errors and self.quick not in ("", self.data)
        found, data = (found, self.quick) if stands_in else (own, self.data)
        curves, graphs = curves_of(found.values()), _graphs(found)
        blocks: list[Figure | Table | Note] = []
        if curves.errors:
            caption = f"Test error on the {data} data against the number of labels; bars are one standard error."
            if stands_in:
                blocks.append(Note(STANDS_IN.format(data=self.data, name=self.name)))
            blocks += [Figure(caption, draw(curves), describe(curves), self.name), table(curves, _notes(found))]
        if graphs:
            blocks.append(neighbour_graph.table(graphs, FEWEST))
        return blocks or [self._absent()]

    def _absent(self) -> Note:
        parts = ["There are no results, so no figure and no table."]
        if self.quick != self.data:
            parts.append(
                "It is not part of the quick run, because its data are read from the folder that COXFIELD_DATA names."
            )
        return Note(" ".join([*parts, f"Run `coxfield reproduce {self.name}`."]))

    def claims(self, found: Mapping[str, Record]) -> Sequence[Claim]:
        """What the paper says about the figure."""
        found = self._own(found)
        curves = curves_of(found.values())
        others = [labels for labels in curves.labels or LABELS if self.alike or labels > FEWEST]
        claims = [
            beats_supervised(curves, self.data),
            like_harmonic(curves, self.data, others),
            neighbour_graph.claim(_graphs(found), self.data),
        ]
        return claims if self.alike else [*claims, harmonic_ahead(curves, self.data)]


def _graphs(found: Mapping[str, Record]) -> list[dict[str, Any]]:
    return [record.result for record in found.values() if record.done and "parts" in record.result]


def _notes(found: Mapping[str, Record]) -> tuple[str, ...]:
    slgcp = [record for record in found.values() if record.done and "certified" in record.result]
    proven = f"{100 * mean_of(slgcp, 'certified').value:.1f} % of the labels of SLGCP are proven." if slgcp else ""
    return tuple(filter(None, ("The paper draws these curves and prints no numbers.", SET_UP, proven)))


CURVES = (
    Curve("curve-helix", "double helix", "sslDoubleHelix", quick="double helix", alike=False),
    Curve("curve-rmnist", "rMNIST", "sslExperiment", quick="small digits", alike=True),
    Curve("curve-oil", "oil", "sslOil", quick="", alike=True),
)
ITEMS = tuple(
    Item(curve.name, f"Figure {curve.figure}: test error on {curve.data}", curve.tasks, curve.render, curve.claims)
    for curve in CURVES
)

"""What mixtures of covariances are worth: errors, log losses and calibration, beside other rules and classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield_paper.report.blocks import MISSING, Figure, Mean, Note, Table
from coxfield_paper.report.item import Item, Task
from coxfield_paper.studies import mixture_calibration as calibration
from coxfield_paper.studies.data_sets import MNIST, RANDOM
from coxfield_paper.studies.mixture_methods import (
    GRID,
    METHODS,
    MIXTURE,
    NEAREST,
    PLAIN,
    TIMED,
    fit_seconds,
    measure,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coxfield_paper.report.records import Record

    Found = Mapping[str, Record]
    Results = Sequence[Mapping[str, Any]]

NAME = "table-mixtures"
PARTITIONS = {
    "Synth": 1,
    "Diabetes": 1,
    "Banana": RANDOM,
    "BCI": RANDOM,
    "breast cancer": RANDOM,
    "wine": RANDOM,
    "digits": RANDOM,
    "satimage": 1,
    "pendigits": 1,
    MNIST: 1,
}
QUICK = {"Synth": 1, "Diabetes": 1, "Banana": 2, "wine": 2}
CHEAP = (MIXTURE, PLAIN, "loo_log_loss", NEAREST)
LARGE = ("satimage", "pendigits", MNIST)  # with thousands of training points: no Gaussian process
ON_MNIST = (MIXTURE, PLAIN, NEAREST)
CLOCKED = ("digits", "satimage", "pendigits")  # sets on which fits are timed alone
DRAWN = [data for data in PARTITIONS if data != MNIST]  # sets in the reliability diagram

DESIGNED = (
    "The family of covariances behind `mixture` was designed while looking at test figures of these data sets: which "
    "representations of the features it has, which length scales, which powers of the density. The weights are fitted "
    "to training points only. But the figures of `mixture` are no test of the design. On data that the design has "
    "never seen, expect a smaller advantage."
)
RULES = (
    "mixture: the default of `LGCPClassifier`, a mixture of covariances that are divided by powers of the density of "
    "the points; leave-one-out log loss chooses the weights. loo_error: the paper's rule. loo_log_loss and "
    "pseudo_likelihood: the other rules for one covariance."
)
LOSSES = (
    "Log loss in nats; probabilities are held above 2e-16, as scikit-learn does. Votes of a few neighbours are often "
    "zero. Each zero for the true class costs 36 nats, and a few of them dominate the log loss of k-NN. Mean and "
    "standard error over ten random partitions, which overlap. The other data sets have one standard partition."
)
PEERS = (
    "Features are standardised, except for LGCP and for trees. calibrated SVC: C and gamma on a grid of 5 x 5 by "
    "5-fold cross validation, and sigmoids fitted to its scores. Gaussian process: scikit-learn's, Laplace's "
    "approximation, one class against the rest; left out where there are thousands of training points. k-NN: k among "
    "1, 3, 5, 9, 15 and 25 by the error in 5-fold cross validation. logistic regression: its penalty by the log loss "
    "in 5-fold cross validation. random forest: 500 trees. On MNIST only LGCP and 3-NN on raw pixels are run."
)
SECONDS = (
    "Seconds of one partition, while other tasks ran too. They are only a rough guide. LGCP on MNIST ran alone, on all "
    "processors."
)
CLOCK = (
    "First partition, one thread each, nothing else running. The last columns are test errors. The grid search tries "
    "5 x 5 values of C and gamma by 5-fold cross validation and fits once more: 126 fits of an SVC on standardised "
    "features, without probabilities."
)


def methods_for(data: str) -> list[str]:
    """The methods that are run on a data set."""
    if data == MNIST:
        return list(ON_MNIST)
    return [method for method in METHODS if method != "Gaussian process" or data not in LARGE]


def name(data: str, method: str, seed: int) -> str:
    """The name of a task that measures."""
    return f"{NAME}/{data}/{method}/{seed}"


def clock_name(data: str, method: str) -> str:
    """The name of a task that takes the time of a fit."""
    return f"{NAME}/seconds/{data}/{method}"


def tasks(quick: bool) -> list[Task]:
    """One task per data set, method and partition, and one per fit that is timed alone."""
    measured = [
        Task(name(data, method, seed), measure, {"data": data, "method": method, "seed": seed}, _alone(data, method))
        for data, count in (QUICK if quick else PARTITIONS).items()
        for method in methods_for(data)
        if method in CHEAP or not quick
        for seed in range(count)
    ]
    timed = [
        Task(clock_name(data, method), fit_seconds, {"data": data, "method": method}, alone=True)
        for data in CLOCKED
        for method in TIMED
    ]
    return measured if quick else [*measured, *timed]


def _alone(data: str, method: str) -> bool:
    """Whether a task uses all processors itself."""
    return data == MNIST and method in (MIXTURE, PLAIN)


def render(found: Found) -> Sequence[Table | Figure | Note]:
    """Errors and log losses, calibration, the reliability diagram, times of fits, and what is missing."""
    known = [data for data in PARTITIONS if any(_results(found, data, method) for method in methods_for(data))]
    blocks: list[Table | Figure | Note] = [Note(DESIGNED), _losses(found, known)] if known else []
    blocks += _calibration(found, [data for data in known if _results(found, data, MIXTURE)])
    if clocked := [data for data in CLOCKED if any(_clocked(found, data, method) for method in TIMED)]:
        blocks.append(_clock(found, clocked))
    if missing := [data for data in PARTITIONS if data not in known]:
        blocks.append(Note(f"There are no results for {', '.join(missing)}. Run `coxfield reproduce {NAME}`."))
    return blocks


def _results(found: Found, data: str, method: str) -> list[dict[str, Any]]:
    """The results of all partitions."""
    records = [found.get(name(data, method, seed)) for seed in range(PARTITIONS[data])]
    return [record.result for record in records if record is not None and record.done]


def _clocked(found: Found, data: str, method: str) -> list[dict[str, Any]]:
    """The time of a fit, or nothing."""
    record = found.get(clock_name(data, method))
    return [record.result] if record is not None and record.done else []


def _mean(results: Results, key: str) -> Mean:
    return Mean(tuple(result[key] for result in results))


def _train(results: Results) -> str:
    """The number of training points."""
    return next((f"{result['train']:,}" for result in results), MISSING)


def _losses(found: Found, known: Sequence[str]) -> Table:
    return Table(
        caption="Test error and log loss of LGCP for each way to choose its covariance, and of other classifiers.",
        headings=("data", "method", "training points", "partitions", "error, %", "log loss", "fit, s", "predict, s"),
        rows=tuple(
            _loss_row(data, method, _results(found, data, method)) for data in known for method in methods_for(data)
        ),
        notes=(RULES, LOSSES, PEERS, SECONDS),
    )


def _loss_row(data: str, method: str, results: Results) -> tuple[str, ...]:
    count = str(len(results)) if results else MISSING
    losses = _mean(results, "error").text(2), _mean(results, "log_loss").text(3)
    times = (_short(_mean(results, key).value) for key in ("fit_seconds", "predict_seconds"))
    return data, method, _train(results), count, *losses, *times


def _short(number: float) -> str:
    """A time or a ratio, to two digits; one digit below a tenth."""
    if np.isnan(number):
        return MISSING
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}" if number >= 0.1 else f"{number:.1g}"


def _calibration(found: Found, mixed: Sequence[str]) -> list[Table | Figure]:
    """The table and the diagram of the sets with a mixture."""
    judged = {data: {method: _results(found, data, method) for method in calibration.JUDGED} for data in mixed}
    drawn = {data: judged[data][MIXTURE] for data in DRAWN if data in judged}
    blocks: list[Table | Figure] = [calibration.table(judged)] if judged else []
    return [*blocks, calibration.diagram(drawn, NAME)] if drawn else blocks


def _clock(found: Found, known: Sequence[str]) -> Table:
    return Table(
        caption="Seconds of a fit of the mixture, beside a grid search for a support vector machine.",
        headings=(
            "data",
            "training points",
            "mixture, s",
            f"{GRID}, s",
            "grid / mixture",
            "error, %",
            "error of SVC, %",
        ),
        rows=tuple(_clock_row(data, *(_clocked(found, data, method) for method in (MIXTURE, GRID))) for data in known),
        notes=(CLOCK,),
    )


def _clock_row(data: str, mixed: Results, searched: Results) -> tuple[str, ...]:
    ours, grid = (_mean(results, "fit_seconds").value for results in (mixed, searched))
    errors = (_mean(results, "error").text(2) for results in (mixed, searched))
    return data, _train([*mixed, *searched]), *map(_short, (ours, grid, grid / ours)), *errors


ITEM = Item(NAME, "Beyond the paper: mixtures of covariances", tasks, render)

"""What mixtures of covariances are worth: errors, log losses and calibration, beside other rules and classifiers."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from coxfield import LGCPClassifier, threads
from coxfield.calibration import reliability
from coxfield_paper.report.blocks import MISSING, Figure, Mean, Note, Table
from coxfield_paper.report.item import Item, Task
from coxfield_paper.studies.data_sets import MNIST, RANDOM, load
from coxfield_paper.studies.peers import (
    FINE,
    gaussian_process,
    grid_search,
    logistic_regression,
    nearest_neighbours,
    random_forest,
    support_vectors,
)
from coxfield_paper.studies.reliability import chance_error, in_double, panels, pooled, sums
from coxfield_paper.studies.study import Study, crossed, mean, short

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from coxfield_paper.report.records import Record

    Found = Mapping[str, Record]
    Results = Mapping[int, Mapping[str, Any]]

MIXTURE, PLAIN, SVM, NEAREST = "mixture", "loo_error", "calibrated SVC", "k-NN"
GRID = "SVC 5 x 5 grid"
# Each from the number of features and the seed.
METHODS: dict[str, Callable[[int, int], Any]] = {
    MIXTURE: lambda d, seed: LGCPClassifier(),
    PLAIN: lambda d, seed: LGCPClassifier(selection=PLAIN),
    "loo_log_loss": lambda d, seed: LGCPClassifier(selection="loo_log_loss"),
    "pseudo_likelihood": lambda d, seed: LGCPClassifier(selection="pseudo_likelihood"),
    SVM: lambda d, seed: support_vectors(d, FINE),
    "Gaussian process": lambda d, seed: gaussian_process(d),
    NEAREST: lambda d, seed: nearest_neighbours(),
    "logistic regression": lambda d, seed: logistic_regression(),
    "random forest": lambda d, seed: random_forest(seed),
}
TIMED: dict[str, Callable[[int], Any]] = {MIXTURE: lambda d: LGCPClassifier(), GRID: lambda d: grid_search(d, FINE)}


def build(data: str, method: str, n_features: int, seed: int) -> Any:
    """A classifier for a data set, not yet fitted."""
    if (data, method) == (MNIST, NEAREST):
        # Cross validation on 60,000 images takes hours, and standardised pixels at the border are noise.
        return KNeighborsClassifier(3, algorithm="brute")
    return METHODS[method](n_features, seed)


def measure(data: str, method: str, seed: int) -> dict[str, Any]:
    """Fit on one partition of a data set, and judge the probabilities of its test part.

    Returns
    -------
    dict
        "error" in per cent, "log_loss" in nats, "ece" (expected calibration error), "bins" of the reliability,
        "fit_seconds", "predict_seconds", "train" (training points), and "members" that survive in a mixture.
    """
    X_train, y_train, X_test, y_test = load(data, seed)
    classifier = build(data, method, X_train.shape[1], seed)
    start = perf_counter()
    classifier.fit(X_train, y_train)
    fitted = perf_counter()
    probabilities = classifier.predict_proba(X_test)
    predicted = perf_counter()
    judged = reliability(y_test, in_double(probabilities), classifier.classes_)
    measured = {
        "train": len(y_train),
        # Where probabilities are equal after rounding, LGCP still decides by its scores.
        "error": _error(classifier, X_test, y_test),
        "ece": judged.expected_calibration_error,
        "fit_seconds": fitted - start,
        "predict_seconds": predicted - fitted,
    }
    return measured | sums(judged) | _members(classifier)


def _error(classifier: Any, X: NDArray, y: NDArray) -> float:
    """Share of wrong decisions, in per cent."""
    return 100 * float(np.mean(classifier.predict(X) != y))


def _members(classifier: Any) -> dict[str, int]:
    """The number of members of a mixture that have a weight."""
    return {"members": len(classifier.mixture_["weight"])} if hasattr(classifier, "mixture_") else {}


def fit_seconds(data: str, method: str) -> dict[str, Any]:
    """The time of a fit to the first partition of a data set, on one thread, and the test error in per cent."""
    X_train, y_train, X_test, y_test = load(data)
    classifier = TIMED[method](X_train.shape[1])
    with threads.small_steps(), threads.limit(1, "openmp"):
        start = perf_counter()
        classifier.fit(X_train, y_train)
        taken = perf_counter() - start
        error = _error(classifier, X_test, y_test)
    return {"train": len(y_train), "fit_seconds": taken, "error": error} | _members(classifier)


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
BESIDE = (PLAIN, SVM)  # methods in the table of calibration
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
CALIBRATION = (
    "Expected calibration error: mean distance of accuracy from probability, in ten bins. By chance: what it would be "
    "if the probabilities of the mixture were right, because a test part has only so many points. Members: covariances "
    "in the mixture that have a weight."
)
SECONDS = (
    "Seconds of one partition, while other tasks ran too. They are only a rough guide. LGCP on MNIST ran alone, on all "
    "processors."
)
LEFT_OUT = "A method without a row was not run on that set."
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


def _quick_methods(data: str) -> list[str]:
    return [method for method in methods_for(data) if method in CHEAP]


STUDY = Study(
    NAME,
    measure,
    ("data", "method"),
    cells=crossed(PARTITIONS, methods_for),
    quick=crossed(QUICK, _quick_methods),
    alone=[(MNIST, MIXTURE), (MNIST, PLAIN)],
)


def clock_name(data: str, method: str) -> str:
    """The name of a task that takes the time of a fit."""
    return f"{NAME}/seconds/{data}/{method}"


def tasks(quick: bool) -> list[Task]:
    """Those of the study, and one per fit that is timed alone."""
    timed = [
        Task(clock_name(data, method), fit_seconds, {"data": data, "method": method}, alone=True)
        for data in CLOCKED
        for method in TIMED
    ]
    return STUDY.tasks(quick) if quick else [*STUDY.tasks(quick), *timed]


def render(found: Found) -> Sequence[Table | Figure | Note]:
    """Errors and log losses, calibration, the reliability diagram, times of fits, and what is missing."""
    known = STUDY.known(found)
    blocks: list[Table | Figure | Note] = [Note(DESIGNED), _losses(found, known)] if known else []
    mixed = {data: results for data in known if (results := STUDY.results(found, data, MIXTURE))}
    if mixed:
        blocks.append(_calibration(found, mixed))
    if drawn := {data: mixed[data] for data in DRAWN if data in mixed}:
        blocks.append(_diagram(drawn))
    if clocked := [data for data in CLOCKED if any(_clocked(found, data, method) for method in TIMED)]:
        blocks.append(_clock(found, clocked))
    return [*blocks, *STUDY.absent(found)]


def _clocked(found: Found, data: str, method: str) -> dict[int, dict[str, Any]]:
    """The time of a fit, as if it were of seed 0; or nothing."""
    record = found.get(clock_name(data, method))
    return {0: record.result} if record is not None and record.done else {}


def _train(results: Results) -> str:
    """The number of training points."""
    return next((f"{result['train']:,}" for result in results.values()), MISSING)


def _losses(found: Found, known: Sequence[str]) -> Table:
    return Table(
        caption="Test error and log loss of LGCP for each way to choose its covariance, and of other classifiers.",
        headings=("data", "method", "training points", "partitions", "error, %", "log loss", "fit, s", "predict, s"),
        rows=tuple(
            _loss_row(data, method, results)
            for data in known
            for method in methods_for(data)
            if (results := STUDY.results(found, data, method))
        ),
        notes=(RULES, LOSSES, PEERS, SECONDS, LEFT_OUT),
    )


def _loss_row(data: str, method: str, results: Results) -> tuple[str, ...]:
    losses = mean(results, "error").text(2), mean(results, "log_loss").text(3)
    times = (short(mean(results, key).value) for key in ("fit_seconds", "predict_seconds"))
    return data, method, _train(results), str(len(results)), *losses, *times


def _calibration(found: Found, mixed: Mapping[str, Results]) -> Table:
    """Calibration errors of the sets with a mixture."""
    return Table(
        caption="Expected calibration error of the default, beside two others.",
        headings=("data", "members", MIXTURE, "by chance", *BESIDE),
        rows=tuple(
            _calibration_row(data, results, [STUDY.results(found, data, method) for method in BESIDE])
            for data, results in mixed.items()
        ),
        notes=(CALIBRATION,),
    )


def _calibration_row(data: str, mixed: Results, others: Sequence[Results]) -> tuple[str, ...]:
    chance = Mean(tuple(chance_error(pooled([result])) for result in mixed.values()))
    errors = [mean(results, "ece").text(3) for results in (mixed, *others)]
    return data, f"{mean(mixed, 'members').value:.0f}", errors[0], f"{chance.value:.3f}", *errors[1:]


def _diagram(mixed: Mapping[str, Results]) -> Figure:
    """Reliability of the mixture, one panel per data set, with the predictions of all partitions together."""
    judged = {data: pooled([*results.values()]) for data, results in mixed.items()}
    errors = {data: f"{one.expected_calibration_error:.3f}" for data, one in judged.items()}
    drawn = panels({f"{data}: ECE {errors[data]}": {data: one} for data, one in judged.items()})
    description = "; ".join(f"{data}: {error}" for data, error in errors.items())
    caption = (
        "How often the class predicted by the mixture was right, against its probability. ECE: expected calibration "
        "error. The predictions of all partitions are taken together, so chance adds less to it than in the table. "
        "Bars are two standard errors as if test points were independent; random partitions share test points."
    )
    return Figure(caption, drawn, f"Mean distance of accuracy from probability. {description}.", NAME)


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
    ours, grid = (mean(results, "fit_seconds").value for results in (mixed, searched))
    errors = (mean(results, "error").text(2) for results in (mixed, searched))
    return data, _train(mixed or searched), *map(short, (ours, grid, grid / ours)), *errors


ITEM = Item(NAME, "Mixtures of covariances", tasks, render, beyond=True)

"""The appendix in numbers: approximations of alpha-permanents beside the exact, and the classifier beside LGCP.

`python -m coxfield.experiments.permanental` prints both tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss

from coxfield import LGCPClassifier, PermanentalClassifier
from coxfield.experiments.partitions import embedded
from coxfield.permanents import importance_permanent, insertion_matrix, log_permanent_ratio_cyclic

if TYPE_CHECKING:
    from numpy.typing import NDArray

CYCLES = (2, 3, 4)
SAMPLES = (100, 1000, 10_000)
SIDE = 2.0  # of the square in which points are drawn
QUERIES = 10  # new points a pattern


@dataclass(frozen=True)
class Accuracy:
    """Root mean square errors of log ratios of alpha-permanents, over random patterns in a square."""

    n: int
    alpha: float
    length_scale: float
    cyclic: dict[int, float]
    """Longest cycle -> error."""
    importance: dict[int, float]
    """Permutations drawn -> error."""


def accuracy(
    sizes=(6, 10, 14), alphas=(0.5, 1.0, 2.0), length_scales=(0.2, 0.5, 1.0), patterns=10, random_state=0
) -> list[Accuracy]:
    """Compare the cyclic approximation and importance sampling with exact ratios, for all combinations."""
    rng = np.random.default_rng(random_state)
    return [_accuracy(n, alpha, scale, patterns, rng) for n, alpha, scale in product(sizes, alphas, length_scales)]


def _accuracy(n: int, alpha: float, length_scale: float, patterns: int, rng) -> Accuracy:
    errors: dict[tuple[str, int], list[NDArray]] = {}
    for _ in range(patterns):
        X = rng.uniform(0, SIDE, size=(n + QUERIES, 2))
        K = 2 * RBF(length_scale)(X)
        exact = _log_ratios(K, n, alpha, insertion_matrix(K[:n, :n], alpha))
        for m in CYCLES:
            approximate = log_permanent_ratio_cyclic(K[:n, :n], K[n:, :n], np.diagonal(K)[n:], alpha, cycles=m)
            errors.setdefault(("cyclic", m), []).append(approximate - exact)
        for size in SAMPLES:
            seed = int(rng.integers(2**31))
            sampled = importance_permanent(K[:n, :n], alpha, n_samples=size, random_state=seed)
            errors.setdefault(("sampled", size), []).append(_log_ratios(K, n, alpha, sampled.insertion) - exact)
    rms = {key: float(np.sqrt(np.mean(np.square(values)))) for key, values in errors.items()}
    return Accuracy(
        n, alpha, length_scale, {m: rms["cyclic", m] for m in CYCLES}, {size: rms["sampled", size] for size in SAMPLES}
    )


def _log_ratios(K: NDArray, n: int, alpha: float, Q: NDArray) -> NDArray:
    rows = K[n:, :n]
    return np.log(alpha * np.diagonal(K)[n:] + np.einsum("ij,ij->i", rows @ Q, rows))


@dataclass(frozen=True)
class Errors:
    """Test errors in per cent and log losses in nats, each a mean over partitions."""

    data: str
    partitions: int
    error: dict[str, float]
    """Classifier -> test error."""
    standard_error: dict[str, float]
    """Classifier -> standard error of the mean over partitions, NaN for one partition."""
    log_loss: dict[str, float]


def classifiers() -> dict:
    """What is compared: LGCP, and the permanental classifier with ever longer cycles."""
    return {"LGCP": LGCPClassifier()} | {f"{m} cycles": PermanentalClassifier(cycles=m) for m in CYCLES}


def classification(partitions: int = 10, random_state: int = 0) -> list[Errors]:
    """Test errors on Synth, Diabetes (Pima) and Banana, the last over random partitions of 400 and 4900 points."""
    return [_errors(name, parts) for name, parts in embedded(partitions, random_state).items()]


def _errors(name: str, partitions) -> Errors:
    error: dict[str, list] = {}
    loss: dict[str, list] = {}
    for X_train, y_train, X_test, y_test in partitions:
        for label, classifier in classifiers().items():
            classifier.fit(X_train, y_train)
            error.setdefault(label, []).append(100 * (1 - classifier.score(X_test, y_test)))
            loss.setdefault(label, []).append(log_loss(y_test, classifier.predict_proba(X_test)))
    count = len(partitions)
    spread = {key: np.std(values, ddof=1) / np.sqrt(count) if count > 1 else np.nan for key, values in error.items()}
    return Errors(name, count, _means(error), {key: float(value) for key, value in spread.items()}, _means(loss))


def _means(values: dict[str, list]) -> dict[str, float]:
    return {key: float(np.mean(numbers)) for key, numbers in values.items()}


def render_accuracy(records: list[Accuracy]) -> Table:
    """A row for each size, alpha and length scale."""
    table = Table(title="RMS error of log Per(x, x*) / Per(x): cycles up to ..., permutations drawn ...")
    headings = [
        "n",
        "alpha",
        "length scale",
        *(f"{m} cycles" for m in CYCLES),
        *(f"{size:,} drawn" for size in SAMPLES),
    ]
    for heading in headings:
        table.add_column(heading, justify="right")
    for record in records:
        numbers = [*record.cyclic.values(), *record.importance.values()]
        cells = [f"{record.n}", f"{record.alpha:g}", f"{record.length_scale:g}"]
        table.add_row(*cells, *(f"{number:.4f}" for number in numbers))
    return table


def render_classification(records: list[Errors]) -> Table:
    """A row for each data set and classifier."""
    table = Table(title="Test error and log loss, permanental beside LGCP")
    for heading in ("data", "classifier", "error / %", "standard error", "log loss / nats"):
        table.add_column(heading, justify="left" if heading in ("data", "classifier") else "right")
    for record in records:
        for label, error in record.error.items():
            spread = "" if record.partitions == 1 else f"{record.standard_error[label]:.2f}"
            table.add_row(record.data, label, f"{error:.1f}", spread, f"{record.log_loss[label]:.3f}")
    return table


if __name__ == "__main__":
    console = Console(width=120)
    console.print(render_accuracy(accuracy()))
    console.print(render_classification(classification()))

"""Approximate ratios of alpha-permanents beside exact ones, for patterns of few points."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from coxfield.permanents import importance_permanent, insertion_matrix, log_permanent_ratio_cyclic
from coxfield_paper.report.blocks import Table
from coxfield_paper.report.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from coxfield_paper.report.records import Record

CYCLES = (2, 3, 4)
SAMPLES = (100, 1000, 10_000)
SIDE = 2.0  # of the square in which points are drawn
QUERIES = 10  # new points per pattern
PATTERNS = 10
SIZES, QUICK_SIZES = (6, 10, 14), (6, 10)
ALPHAS, LENGTH_SCALES = (0.5, 1.0, 2.0), (0.2, 0.5, 1.0)

NOTE = (
    f"{PATTERNS} patterns of points uniform in a square of side {SIDE:g}, {QUERIES} new points each, squared "
    "exponential kernel."
)


def accuracy(n: int, alpha: float, length_scale: float, patterns: int, seed: int) -> dict[str, Any]:
    """Root mean square errors of log ratios over random patterns, for each approximation."""
    rng = np.random.default_rng(seed)
    errors = [_errors(n, alpha, length_scale, rng) for _ in range(patterns)]
    return {key: float(np.sqrt(np.mean([np.square(each[key]) for each in errors]))) for key in errors[0]}


def _errors(n: int, alpha: float, length_scale: float, rng: np.random.Generator) -> dict[str, NDArray]:
    """Approximate minus exact log ratios of the new points of one pattern, for each approximation."""
    K = 2 * RBF(length_scale)(rng.uniform(0, SIDE, size=(n + QUERIES, 2)))
    old, rows, variances = K[:n, :n], K[n:, :n], np.diagonal(K)[n:]

    def log_ratios(Q: NDArray) -> NDArray:
        return np.log(alpha * variances + np.einsum("ij,ij->i", rows @ Q, rows))

    found = {cycle(m): log_permanent_ratio_cyclic(old, rows, variances, alpha, cycles=m) for m in CYCLES}
    for size in SAMPLES:
        seed = int(rng.integers(2**31))
        estimate = importance_permanent(old, alpha, n_samples=size, random_state=seed)
        found[drawn(size)] = log_ratios(estimate.insertion)
    exact = log_ratios(insertion_matrix(old, alpha))
    return {key: values - exact for key, values in found.items()}


def cycle(longest: int) -> str:
    """Name of the cyclic approximation in the table."""
    return f"{longest} cycles"


def drawn(size: int) -> str:
    """Name of importance sampling in the table."""
    return f"{size:,} drawn"


def tasks(quick: bool) -> list[Task]:
    """One task per number of points, alpha and length scale; a quick run leaves out the largest number."""
    combinations = product(QUICK_SIZES if quick else SIZES, ALPHAS, LENGTH_SCALES)
    return [Task(name(n, alpha, scale), accuracy, _arguments(n, alpha, scale)) for n, alpha, scale in combinations]


def name(n: int, alpha: float, length_scale: float) -> str:
    """The name of a task."""
    return f"appendix/accuracy/{n}/{alpha:g}/{length_scale:g}"


def _arguments(n: int, alpha: float, length_scale: float) -> dict[str, Any]:
    return {"n": n, "alpha": alpha, "length_scale": length_scale, "patterns": PATTERNS, "seed": 0}


def table(found: Mapping[str, Record]) -> Table:
    """One row per number of points, alpha and length scale that has been computed."""
    combinations = list(product(SIZES, ALPHAS, LENGTH_SCALES))
    records = {each: found[name(*each)] for each in combinations if name(*each) in found}
    columns = [*map(cycle, CYCLES), *map(drawn, SAMPLES)]
    return Table(
        caption="Root mean square error of the log ratio of alpha-permanents. Columns: the longest cycle of the cyclic "
        "approximation, or the number of permutations drawn for importance sampling.",
        headings=("points", "alpha", "length scale", *columns),
        rows=tuple(
            (*(f"{value:g}" for value in each), *(f"{record.result[column]:.4f}" for column in columns))
            for each, record in records.items()
            if record.done
        ),
        notes=(NOTE,),
    )

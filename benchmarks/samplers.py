"""Swendsen-Wang beside Gibbs through the transition of a field of 1,000 nodes: effective samples a second.

Points are uniform in a square, one a unit of area, and one of each class is labelled, at opposite edges. The signal
variance, an inverse temperature, goes through the value at which the nodes begin to agree with each other: there the
magnetisation M = |2 m - 1|, m being the share of nodes in the second class, fluctuates most. What is followed is m, the
slowest quantity there is, and every single marginal. Both samplers move the same number of chains on one thread, from
the same kind of start; seconds are the processor's, so that other programs do not count, and include the burn-in.
"""

import argparse
import time
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from benchmarks.harness import seconds
from coxfield.field import Gibbs, LabelField, SwendsenWang, sample, samplers
from coxfield.field.chains import effective_sample_size, r_hat

console = Console(width=120)
VARIANCES = (0.3, 0.4, 0.5, 0.55, 0.6, 0.7)
UNMIXED = 1.1  # an R-hat beyond which effective draws are overestimated
CHAINS = 4


@dataclass(frozen=True)
class Run:
    """One sampler at one signal variance."""

    variance: float
    sampler: str
    milliseconds: float
    """Of a step of all chains."""
    magnetisation: float
    susceptibility: float
    """Number of nodes times the variance of the magnetisation."""
    r_hat: float
    """Of the share m; where it is far above 1, effective draws are an overestimate."""
    share: float
    """Effective draws of the share m, per second."""
    slowest: float
    """Effective draws of the slowest marginal, per second."""
    median: float
    """Effective draws of the median marginal, per second."""


def square_field(n, variance, rng):
    X = rng.uniform(0, np.sqrt(n), size=(n + 2, 2))
    labels = np.full(n + 2, -1)
    labels[[X[:, 0].argmin(), X[:, 0].argmax()]] = 0, 1
    return LabelField.from_points(X, variance * RBF(1.0), labels)


def measure(kind, field, variance, n_samples):
    sampler = kind(field)
    sample(sampler, 1, n_chains=CHAINS, burn_in=0)  # couplings are evaluated once
    start = time.process_time()
    samples = sample(sampler, n_samples, n_chains=CHAINS, random_state=0)
    elapsed = time.process_time() - start
    share = samples.labels.mean(axis=2)
    magnetisation = np.abs(2 * share - 1)
    effective = samples.effective_sample_size
    return Run(
        variance,
        kind.__name__,
        1000 * elapsed / (1.1 * n_samples),  # a tenth more are burnt
        float(magnetisation.mean()),
        float(len(field) * magnetisation.var()),
        float(r_hat(share)),
        float(effective_sample_size(share)) / elapsed,
        float(effective.min()) / elapsed,
        float(np.median(effective)) / elapsed,
    )


def show(runs, n, n_samples):
    table = Table(title=f"{n:,} nodes, {CHAINS} chains of {n_samples:,} draws: effective draws a second")
    headings = ("variance", "sampler", "ms a step", "M", "n var M", "R-hat of m", "m / s", "slowest / s", "median / s")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "sampler" else "right")
    for run in runs:
        numbers = (f"{run.magnetisation:.2f}", f"{run.susceptibility:.1f}", f"{run.r_hat:.2f}")
        rates = (f"{run.share:.1f}", f"{run.slowest:.1f}", f"{run.median:.1f}")
        table.add_row(f"{run.variance}", run.sampler, f"{run.milliseconds:.1f}", *numbers, *rates)
    console.print(table)
    for gibbs, bound_nodes in zip(runs[::2], runs[1::2], strict=True):
        ratios = bound_nodes.share / gibbs.share, bound_nodes.slowest / gibbs.slowest, bound_nodes.median / gibbs.median
        text = ", ".join(
            f"{ratio:.1f} ({name})" for ratio, name in zip(ratios, ("m", "slowest", "median"), strict=True)
        )
        bound = "at least" if gibbs.r_hat > UNMIXED else "about"
        console.print(f"variance {gibbs.variance}: Swendsen-Wang / Gibbs {bound} {text}")


def run(quick=False):
    n, n_samples, variances = (200, 200, VARIANCES[::3]) if quick else (1000, 1000, VARIANCES)
    runs = []
    with threadpool_limits(1):
        for variance in variances:
            field = square_field(n, variance, np.random.default_rng(0))
            runs += [measure(kind, field, variance, n_samples) for kind in (Gibbs, SwendsenWang)]
    show(runs, n, n_samples)
    beside_scipy()


def beside_scipy(repeats=200):
    """Clusters of small fields, by ourselves and by SciPy's graph."""
    rng = np.random.default_rng(0)
    for n in (40, 400, 1000):
        bonds, times = rng.integers(n, size=(2, n)), []
        for few in (np.inf, -1):
            with patch.object(samplers, "FEW", few):
                times.append(
                    1e3 * seconds(lambda bonds=bonds, n=n: [samplers.clusters(bonds, n) for _ in range(repeats)])
                )
        ours, scipy = (taken / repeats for taken in times)
        console.print(
            f"Clusters of {n} nodes and {n} bonds: {ours:.2f} ms, by SciPy {scipy:.2f} ms, ratio {ours / scipy:.2f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    run(parser.parse_args().quick)

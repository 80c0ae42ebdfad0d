"""Pair correlation of 100,000 points by a tree, beside K of pointpats; the posterior of a field; processor seconds."""

import time

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from benchmarks.harness import Row, peak_megabytes, seconds, show
from coxfield.process import Grid, LogGaussianCoxProcess, latent_posterior, pair_correlation, poisson_process


def run(quick=False):
    n, cells = (10_000, 32) if quick else (100_000, 128)
    pattern = poisson_process(n, [(0, 1), (0, 1)], random_state=0)
    r = np.linspace(0, 1 / 20, 65)[1:]
    rows = []
    for correction in ("translation", "isotropic"):
        took = seconds(lambda c=correction: pair_correlation(pattern, r, correction=c), 1, time.process_time)
        rows.append(Row(f"pair correlation, {correction}, {len(pattern)} points, r up to 1/20", f"{took:.1f} s"))
    memory = peak_megabytes(lambda: pair_correlation(pattern, r[: len(r) // 4]))
    rows.append(Row("peak memory, r up to 1/80", f"{memory:.0f} MB"))
    try:
        from pointpats import k

        small = pattern.points[: min(n, 20_000)]  # its distances are a full matrix
        took = seconds(lambda: k(small, support=r), 1, time.process_time)
        as_many = poisson_process(len(small), pattern.window, random_state=1)
        ours = seconds(lambda: pair_correlation(as_many, r), 1, time.process_time)
        rows.append(Row(f"pointpats K, no edge correction, {len(small)} points", f"{took:.1f} s"))
        rows.append(Row(f"pair correlation of as many points, isotropic, {len(small)} points", f"{ours:.1f} s"))
    except ImportError:
        rows.append(Row("pointpats is not installed", ""))
    process = LogGaussianCoxProcess(1.0 * Matern(0.1, nu=1.5), np.log(5000) - 0.5)
    drawn = process.sample([(0, 1), (0, 1)], random_state=0)
    for approximation in ("laplace", "variational"):
        grid = Grid.over(drawn.window, cells)
        took = seconds(
            lambda a=approximation, g=grid: latent_posterior(process, drawn, g, approximation=a), 1, time.process_time
        )
        rows.append(Row(f"posterior, {approximation}, {len(drawn)} points, {cells} x {cells} cells", f"{took:.1f} s"))
    show("Point patterns", rows)


if __name__ == "__main__":
    run()

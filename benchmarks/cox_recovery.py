"""Recovery of log Gaussian Cox processes from simulated patterns: bias, error and coverage of each method.

`python -m benchmarks.cox_recovery` simulates 200 patterns per setting (`--patterns` for fewer) in the unit square, fits
each by every method and writes benchmarks/results/cox_recovery.json. With Rscript and spatstat.model the same patterns
are fitted by spatstat. `--render` prints the table of docs/patterns.md from that file.
"""

import argparse
import csv
import json
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from sklearn.gaussian_process.kernels import Matern

from coxfield.process import LogGaussianCoxProcess
from coxfield.process.fitting import FitWarning

RESULTS = Path(__file__).parent / "results" / "cox_recovery.json"
SETTINGS = {  # variance, length scale of the exponential covariance, expected number of points
    f"{strong}, {long}, {count}": (variance, scale, count)
    for strong, variance in (("weak", 0.5), ("strong", 2.0))
    for long, scale in (("short", 0.03), ("long", 0.1))
    for count in (100, 1000)
}
METHODS = {
    "contrast pcf": {"method": "contrast"},
    "contrast K": {"method": "contrast", "statistic": "K"},
    "palm": {"method": "palm"},
    "composite": {"method": "composite"},
}
NAMES = ("variance", "scale", "mean")
KERNEL = Matern(1.0, nu=0.5)


def patterns(variance, scale, count, n, seed):
    process = LogGaussianCoxProcess(variance * Matern(scale, nu=0.5), np.log(count) - variance / 2)
    return process.sample([(0, 1), (0, 1)], size=n, resolution=128, random_state=seed)


def numbers(fit):
    return [fit.variance_, fit.length_factor_, fit.mean_]


def fitted(pattern, how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return LogGaussianCoxProcess.fit(pattern, KERNEL, **how)


def by_spatstat(drawn, n_likelihood):
    """Estimates of spatstat, by method, and its version; None without R."""
    if shutil.which("Rscript") is None:
        return None, None
    with tempfile.TemporaryDirectory() as folder:
        points, estimates = Path(folder) / "points.csv", Path(folder) / "estimates.csv"
        with points.open("w", newline="") as stream:
            rows = csv.writer(stream)
            rows.writerow(["pattern", "all", "x", "y"])
            for number, pattern in enumerate(drawn):
                rows.writerows([number, int(number < n_likelihood), *at] for at in pattern.points.tolist())
        script = Path(__file__).with_suffix(".R")
        done = subprocess.run(["Rscript", script, points, estimates], capture_output=True, text=True, check=False)
        if done.returncode:
            return None, done.stderr.splitlines()[-1]
        with estimates.open(newline="") as stream:
            found = list(csv.DictReader(stream))
    table = {name: [] for name in METHODS}
    for row in found:
        table[row["method"]].append([float(row[key]) if row[key] != "NA" else None for key in NAMES])
    return table, found[0]["version"]


def coverage(name, seed, n_boot, n):
    """How many of n bootstrap intervals of level 90 % hold each true number, on patterns of their own."""
    variance, scale, count = SETTINGS[name]
    truth, held = [variance, scale, np.log(count) - variance / 2], np.zeros(3)
    drawn = [pattern for pattern in patterns(variance, scale, count, 2 * n, 100 + seed) if len(pattern) >= 10][:n]
    for number, pattern in enumerate(drawn):
        fit = fitted(pattern, METHODS["contrast pcf"])
        found = fit.bootstrap(n_boot, random_state=number).intervals(0.9)
        held += [low <= at <= high for (low, high), at in zip(found.values(), truth, strict=True)]
    return held.tolist()


def run(quick=False, n=200, n_spatstat=200, n_likelihood=20, n_coverage=40, n_boot=39):
    """Simulate, fit, save the records, print the table."""
    if quick:
        n, n_spatstat, n_likelihood, n_coverage, n_boot = 6, 3, 0, 2, 9
    records = []
    for seed, (name, (variance, scale, count)) in enumerate(SETTINGS.items()):
        truth = [variance, scale, np.log(count) - variance / 2]
        drawn = [pattern for pattern in patterns(variance, scale, count, 2 * n, seed) if len(pattern) >= 10][:n]
        ours = {method: [numbers(fitted(pattern, how)) for pattern in drawn] for method, how in METHODS.items()}
        # spatstat's likelihoods of 1,000 points take minutes per pattern.
        theirs, version = by_spatstat(drawn[:n_spatstat], n_likelihood if count == 100 else 0)
        held = coverage(name, seed, n_boot, n_coverage) if count == 100 else None
        records.append(
            {
                "setting": name, "truth": truth, "n": len(drawn), "n_coverage": n_coverage, "n_boot": n_boot,
                "coxfield": ours, "spatstat": theirs, "version": version, "held": held,
            }
        )  # fmt: skip
        Console().print(f"{name}: done")
        if not quick:
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(records))
    print(render(records))


def cover_again(n_coverage, n_boot):
    """Compute the coverage of the last run again, without its fits."""
    records = json.loads(RESULTS.read_text())
    for seed, (name, record) in enumerate(zip(SETTINGS, records, strict=True)):
        if record["held"] is not None:
            record |= {"held": coverage(name, seed, n_boot, n_coverage), "n_coverage": n_coverage, "n_boot": n_boot}
    RESULTS.write_text(json.dumps(records))
    print(render(records))


def errors(estimates, truth):
    """Median bias and root mean square error of log variance and log scale, and of the mean, with its error."""
    values = np.array([row for row in estimates if None not in row and min(row[:2]) > 0], dtype=float)
    low, high = np.array([1e-3, 1e-4]), np.array([10.0, 1.5])
    logs = np.log(np.clip(values[:, :2], low, high)) - np.log(truth[:2])
    gaps = np.column_stack([logs, values[:, 2] - truth[2]])
    rmse = np.sqrt((gaps**2).mean(axis=0))
    return np.median(gaps, axis=0), rmse, (gaps**2).std(axis=0) / np.sqrt(len(gaps)) / (2 * rmse), len(gaps)


def render(records):
    """Markdown: one line per setting, method and program."""
    lines = [
        "| setting | method | program | patterns | variance: bias, error | length: bias, error | mean: bias, error |",
        "|---|---|---|---|---|---|---|",
    ]
    for record in records:
        for method in METHODS:
            for program in ("coxfield", "spatstat"):
                table = record[program]
                if table is None or not table[method]:
                    continue
                bias, rmse, error, count = errors(table[method], record["truth"])
                cells = [f"{b:+.2f}, {e:.2f} ± {s:.2f}" for b, e, s in zip(bias, rmse, error, strict=True)]
                lines.append(f"| {record['setting']} | {method} | {program} | {count} | {' | '.join(cells)} |")
        if record["held"]:
            shares = [f"{held / record['n_coverage']:.0%}" for held in record["held"]]
            name = f"coverage of 90 % intervals, {record['n_boot']} draws"
            lines.append(f"| {record['setting']} | {name} | coxfield | {record['n_coverage']} | {' | '.join(shares)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--patterns", type=int, default=200, help="per setting")
    parser.add_argument(
        "--likelihoods", type=int, default=20, help="patterns fitted by spatstat's likelihoods, which are slow"
    )
    parser.add_argument("--spatstat", type=int, default=200, help="patterns for spatstat, per setting")
    parser.add_argument("--draws", type=int, default=39, help="of each bootstrap")
    parser.add_argument("--coverage", type=int, default=40, help="patterns whose intervals are checked, per setting")
    parser.add_argument("--only-coverage", action="store_true", help="compute the coverage of the last run again")
    parser.add_argument("--render", action="store_true", help="print the table of the last run")
    options = parser.parse_args()
    if options.only_coverage:
        cover_again(options.coverage, options.draws)
    elif options.render:
        print(render(json.loads(RESULTS.read_text())))
    else:
        run(options.quick, options.patterns, options.spatstat, options.likelihoods, options.coverage, options.draws)

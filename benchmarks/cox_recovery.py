"""Recovery of log Gaussian Cox processes from simulated patterns: bias, error and coverage of each method.

`python -m benchmarks.cox_recovery` simulates 200 patterns per setting (`--patterns` for fewer) in the unit square and
fits each by every method. With Rscript and spatstat.model it fits the same patterns by spatstat. It then draws other
patterns, and counts how often intervals hold the truth. Each of the three stages adds to
benchmarks/results/cox_recovery.json, and `--only` runs one of them. `--render` prints the tables of docs/patterns.md.
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

from coxfield.process import FitWarning, LogGaussianCoxProcess

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
STAGES = ("coxfield", "spatstat", "coverage")
NAMES = ("variance", "scale", "mean")
KERNEL = Matern(1.0, nu=0.5)


def truth_of(name):
    variance, scale, count = SETTINGS[name]
    return [variance, scale, float(np.log(count) - variance / 2)]


def patterns(name, n, seed):
    """The first n patterns of a setting that have at least ten points."""
    variance, scale, mean = truth_of(name)
    process = LogGaussianCoxProcess(variance * Matern(scale, nu=0.5), mean)
    drawn = process.sample([(0, 1), (0, 1)], size=2 * n, resolution=128, random_state=seed)
    return [pattern for pattern in drawn if len(pattern) >= 10][:n]


def fitted(pattern, how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return LogGaussianCoxProcess.fit(pattern, KERNEL, **how)


def short(numbers):
    """Five digits are enough for a table, and keep the file small."""
    return [float(f"{number:.5g}") for number in numbers]


def by_coxfield(name, seed, n):
    """Estimates of coxfield, by method."""
    drawn = patterns(name, n, seed)
    fits = {method: [fitted(pattern, how) for pattern in drawn] for method, how in METHODS.items()}
    return {
        "coxfield": {
            method: [short([fit.variance_, fit.length_factor_, fit.mean_]) for fit in some]
            for method, some in fits.items()
        }
    }


def by_spatstat(name, seed, n, some):
    """Estimates of spatstat for the first of the patterns, by method, and its version; nothing without R."""
    if shutil.which("Rscript") is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        points, estimates = Path(folder) / "points.csv", Path(folder) / "estimates.csv"
        with points.open("w", newline="") as stream:
            rows = csv.writer(stream)
            rows.writerow(["pattern", "x", "y"])
            for number, pattern in enumerate(patterns(name, n, seed)[:some]):
                rows.writerows([number, *at] for at in pattern.points.tolist())
        script = Path(__file__).with_suffix(".R")
        done = subprocess.run(["Rscript", script, points, estimates], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"spatstat.model could not fit the patterns: {done.stderr.splitlines()[-1]}")
        with estimates.open(newline="") as stream:
            found = list(csv.DictReader(stream))
    table = {method: [] for method in METHODS}
    for row in found:
        table[row["method"]].append(short([float(row[key]) if row[key] != "NA" else np.nan for key in NAMES]))
    return {"spatstat": table, "version": found[0]["version"]}


def coverage(name, seed, n, n_draws):
    """How many of n intervals of level 90 % hold each true number, on patterns of their own, and how often they end."""
    rules = {
        "bootstrap": lambda fit, number: fit.bootstrap(n_draws, random_state=number).intervals(0.9),
        "inverted tests": lambda fit, number: fit.intervals(0.9, n_draws, random_state=number),
    }
    held = {rule: np.zeros(3) for rule in rules}
    open_ends = 0
    for number, pattern in enumerate(patterns(name, n, 100 + seed)):
        fit = fitted(pattern, METHODS["contrast pcf"])
        for rule, intervals in rules.items():
            found = list(intervals(fit, number).values())
            held[rule] += [low <= at <= high for (low, high), at in zip(found, truth_of(name), strict=True)]
        open_ends += not np.isfinite(found).all() or found[0][0] == 0
    return {"coverage": {"n": n, "draws": n_draws, "open": open_ends} | {rule: h.tolist() for rule, h in held.items()}}


def run(quick=False, only=STAGES, n=200, n_spatstat=200, n_coverage=40, n_draws=39, largest=1000):
    """Simulate, fit, save the records, print the tables."""
    if quick:
        n, n_spatstat, n_coverage, n_draws = 6, 3, 1, 19
    records = json.loads(RESULTS.read_text()) if RESULTS.exists() and not quick else {}
    for seed, name in enumerate(SETTINGS):
        count = SETTINGS[name][2]
        record = records.setdefault(name, {"truth": truth_of(name)})
        if "coxfield" in only:
            record |= by_coxfield(name, seed, n)
        if "spatstat" in only:
            record |= by_spatstat(name, seed, n, n_spatstat if count == 100 else min(n_spatstat, largest))
        if "coverage" in only and count == 100:
            record |= coverage(name, seed, n_coverage, n_draws)
        Console().print(f"{name}: done")
        if not quick:
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(records, separators=(",", ":")))
    print(render(records))


def gaps(estimates, truth):
    """Errors of log variance, log scale and mean, shape (n, 3); NaN where a program found nothing.

    Estimates of either program beyond the bounds count as the bound.
    """
    values = np.array(estimates, dtype=float)
    low, high = np.array([1e-3, 1e-4]), np.array([10.0, 1.5])
    logs = np.log(np.clip(values[:, :2], low, high)) - np.log(truth[:2])
    return np.column_stack([logs, values[:, 2] - truth[2]])


def cell(ours, theirs):
    """Median and root mean square of errors; that of spatstat on the same patterns, and how far apart they are.

    The last number is the mean of the paired differences of squared errors in units of its standard error: above 2,
    spatstat is better by more than chance.
    """
    rmse = np.sqrt((ours**2).mean())
    text = f"{np.median(ours):+.2f}, {rmse:.2f} ± {(ours**2).std() / np.sqrt(len(ours)) / (2 * rmse):.2f}"
    if theirs is None:
        return text
    same = ours[: len(theirs)]
    kept = np.isfinite(theirs)
    apart = (same**2 - theirs**2)[kept]
    z = apart.mean() / (apart.std(ddof=1) / np.sqrt(len(apart)))
    own, other = (np.sqrt((some[kept] ** 2).mean()) for some in (same, theirs))
    return f"{text}; {own:.2f} / {other:.2f}, {z:+.1f}"


def render(records):
    """Markdown: one line per setting and method, then one per setting and rule of intervals."""
    lines = [
        "| setting | method | patterns | with spatstat | variance | length | mean |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, record in records.items():
        for method in METHODS if "coxfield" in record else ():
            ours = gaps(record["coxfield"][method], record["truth"])
            theirs = gaps(record["spatstat"][method], record["truth"]) if "spatstat" in record else None
            cells = [cell(ours[:, k], None if theirs is None else theirs[:, k]) for k in range(3)]
            both = 0 if theirs is None else int(np.isfinite(theirs).all(axis=1).sum())
            lines.append(f"| {name} | {method} | {len(ours)} | {both} | {' | '.join(cells)} |")
    lines += ["", "| setting | intervals of 90 % | patterns | variance | length | mean |", "|---|---|---|---|---|---|"]
    for name, record in records.items():
        found = record.get("coverage", {})
        for rule in ("bootstrap", "inverted tests"):
            if rule in found:
                shares = [f"{held / found['n']:.0%}" for held in found[rule]]
                lines.append(f"| {name} | {rule}, {found['draws']} draws | {found['n']} | {' | '.join(shares)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=STAGES, default=STAGES, help="stages to run again")
    parser.add_argument("--patterns", type=int, default=200, help="per setting")
    parser.add_argument("--spatstat", type=int, default=200, help="patterns for spatstat, per setting")
    parser.add_argument("--largest", type=int, default=200, help="the same for settings of 1,000 points")
    parser.add_argument("--coverage", type=int, default=40, help="patterns whose intervals are checked, per setting")
    parser.add_argument("--draws", type=int, default=39, help="for each bootstrap, and for each test")
    parser.add_argument("--render", action="store_true", help="print the tables of the last run")
    options = parser.parse_args()
    if options.render:
        print(render(json.loads(RESULTS.read_text())))
    else:
        run(
            options.quick,
            options.only,
            options.patterns,
            options.spatstat,
            options.coverage,
            options.draws,
            options.largest,
        )

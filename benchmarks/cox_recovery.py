"""Recovery of log Gaussian Cox processes from simulated patterns: bias, error and coverage of each method.

`python -m benchmarks.cox_recovery` simulates 200 patterns per setting (`--patterns` for fewer) in the unit square and
fits each by every method. Then it goes in rounds: with Rscript and spatstat.model it fits the same patterns by
spatstat, and it draws other patterns and looks whether intervals hold the truth. `--minutes` ends it after the step
that is under way. Each step adds lines to benchmarks/results/cox_recovery.jsonl; the same command goes on
where it ended. `--render` prints the tables of docs/patterns.md.
"""

import argparse
import csv
import json
import shutil
import subprocess
import tempfile
import time
import warnings
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy import fft
from sklearn.gaussian_process.kernels import Matern

from coxfield.process import FitWarning, LogGaussianCoxProcess
from coxfield.process.fitting import Bounds, Settings, contrast, search
from coxfield.process.summaries import STOYAN, Pairs, sphere_size
from coxfield.progress import SlowWarning

RESULTS = Path(__file__).parent / "results" / "cox_recovery.jsonl"
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
GRID_OF_R = "contrast pcf, grid of R"  # compared with spatstat's contrast with the pair correlation
KERNEL = Matern(1.0, nu=0.5)
SEED = 7402611  # nobody had seen a pattern of it when the defaults were chosen
OTHERS = 1  # added to the seed for the patterns of the intervals
ROUND = {"spatstat": 5, "bootstrap": 10, "inverted tests": 2}  # patterns per setting in one round
DRAWS = {"bootstrap": 39, "inverted tests": 19}
POINTS_OF_INTERVALS = 100


def truth_of(name):
    variance, scale, count = SETTINGS[name]
    return [variance, scale, float(np.log(count) - variance / 2)]


def pattern_of(name, number, seed=SEED):
    """Pattern number k of a setting; one with fewer than ten points is drawn again."""
    variance, scale, mean = truth_of(name)
    process = LogGaussianCoxProcess(variance * Matern(scale, nu=0.5), mean)
    rng = np.random.default_rng([seed, list(SETTINGS).index(name), number])
    while len(pattern := process.sample([(0, 1), (0, 1)], resolution=128, random_state=rng)) < 10:
        pass
    return pattern


def fitted(pattern, how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return LogGaussianCoxProcess.fit(pattern, KERNEL, **how)


def short(numbers):
    """Five digits are enough for a table, and keep the file small."""
    return [float(f"{number:.5g}") for number in numbers]


def by_coxfield(name, numbers):
    """Estimates of coxfield by method, one mapping per pattern."""
    for number in numbers:
        pattern = pattern_of(name, number)
        fits = {method: fitted(pattern, how) for method, how in METHODS.items()}
        found = {method: short([fit.variance_, fit.length_factor_, fit.mean_]) for method, fit in fits.items()}
        yield found | {GRID_OF_R: short(on_the_grid_of_r(pattern))}


def on_the_grid_of_r(pattern):
    """Minimum contrast with the pair correlation as spatstat has it from `density` of R before 4.4.

    Distances are shared among 1,024 nodes, and the kernel is taken at steps that are shorter than those of the nodes by
    1/2047, without being normalized again. So the pair correlation is too large by 1/2046.
    """
    reach = Settings(KERNEL).reach(pattern)
    pairs = Pairs.of(pattern, np.linspace(0, reach, 513)[1:], None, None, None)
    n, h = 1024, STOYAN * pairs.spacing
    low, high = -4 * h / np.sqrt(5), reach + 4 * h / np.sqrt(5)
    nodes, sums = np.linspace(low, high, n), np.zeros(2 * n)
    for d, weights in pairs.blocks(reach + h):
        places = (d - low) / (nodes[1] - nodes[0])
        first = places.astype(int)
        sums += np.bincount(first, weights * (first + 1 - places), 2 * n)
        sums += np.bincount(first + 1, weights * (places - first), 2 * n)
    lags = np.linspace(0, 2 * (high - low), 2 * n)
    lags[n + 1 :] = lags[n - 1 : 0 : -1]
    kernel = 0.75 / h * np.maximum(1 - (lags / h) ** 2, 0)
    smooth = fft.irfft(fft.rfft(sums) * fft.rfft(kernel), 2 * n)[:n]
    curve = np.interp(pairs.r, nodes, smooth) / sphere_size(pairs.r, 2)
    aim = contrast(pairs.r, curve, Settings(KERNEL), 2, reach / 1000)
    variance, length = search(aim, KERNEL, Bounds.of(KERNEL, reach, pattern))
    return [variance, length, np.log(len(pattern)) - variance / 2]


def by_spatstat(name, numbers):
    """Estimates of spatstat by method, one mapping per pattern, with its version; null where it found nothing."""
    with tempfile.TemporaryDirectory() as folder:
        points, estimates = Path(folder) / "points.csv", Path(folder) / "estimates.csv"
        with points.open("w", newline="") as stream:
            rows = csv.writer(stream)
            rows.writerow(["pattern", "x", "y"])
            for number in numbers:
                rows.writerows([number, *at] for at in pattern_of(name, number).points.tolist())
        script = Path(__file__).with_suffix(".R")
        done = subprocess.run(["Rscript", script, points, estimates], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"spatstat.model could not fit the patterns: {done.stderr.splitlines()[-1]}")
        with estimates.open(newline="") as stream:
            found = list(csv.DictReader(stream))
    table = {number: {"version": found[0]["version"]} for number in numbers}
    for row in found:
        known = row["variance"] != "NA"
        table[int(row["pattern"])][row["method"]] = short([float(row[key]) for key in NAMES]) if known else None
    return table.values()


def by_intervals(rule):
    """How intervals of level 90 % of one rule are: those of variance, length and mean, per pattern."""

    def intervals(name, numbers):
        for number in numbers:
            fit = fitted(pattern_of(name, number, SEED + OTHERS), METHODS["contrast pcf"])
            if rule == "bootstrap":
                found = fit.bootstrap(DRAWS[rule], random_state=number).intervals(0.9)
            else:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", SlowWarning)
                    found = fit.intervals(0.9, DRAWS[rule], random_state=number)
            yield {"intervals": [short(found[key]) for key in ("variance", "correlation_length", "mean")]}

    return intervals


STAGES = {"coxfield": by_coxfield, "spatstat": by_spatstat} | {rule: by_intervals(rule) for rule in DRAWS}


def steps(stages, most, largest, step):
    """What there is to do in order: stage, setting and numbers of patterns. Fits come first, then rounds of the rest.

    `most` has the number of patterns per setting of each stage, and `largest` that of spatstat for 1,000 points.
    """
    for name in SETTINGS if "coxfield" in stages else ():
        yield "coxfield", name, range(most["coxfield"])
    others = [stage for stage in stages if stage != "coxfield"]
    for turn in range(max((-(-most[stage] // step[stage]) for stage in others), default=0)):
        for stage in others:
            for name, (_, _, count) in SETTINGS.items():
                if stage in DRAWS and count != POINTS_OF_INTERVALS:
                    continue
                last = min(most[stage], largest) if stage == "spatstat" and count == 1000 else most[stage]
                if turn * step[stage] < last:
                    yield stage, name, range(turn * step[stage], min((turn + 1) * step[stage], last))


def read(path):
    """Records by setting, stage and number of the pattern; the end of a broken last line is left out."""
    records = defaultdict(lambda: defaultdict(dict))
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        records[record.pop("setting")][record.pop("stage")][record.pop("pattern")] = record
    return records


def run(quick=False, stages=tuple(STAGES), most=None, largest=200, minutes=np.inf):
    """Simulate, fit, save a record per pattern, print the tables."""
    most = {"coxfield": 200, "spatstat": 200, "bootstrap": 100, "inverted tests": 40} | (most or {})
    if quick:
        most = {"coxfield": 4, "spatstat": 2, "bootstrap": 1, "inverted tests": 1}
    stages = [stage for stage in stages if stage != "spatstat" or shutil.which("Rscript")]
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "quick.jsonl" if quick else RESULTS
        path.parent.mkdir(exist_ok=True)
        records = read(path)
        for stage, name, numbers in steps(stages, most, largest, ROUND):
            missing = [number for number in numbers if number not in records[name][stage]]
            if not missing or time.monotonic() > end:
                continue
            for number, found in zip(missing, STAGES[stage](name, missing), strict=True):
                with path.open("a") as stream:
                    line = {"setting": name, "stage": stage, "pattern": number} | found
                    stream.write(json.dumps(line, separators=(",", ":")) + "\n")
            Console(stderr=True).print(f"{stage}, {name}: {missing[0]} to {missing[-1]}")
        print(render(read(path)))


def gaps(estimates, truth):
    """Errors of log variance, log scale and mean, shape (n, 3); NaN where a program found nothing.

    Estimates of either program beyond the bounds count as the bound.
    """
    values = np.array([[np.nan] * 3 if some is None else some for some in estimates], dtype=float)
    low, high = np.array([1e-3, 1e-4]), np.array([10.0, 1.5])
    logs = np.log(np.clip(values[:, :2], low, high)) - np.log(truth[:2])
    return np.column_stack([logs, values[:, 2] - truth[2]])


@dataclass(frozen=True)
class Comparison:
    """Errors of coxfield in one cell of the table, beside those of spatstat on the same patterns."""

    ours: np.ndarray
    theirs: np.ndarray
    """NaN for patterns that spatstat has not fitted."""

    @property
    def beside(self):
        """The patterns that both have fitted; none if there are too few for a comparison."""
        both = np.flatnonzero(np.isfinite(self.theirs))
        return (self.ours[both], self.theirs[both]) if len(both) > 1 else None

    @staticmethod
    def root(errors):
        """Root mean square, and its standard error."""
        root = np.sqrt((errors**2).mean())
        return root, (errors**2).std(ddof=1) / np.sqrt(len(errors)) / (2 * root)

    @property
    def lead(self):
        """By how much of spatstat's root mean square error ours is larger, and its standard error over patterns."""
        ours, theirs = self.beside
        own, other = self.root(ours)[0], self.root(theirs)[0]
        parts = (ours / own) ** 2 - (theirs / other) ** 2
        return own / other - 1, own / other * parts.std(ddof=1) / np.sqrt(len(parts)) / 2

    def __str__(self):
        text = f"{np.median(self.ours):+.2f}, {' ± '.join(f'{value:.2f}' for value in self.root(self.ours))}"
        if self.beside is None:
            return text
        return f"{text}; {self.root(self.beside[1])[0]:.2f}, {self.lead[0]:+.2%} ± {self.lead[1]:.2%}"


def compared(records):
    """Comparisons of variance, length and mean by setting and method."""
    found = {}
    for name in SETTINGS:
        ours, theirs = (records[name][program] for program in ("coxfield", "spatstat"))
        for method in (*METHODS, GRID_OF_R) if ours else ():
            peer = "contrast pcf" if method == GRID_OF_R else method
            own = gaps([ours[k][method] for k in sorted(ours)], truth_of(name))
            other = gaps([theirs.get(k, {}).get(peer) for k in sorted(ours)], truth_of(name))
            found[name, method] = [Comparison(own[:, k], other[:, k]) for k in range(3)]
    return found


def verdict(comparisons):
    """Median difference of estimates; how often either is better by two standard errors; the most that spatstat is."""
    gaps = np.concatenate([np.abs(ours - theirs) for ours, theirs in (some.beside for some in comparisons)])
    leads = np.array([some.lead for some in comparisons])
    behind = [some for some in comparisons if some.lead[0] > 2 * some.lead[1]]
    counts = f"{np.median(gaps):.1g} | {len(leads)} | {(leads[:, 0] < -2 * leads[:, 1]).sum()} | {len(behind)}"
    if not behind:
        return f"{counts} | "
    most = max(behind, key=lambda some: some.lead[0])
    (own, error), (other, _) = (most.root(errors) for errors in most.beside)
    return f"{counts} | {most.lead[0]:.2%} ± {most.lead[1]:.2%}, {(own - other) / error:.2f} standard errors"


def render(records):
    """Markdown: one line per setting and method, then one per setting and rule of intervals."""
    lines = [
        "| setting | method | patterns | with spatstat | variance | length | mean |",
        "|---|---|---|---|---|---|---|",
    ]
    cells = compared(records)
    for (name, method), row in cells.items():
        both = int(np.isfinite([some.theirs for some in row]).all(axis=0).sum())
        lines.append(f"| {name} | {method} | {len(row[0].ours)} | {both} | {' | '.join(map(str, row))} |")
    lines += [
        "",
        "| method | median difference | comparisons | coxfield is better | spatstat is better | by at most |",
        "|---|---|---|---|---|---|",
    ]
    for method in (*METHODS, GRID_OF_R):
        beside = [some for (_, which), row in cells.items() if which == method for some in row if some.beside]
        lines += [f"| {method} | {verdict(beside)} |"] if beside else []
    lines += [
        "",
        "| setting | intervals of 90 % | patterns | variance | length | mean | an open end |",
        "|---|---|---|---|---|---|---|",
    ]
    for rule, n_draws in DRAWS.items():
        found = {name: list(records[name][rule].values()) for name in SETTINGS if records[name][rule]}
        held = {name: np.array([holds(some["intervals"], truth_of(name)) for some in found[name]]) for name in found}
        rows_of = held | {"all": np.concatenate(list(held.values()))} if held else {}
        for name, rows in rows_of.items():
            shares = [share(rows[:, k]) for k in range(3)] + [f"{rows[:, 3].mean():.0%}"]
            lines.append(f"| {name} | {rule}, {n_draws} draws | {len(rows)} | {' | '.join(shares)} |")
    return "\n".join(lines)


def share(kept):
    """A share with its standard error, that of two more of each kind, so that it is not 0 for a share of 100 %."""
    n, rate = len(kept) + 4, (kept.sum() + 2) / (len(kept) + 4)
    return f"{kept.mean():.0%} ± {np.sqrt(rate * (1 - rate) / n):.0%}"


def holds(intervals, truth):
    """Whether each interval holds the truth, and whether an end of that of variance or length is open."""
    open_end = any(low == 0 or not np.isfinite(high) for low, high in intervals[:2])
    return [*(low <= at <= high for (low, high), at in zip(intervals, truth, strict=True)), open_end]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=STAGES, default=tuple(STAGES), help="stages to run")
    parser.add_argument("--patterns", type=int, default=200, help="per setting")
    parser.add_argument("--spatstat", type=int, default=200, help="patterns for spatstat, per setting")
    parser.add_argument("--largest", type=int, default=200, help="the same for settings of 1,000 points")
    parser.add_argument("--bootstrap", type=int, default=100, help="patterns with intervals of the bootstrap")
    parser.add_argument("--tests", type=int, default=40, help="patterns with intervals of inverted tests")
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin nothing after so long")
    parser.add_argument("--render", action="store_true", help="print the tables of the last run")
    options = parser.parse_args()
    if options.render:
        print(render(read(RESULTS)))
    else:
        most = dict(zip(STAGES, (options.patterns, options.spatstat, options.bootstrap, options.tests), strict=True))
        run(options.quick, options.only, most, options.largest, options.minutes)

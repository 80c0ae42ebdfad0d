"""Run many cases: `PYTHONPATH=tests python -m fuzz.run --cases 20000`. Failures are grouped, and shown once each."""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from fuzz.cases import ESTIMATORS, cases
from fuzz.commands import commands, examine_command, simpler_command
from fuzz.invariants import examine
from fuzz.shrink import shrunk, simpler_case

# Hypothesis repeats parts of earlier cases from the eleventh case of a run on, and its first case is always the same.
CHUNK = 9
KINDS = ("fitted", "refused by ours", "refused by scikit-learn", "refused by kernel", "FAILED")


@dataclass(frozen=True)
class Family:
    """A strategy of cases, the check of one case, and how to make a failing case smaller."""

    strategy: SearchStrategy
    check: Callable
    simpler: Callable


FAMILIES = {
    **{name: Family(cases(name), examine, simpler_case) for name in ESTIMATORS},
    "commands": Family(commands(), examine_command, simpler_command),
}


@dataclass
class Report:
    """Outcomes of one family of cases."""

    counts: Counter = field(default_factory=Counter)
    failures: dict = field(default_factory=dict)
    """Key of a failure -> (number of cases, smallest case, detail)."""
    sentences: Counter = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, case, outcome):
        """Count an outcome, and keep the smallest case of each failure."""
        self.counts[outcome.kind] += 1
        if outcome.failed:
            number, least, detail = self.failures.get(outcome.key, (0, case, outcome.detail))
            if case.size < least.size:
                least, detail = case, outcome.detail
            self.failures[outcome.key] = number + 1, least, detail
        elif outcome.key:
            self.sentences[re.sub(r"[-+]?\d[\d.e+-]*", "#", " ".join(outcome.key.split()))[:160]] += 1


def run_family(family, count, start):
    """The report of so many cases of a family."""
    report, begun = Report(), time.perf_counter()
    for number, first in enumerate(range(0, count, CHUNK)):
        for case in drawn_cases(family.strategy, min(CHUNK, count - first), 10**6 * start + number):
            report.add(case, family.check(case))
    report.seconds = time.perf_counter() - begun
    return report


def drawn_cases(strategy, count, start):
    """So many cases, at most `CHUNK`."""
    limits = settings(
        max_examples=count + 1,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    drawn = []

    @seed(start)
    @limits
    @given(strategy)
    def one(case):
        drawn.append(case)

    one()
    return drawn[1:]  # the first is the simplest there is, the same in all runs


def table(reports):
    """Outcomes by family, as lines of text."""
    lines = [f"{'family':14}" + "".join(f"{kind:>25}" for kind in KINDS) + f"{'seconds':>10}"]
    for name, report in reports.items():
        numbers = "".join(f"{report.counts[kind]:25}" for kind in KINDS)
        lines.append(f"{name:14}{numbers}{report.seconds:10.0f}")
    return "\n".join(lines)


def failures(reports):
    """Failures of all families, the most frequent first, each with one small case."""
    found = {}
    for name, report in reports.items():
        for key, (number, case, detail) in report.failures.items():
            before, *least = found.get(key, (0, case, detail, name))
            found[key] = before + number, *min(least, (case, detail, name), key=lambda entry: entry[0].size)
    ranked = sorted(found.items(), key=lambda item: -item[1][0])
    for rank, (key, (number, case, detail, name)) in enumerate(ranked, start=1):
        small = shrunk(case, key, FAMILIES[name].check, FAMILIES[name].simpler)
        yield f"## {rank}. {number} cases: {key}\n\n{detail}\n\n```\n{small.source}\n```\n"


def chosen_families(name):
    """The families that a name stands for."""
    groups = {"all": list(FAMILIES), "estimators": list(ESTIMATORS)}
    return {family: FAMILIES[family] for family in groups.get(name, [name])}


def main(arguments=None):
    """Run the cases that the arguments ask for, and return the number of different failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20000, help="number of cases of all families together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=["all", "estimators", *FAMILIES], default="all")
    parser.add_argument("--sentences", action="store_true", help="list the sentences of refusals")
    asked = parser.parse_args(arguments)
    families, reports = chosen_families(asked.family), {}
    for name, family in families.items():
        reports[name] = run_family(family, -(-asked.cases // len(families)), asked.seed)
        print(table({name: reports[name]}), flush=True)
    found = list(failures(reports))
    print("", *found, sep="\n")
    if asked.sentences:
        for name, report in reports.items():
            print(f"\n{name}:", *(f"{n:6} {text}" for text, n in report.sentences.most_common()), sep="\n")
    print(table(reports))
    return len(found)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)

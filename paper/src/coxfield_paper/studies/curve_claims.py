"""What the paper says about its semi-supervised curves, and whether our errors bear it out.

All differences between methods are taken partition by partition. A verdict is based on the confidence interval of their
mean: a difference that could be chance decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coxfield_paper.report.blocks import Claim, Verdict
from coxfield_paper.studies.curves import NAMES, SUPERVISED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coxfield_paper.report.blocks import Mean
    from coxfield_paper.studies.curves import Curves

FEWEST = 10
ALIKE = 2.0  # percentage points: curves that are closer cannot be told apart in the paper's figures
NO_RESULTS = "no results"


def lower(difference: Mean) -> Verdict:
    """Whether the second of two errors is lower, given the first minus the second.

    Examples
    --------
    >>> from coxfield_paper.report.blocks import Mean
    >>> print(lower(Mean((4.0, 5.0, 6.0))), "|", lower(Mean((-1.0, 1.0, 2.0))), "|", lower(Mean((5.0,))))
    borne out | not decided | not decided
    """
    low, high = difference.interval
    if low > 0:
        return Verdict.BORNE_OUT
    return Verdict.NOT_BORNE_OUT if high <= 0 else Verdict.UNDECIDED


def alike(difference: Mean) -> Verdict:
    """Whether two errors are alike: with confidence less than two percentage points apart.

    Examples
    --------
    >>> from coxfield_paper.report.blocks import Mean
    >>> print(alike(Mean((0.1, 0.2, 0.0))), "|", alike(Mean((9.0, 9.5, 10.0))), "|", alike(Mean((-9.0, 9.0))))
    borne out | not borne out | not decided
    """
    low, high = difference.interval
    if low >= -ALIKE and high <= ALIKE:
        return Verdict.BORNE_OUT
    return Verdict.NOT_BORNE_OUT if low > 0 or high < 0 else Verdict.UNDECIDED


def beats_supervised(curves: Curves, data: str) -> Claim:
    """Whether the error of SLGCP with the fewest labels is below the error of each supervised method."""
    statement = f"{data}: SLGCP beats every supervised method with {FEWEST} labels"
    differences = {method: curves.difference(method, "SLGCP", FEWEST) for method in SUPERVISED}
    if not all(mean.values for mean in differences.values()):
        return Claim(statement, NO_RESULTS, Verdict.NOT_TESTED)
    finding = f"SLGCP {curves.mean('SLGCP', FEWEST)} %; " + ", ".join(
        f"{method} {curves.mean(method, FEWEST)} %" for method in SUPERVISED
    )
    return Claim(statement, finding, Verdict.weakest(map(lower, differences.values())))


def like_harmonic(curves: Curves, data: str, labels: Sequence[int]) -> Claim:
    """Whether SLGCP and harmonic functions have like errors with each of some numbers of labels."""
    statement = f"{data}: SLGCP and harmonic functions perform alike with {_listed(labels)} labels"
    differences = {count: curves.difference("SLGCP", "harmonic", count) for count in labels}
    if not differences or not all(mean.values for mean in differences.values()):
        return Claim(statement, NO_RESULTS, Verdict.NOT_TESTED)
    verdicts = {count: alike(mean) for count, mean in differences.items()}
    finding = "SLGCP minus harmonic functions, in percentage points: " + ", ".join(
        f"{mean} with {count}{_remark(verdicts[count])}" for count, mean in differences.items()
    )
    needed = f"; alike means less than {ALIKE:g} apart with 95 % confidence"
    return Claim(statement, finding.replace("-", "−") + needed, Verdict.weakest(verdicts.values()))


def _remark(verdict: Verdict) -> str:
    return {Verdict.NOT_BORNE_OUT: " (apart)", Verdict.UNDECIDED: " (too uncertain)"}.get(verdict, "")


def harmonic_ahead(curves: Curves, data: str) -> Claim:
    """Whether the error of harmonic functions is below the error of SLGCP with the fewest labels."""
    statement = f"{data}: harmonic functions have a lower error than SLGCP with {FEWEST} labels"
    difference = curves.difference("SLGCP", "harmonic", FEWEST)
    if not difference.values:
        return Claim(statement, NO_RESULTS, Verdict.NOT_TESTED)
    shown = {method: curves.mean(method, FEWEST) for method in ("harmonic", "SLGCP")}
    finding = ", ".join(f"{NAMES[method]} {mean} %" for method, mean in shown.items())
    return Claim(statement, f"{finding}; difference {difference}".replace("-", "−"), lower(difference))


def _listed(counts: Sequence[int]) -> str:
    *head, last = map(str, counts)
    return f"{', '.join(head)} and {last}" if head else last

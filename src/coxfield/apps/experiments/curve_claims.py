"""What the paper says of its semi-supervised curves, and whether errors bear it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coxfield.apps.experiments.curves import NAMES, SUPERVISED
from coxfield.apps.report.blocks import Claim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coxfield.apps.experiments.curves import Curves

FEWEST = 10
UNTESTED = "not tested: no results"


def beats_supervised(curves: Curves, data: str) -> Claim:
    """Whether the mean error of SLGCP with the fewest labels is below that of each supervised method."""
    statement = f"{data}: SLGCP beats every supervised method with {FEWEST} labels"
    ours = curves.mean("SLGCP", FEWEST)
    others = {method: curves.mean(method, FEWEST) for method in SUPERVISED}
    if not all(mean.values for mean in (ours, *others.values())):
        return Claim(statement, UNTESTED, None)
    finding = f"SLGCP {ours} %; " + ", ".join(f"{method} {mean} %" for method, mean in others.items())
    return Claim(statement, finding, all(ours.value < mean.value for mean in others.values()))


def like_harmonic(curves: Curves, data: str, labels: Sequence[int]) -> Claim:
    """Whether SLGCP and harmonic functions differ by at most two standard errors at each of some numbers of labels.

    The difference is taken partition by partition, and so is its standard error.
    """
    statement = f"{data}: SLGCP and harmonic functions perform alike with {_listed(labels)} labels"
    differences = {count: curves.difference("SLGCP", "harmonic", count) for count in labels}
    if not differences or any(len(mean.values) < 2 for mean in differences.values()):
        return Claim(statement, UNTESTED, None)
    apart = [count for count, mean in differences.items() if abs(mean.value) > 2 * mean.standard_error]
    verdict = (
        f"more than two standard errors apart with {_listed(apart)}" if apart else "all within two standard errors"
    )
    finding = "SLGCP less harmonic functions, in percentage points: " + ", ".join(
        f"{mean} with {count}" for count, mean in differences.items()
    )
    return Claim(statement, f"{finding}; {verdict}".replace("-", "−"), not apart)


def harmonic_ahead(curves: Curves, data: str) -> Claim:
    """Whether the mean error of harmonic functions is below that of SLGCP with the fewest labels."""
    statement = f"{data}: harmonic functions have a lower error than SLGCP with {FEWEST} labels"
    difference = curves.difference("SLGCP", "harmonic", FEWEST)
    if not difference.values:
        return Claim(statement, UNTESTED, None)
    shown = {method: curves.mean(method, FEWEST) for method in ("harmonic", "SLGCP")}
    finding = ", ".join(f"{NAMES[method]} {mean} %" for method, mean in shown.items())
    return Claim(statement, f"{finding}; difference {difference}".replace("-", "−"), difference.value > 0)


def _listed(counts: Sequence[int]) -> str:
    *head, last = map(str, counts)
    return f"{', '.join(head)} and {last}" if head else last

"""The modules that a call visits, in the order of first visit: what a newcomer has to open to follow it.

Run ``python tools/walk.py`` with a Python that has the package installed. It prints one table per call: the lines of
each module, and how many of its functions were called how often. Each call is made twice and watched the second time,
so that imports and caches do not count. Calls in threads that the call starts count too.

    python tools/walk.py                  LGCPClassifier().fit(X, y).predict_proba(Z), and SLGCPClassifier().fit(X, y)
    python tools/walk.py --short          the modules alone, as docs/architecture.md shows them
    python tools/walk.py --most 12        ends with status 1 if a call visits more modules than that
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import warnings
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_digits, load_wine

import coxfield

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

HOME = Path(coxfield.__file__).parent


@dataclass
class Visit:
    """What was called in one module."""

    module: str
    calls: Counter[CodeType] = field(default_factory=Counter)

    @property
    def lines(self) -> int:
        """Length of the file."""
        return len((HOME / self.module).read_text(encoding="utf-8").splitlines())


def walk(call: Callable[[], object], home: Path = HOME) -> list[Visit]:
    """The modules below `home` whose functions run during a call, in the order of first visit."""
    visits: dict[str, Visit] = {}
    start = f"{home}{os.sep}"

    def see(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(start) and frame.f_code.co_name != "<module>":
            module = name.removeprefix(start).replace(os.sep, "/")
            visits.setdefault(module, Visit(module)).calls[frame.f_code] += 1

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(visits.values())


def supervised() -> object:
    """The default classifier on wine: every other row is learned from, the rest is predicted."""
    X, y = load_wine(return_X_y=True)
    return coxfield.LGCPClassifier().fit(X[::2], y[::2]).predict_proba(X[1::2])


def semi_supervised() -> object:
    """The default for few labels: 500 digits, of which every tenth has its label."""
    X, y = load_digits(return_X_y=True)
    return coxfield.SLGCPClassifier().fit(X[:500], np.where(np.arange(500) % 10, -1, y[:500]))


CALLS: dict[str, Callable[[], object]] = {
    "LGCPClassifier().fit(X, y).predict_proba(Z)": supervised,
    "SLGCPClassifier().fit(X, y)": semi_supervised,
}


def changes(visits: list[Visit]) -> int:
    """How often the next new module is in another folder."""
    folders = [str(Path(visit.module).parent) for visit in visits]
    return sum(one != other for one, other in pairwise(folders))


def table(visits: list[Visit]) -> str:
    """One line per module."""
    rows = [(v.module, f"{v.lines}", f"{len(v.calls)}", f"{v.calls.total():,}") for v in visits]
    wide = max(len(row[0]) for row in rows)
    heading = ("module", "lines", "functions", "calls")
    return "\n".join(f"  {a:{wide}}{b:>7}{c:>11}{d:>10}" for a, b, c, d in [heading, *rows])


def main(arguments: list[str] | None = None) -> int:
    """Walk each call and print where it went; 1 if a call visits too many modules."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="print only the names of the modules")
    parser.add_argument("--most", type=int, metavar="N", help="modules that a call may visit")
    options = parser.parse_args(arguments)
    most = 0
    for title, call in CALLS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
            visits = walk(call)
        lines = sum(visit.lines for visit in visits)
        print(f"{title}: {len(visits)} modules, {lines:,} lines, {changes(visits)} changes of folder")
        names = " > ".join(visit.module.removesuffix(".py") for visit in visits)
        print(f"  {names}" if options.short else table(visits), end="\n\n")
        most = max(most, len(visits))
    return int(options.most is not None and most > options.most)


if __name__ == "__main__":
    sys.exit(main())

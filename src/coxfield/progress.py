"""Progress of long work: a bar for a person who watches, lines elsewhere, and a warning for those who did not ask."""

from __future__ import annotations

import math
import sys
import warnings
from contextlib import contextmanager, nullcontext
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

PATIENCE = 10.0  # seconds that work may take without a word
VERBOSE = "verbose=1 shows the progress"

_LOCK = Lock()  # work is told of from several threads
_RUNNING: list[object] = []
"""Pieces of work, in the order in which they began. Those after the first are parts of it, and do not speak."""
_CLOCKS: list[_Clock] = []
"""Since when nothing was said about work that nobody tells of as a whole. Its pieces share the first clock."""


class SlowWarning(UserWarning):
    """Work that nobody watches takes long. The arguments are how far it is, and what can be done."""

    def __str__(self) -> str:
        return "; ".join(self.args)

    @property
    def state(self) -> str:
        """How far the work is, without advice."""
        return self.args[0]


@contextmanager
def progress(
    description: str, total: float | None, verbose: bool | int | None, advice: str = "", *, at_most: bool = False
) -> Iterator[Callable[[float], None]]:
    """Yield a function that is told how much was done since the last call.

    If `verbose` is true, a bar moves on standard error, provided that it is a terminal and rich is installed. Elsewhere
    a line says how long it took, and lines before that say how far it is. If `verbose` is false, nothing is shown. But
    after `PATIENCE` seconds a `SlowWarning` says how far the work is, if any is left.

    Parameters
    ----------
    description : str
    total : float or None
        How much there is to do, infinite if nobody knows. None if nobody will tell. Then its parts speak, and they
        share their patience.
    verbose : bool, int or None
        None for work of objects that have no such parameter, and so cannot show the progress.
    advice : str
        What takes less time, for the warning.
    at_most : bool
        Whether less may be enough.
    """
    if verbose:
        with _joined(_RUNNING, object()), _shown(description, total, at_most) as told:
            yield told
        return
    say = _warner(advice, "" if verbose is None else VERBOSE)
    watch = _Watch(description, total, at_most, say, once=True)
    with _joined(_CLOCKS, _Clock()) if total is None else _joined(_RUNNING, watch):
        yield watch


def stages(
    description: str, total: float | None, verbose: bool | int | None, advice: str = ""
) -> AbstractContextManager[Callable[[float], None]]:
    """`progress` of work in stages that show themselves: if `verbose` is true, nothing is shown of the whole."""
    return nullcontext(_ignore) if verbose else progress(description, total, verbose, advice)


@contextmanager
def shares(done: Callable[[float], None], typical: float) -> Iterator[Callable[..., None]]:
    """Yield a function to be called after each step of work that counts 1, if nobody knows how many steps it takes.

    Each step tells `done` of a share of what is left, so that `typical` steps make most of it. The end tells the rest.
    """
    told = 0.0

    def step(*_) -> None:
        nonlocal told
        share = (1 - told) / typical
        told += share
        done(share)

    yield step
    done(1 - told)


@contextmanager
def _joined(others: list, one: object) -> Iterator[None]:
    """A context in which a piece of work, or a clock, is among the others."""
    with _LOCK:
        others.append(one)
    try:
        yield
    finally:
        with _LOCK:
            others.remove(one)


class _Clock:
    """Since when nothing was said."""

    def __init__(self) -> None:
        self.since = perf_counter()


class _Watch:
    """Counts what was done. When patience is over it says how far the work is: once, or after longer and longer."""

    def __init__(self, description: str, total: float | None, at_most: bool, say: Callable[[str], None], *, once: bool):
        self.description, self.total, self.at_most = description, total or 0.0, at_most
        self.say, self.once = say, once
        self.start, self.done, self.spoken = perf_counter(), 0.0, False
        self.first: tuple[float, float] | None = None  # when the first report came, and what was done by then
        self.clock = _CLOCKS[0] if once and _CLOCKS else _Clock()

    def __call__(self, done: float) -> None:
        """Count what was done, in any thread."""
        with _LOCK:
            self.done += done
            now = perf_counter()
            seconds = now - self.start
            self.first = self.first or (seconds, self.done)
            # A first small part may have been long in preparation, which says little about the rest.
            known = self.done >= self.total / 100 or seconds - self.first[0] >= PATIENCE / 2
            due = known and self._is_due(now) and seconds >= PATIENCE / 10 and self._to_go(seconds) > PATIENCE / 10
            if due:
                self.clock.since, self.spoken = now, True
        if due:
            self.say(self._sentence(seconds))

    def _is_due(self, now: float) -> bool:
        """Whether it is time to speak. Lines that were asked for come whenever the time has doubled.

        Work that is part of other work does not speak: the other speaks for both.
        """
        if not self.once:
            return now - self.clock.since >= max(PATIENCE, self.clock.since - self.start)
        return not self.spoken and bool(_RUNNING) and _RUNNING[0] is self and now - self.clock.since >= PATIENCE

    def _to_go(self, seconds: float) -> float:
        """Seconds that are left if the rest is like what was done; infinite if nobody knows how much it is."""
        before, done = self.first or (0.0, 0.0)
        if self.done <= done:
            before, done = 0.0, 0.0
        left = max(self.total - self.done, 0.0)
        return (seconds - before) * left / (self.done - done) if self.done > done else 0.0

    def _sentence(self, seconds: float) -> str:
        return f"{self.description}: {self._state(_duration(seconds), _duration(self._to_go(seconds)))}"

    def _state(self, after: str, to_go: str) -> str:
        if self.total == math.inf:
            return f"{self.done:.0f} done after {after}, nobody knows how many are left"
        if self.at_most:
            return f"{self.done:.0f} done after {after}, at most {to_go} to go"
        share = 100 * self.done / self.total
        percent = f"{share:.0f}" if share >= 1 else f"{share:.1g}"
        return f"{percent} % done after {after}, about {to_go} to go"


def _duration(seconds: float) -> str:
    """Seconds in a unit that suits them."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 360_000 else f"{seconds / 86_400:.0f} days"


def _warner(*advice: str) -> Callable[[str], None]:
    """A function that warns by a sentence, with what can be done."""
    return lambda sentence: warnings.warn(SlowWarning(sentence, *filter(None, advice)), stacklevel=3)


@contextmanager
def _shown(description: str, total: float | None, at_most: bool) -> Iterator[Callable[[float], None]]:
    """A bar, or lines."""
    bar = _bar(description, total) if sys.stderr.isatty() else None
    if bar is not None:
        with bar as advance:
            yield advance
        return
    watch = _Watch(description, total, at_most, lambda sentence: print(sentence, file=sys.stderr), once=False)
    yield watch
    print(f"{description}: {perf_counter() - watch.start:.1f} s", file=sys.stderr)


def _ignore(done: float) -> None:
    """What is told of the progress if it is shown elsewhere."""


def _bar(description: str, total: float | None) -> AbstractContextManager[Callable[[float], None]] | None:
    """A bar with the share done and the time left, or None without rich."""
    try:
        from rich import progress as parts
        from rich.console import Console
    except ImportError:
        return None
    columns = (
        parts.TextColumn("{task.description}"),
        parts.BarColumn(),
        parts.TaskProgressColumn(),
        parts.TimeElapsedColumn(),
        parts.TimeRemainingColumn(),
    )

    @contextmanager
    def drawn() -> Iterator[Callable[[float], None]]:
        with parts.Progress(*columns, console=Console(file=sys.stderr)) as bar:
            whole = total if total is not None and math.isfinite(total) else None
            task = bar.add_task(description, total=whole)
            yield lambda done: bar.advance(task, done)
            bar.update(task, total=whole or 1, completed=whole or 1)

    return drawn()

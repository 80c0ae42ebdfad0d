"""Progress of long work: a bar on standard error for a person who watches, one line elsewhere."""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


@contextmanager
def progress(description: str, total: int, verbose: bool | int) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that is told how much was done since the last call, or None if `verbose` is false.

    If standard error is a terminal and rich is installed, a bar moves there. With a `total` of 1 nobody knows how much
    is done, and the bar just moves until the work is. Elsewhere one line on standard error says how long it took.
    """
    if not verbose:
        yield None
        return
    bar = _bar(description, total) if sys.stderr.isatty() else None
    start = perf_counter()
    with bar or nullcontext(_ignore) as advance:
        yield advance
    if bar is None:
        print(f"{description}: {perf_counter() - start:.1f} s", file=sys.stderr)


def _ignore(done: int) -> None:
    """What is told of the progress when nothing moves."""


def _bar(description: str, total: int) -> AbstractContextManager[Callable[[int], None]] | None:
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
    def drawn() -> Iterator[Callable[[int], None]]:
        with parts.Progress(*columns, console=Console(file=sys.stderr)) as bar:
            task = bar.add_task(description, total=total if total > 1 else None)
            yield lambda done: bar.advance(task, done)
            bar.update(task, total=total, completed=total)

    return drawn()

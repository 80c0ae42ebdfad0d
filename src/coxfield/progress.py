"""Progress of long work: a bar on standard error when a person is watching, silence otherwise."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def progress(description: str, total: int, verbose: bool | int) -> Iterator[Callable[[int], None] | None]:
    """Yield a function to be told how much was done, or None when nobody wants to know.

    A bar is drawn when standard error is a terminal; elsewhere one line says how long it took.
    """
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(file=sys.stderr)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=total)
        yield lambda done: bar.advance(task, done)
        elapsed = bar.tasks[0].elapsed or 0.0
    if not console.is_terminal:
        print(f"{description}: {elapsed:.1f} s", file=sys.stderr)

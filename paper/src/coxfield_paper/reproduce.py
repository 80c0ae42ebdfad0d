"""`coxfield reproduce`: compute the tables and figures of the paper again, and write a page that shows them."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coxfield.apps.cli import console, options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coxfield_paper.report.item import Item, Task
    from coxfield_paper.report.records import Record, Records


def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ITEM]...", help="Tables and figures to make; --list names them. Default: all."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Embedded and simulated data only, and fewer repetitions: three minutes.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the page and the records.")
    ] = Path("report"),
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", callback=options.check_jobs, help="Number of processes; -1 for one per processor."
        ),
    ] = -1,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS",
            help="Scheduler of a Dask cluster whose workers do the tasks instead of --jobs.",
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Compute again what has been computed before.")] = False,
    names: Annotated[bool, typer.Option("--list", help="List the items and exit.")] = False,
    quiet: options.QuietOption = False,
) -> None:
    """Compute the tables and figures of the paper again, and write a page with the printed numbers beside ours.

    The page is FOLDER/index.html, and needs no other file. Results are kept in FOLDER/records. They are used again as
    long as the code that made them is the same, so a run that was stopped continues where it was. MNIST and BCI are
    downloaded, or read from the folder that the environment variable COXFIELD_DATA names. The oil flow data and STL-10
    are in no package and are read from that folder only. Workers of a Dask cluster need the same folder. An item
    without its data says so on the page.

    \b
    Examples:
      coxfield reproduce --quick
      coxfield reproduce table-1 figure-circles
      COXFIELD_DATA=~/data coxfield reproduce --jobs 2 -o report
      coxfield reproduce --dask tcp://127.0.0.1:8786
    """  # noqa: D301
    from coxfield_paper.report.records import Records
    from coxfield_paper.studies import items as catalogue

    if names:
        for item in catalogue.ITEMS.values():
            typer.echo(f"{item.name:16} {item.title}")
        return
    chosen = catalogue.choose(items)
    _check_output(output)
    records = Records(output / "records")
    tasks = [task for item in chosen for task in item.tasks(quick)]
    counts, failures = _perform(tasks, records, (jobs, dask), again, console.watched(quiet))
    page = _write(list(catalogue.ITEMS.values()), records, output)
    if not quiet:
        console.print_summary({"tasks": _counted(counts), "page": str(page)}, err=True)
    if failures:
        raise ValueError(f"{len(failures)} tasks failed. The first is {failures[0].task}: {failures[0].reason}")


def _check_output(output: Path) -> None:
    """Refuse an output that cannot be written. Called before the work is done."""
    from coxfield_paper.report import page

    page.check()
    if output.exists() and not output.is_dir():
        raise ValueError(f"--output must be a folder, and {output} is a file: give another name")
    output.mkdir(parents=True, exist_ok=True)


def _perform(
    tasks: "Sequence[Task]", records: "Records", where: "tuple[int, str | None]", again: bool, watched: bool
) -> "tuple[Counter[str], list[Record]]":
    """Do the tasks without a current result. Return the number of tasks per outcome, and the failures.

    `where` is the number of processes, and the address of a cluster if there is one.
    """
    from coxfield.progress import progress
    from coxfield_paper.report.records import FAILED, perform

    todo = [task for task in tasks if again or not _is_done(task, records)]
    counts = Counter({"reused": len(tasks) - len(todo)})
    failures = []
    with progress(f"{len(todo)} tasks", len(todo), watched) as done:
        for record in perform(todo, records, n_jobs=where[0], cluster=where[1]):
            counts[record.status] += 1
            failures += [record] if record.status == FAILED else []
            done(1)
    return counts, failures


def _is_done(task: "Task", records: "Records") -> bool:
    record = records.current(task)
    return record is not None and record.done


def _counted(counts: "Counter[str]") -> str:
    words = {"done": "computed", "reused": "reused", "unavailable": "without data", "failed": "failed"}
    return ", ".join(f"{counts[key]} {word}" for key, word in words.items() if counts[key]) or "none"


def _write(items: "list[Item]", records: "Records", output: Path) -> Path:
    """Write the page of all current records in the folder, those of earlier runs included."""
    from coxfield import __version__
    from coxfield_paper.report import page
    from coxfield_paper.report.records import machine

    sections = [item.section(records) for item in items]
    return page.write(page.Page(sections, machine(), __version__), output)

"""`coxfield reproduce`: the tables and figures of the paper, computed anew, and the page that shows them."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coxfield.apps.cli import messages, options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coxfield.apps.report.item import Item
    from coxfield.apps.report.records import Record, Records
    from coxfield.apps.report.tasks import Task


def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ITEM]...", help="Tables and figures to make, as --list names them. Default: all."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Embedded and simulated data only, and fewer repetitions: two minutes.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the page and the records go.")
    ] = Path("report"),
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Processes side by side; -1 for as many as there are processors.")
    ] = -1,
    again: Annotated[bool, typer.Option("--again", help="Compute anew what is on record already.")] = False,
    names: Annotated[bool, typer.Option("--list", help="List the items and exit.")] = False,
    quiet: options.QuietOption = False,
) -> None:
    """Compute the tables and figures of the paper anew, and write a page with the printed figures beside ours.

    The page is FOLDER/index.html, and needs no other file. What was computed is kept in FOLDER/records and not computed
    again, so that a run that was stopped goes on where it was. MNIST and BCI are fetched, or taken from the folder that
    the environment variable COXFIELD_DATA names, as are the oil flow data and STL-10, which no package has; an item
    without its data says so on the page.

    \b
    Examples:
      coxfield reproduce --quick
      coxfield reproduce table-1 figure-circles
      COXFIELD_DATA=~/data coxfield reproduce --jobs 2 -o report
    """  # noqa: D301
    from coxfield.apps.experiments import items as catalogue
    from coxfield.apps.report.records import Records

    if names:
        for item in catalogue.ITEMS.values():
            typer.echo(f"{item.name:16} {item.title}")
        return
    chosen = catalogue.choose(items)
    _check_output(output)
    records = Records(output / "records")
    tasks = [task for item in chosen for task in item.tasks(quick)]
    counts, failures = _perform(tasks, records, jobs, again, messages.watched(quiet))
    page = _write(list(catalogue.ITEMS.values()), records, output)
    if not quiet:
        messages.print_summary({"tasks": _counted(counts), "page": str(page)}, err=True)
    if failures:
        raise ValueError(f"{len(failures)} tasks failed, the first of them {failures[0].task}: {failures[0].reason}")


def _check_output(output: Path) -> None:
    """Refuse before the work is done rather than after."""
    from coxfield.apps.report import page

    page.check()
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output} is a file: give --output a folder")
    output.mkdir(parents=True, exist_ok=True)


def _perform(
    tasks: "Sequence[Task]", records: "Records", jobs: int, again: bool, watched: bool
) -> "tuple[Counter[str], list[Record]]":
    """Do what is not on record; how many tasks ended how, and which failed."""
    from coxfield.apps.report.records import FAILED
    from coxfield.apps.report.tasks import perform
    from coxfield.progress import progress

    todo = [task for task in tasks if again or records.find(task.name, task.arguments) is None]
    counts = Counter({"reused": len(tasks) - len(todo)})
    failures = []
    with progress(f"{len(todo)} tasks", len(todo), watched) as done:
        for record in perform(todo, records, n_jobs=jobs):
            counts[record.status] += 1
            failures += [record] if record.status == FAILED else []
            if done is not None:
                done(1)
    return counts, failures


def _counted(counts: "Counter[str]") -> str:
    words = {"done": "computed", "reused": "reused", "unavailable": "without their data", "failed": "failed"}
    return ", ".join(f"{counts[key]} {word}" for key, word in words.items() if counts[key]) or "none"


def _write(items: "list[Item]", records: "Records", output: Path) -> Path:
    """The page of all records in the folder, those of earlier runs included."""
    from coxfield import __version__
    from coxfield.apps.report import page
    from coxfield.apps.report.records import machine

    sections = [item.section(records) for item in items]
    return page.write(page.Page(sections, machine(), __version__), output)

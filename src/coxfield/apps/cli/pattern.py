"""`coxfield pattern`: fit a log Gaussian Cox process to a table of points, as a page with pictures and a table."""

import html
import warnings
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coxfield.apps.cli import console, options
from coxfield.apps.cli.simulate import KernelName, kernel_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from coxfield.process import FittedCoxProcess, PointPattern


TESTED = 39  # patterns at most for each value that is tried for an interval


class Method(StrEnum):
    """Ways to fit, by their names on the command line."""

    contrast = "contrast"
    palm = "palm"
    composite = "composite"


def pattern(
    table: options.TableArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the page; it is made.")],
    x: Annotated[str, typer.Option("--x", metavar="COLUMN", help="Column of the first coordinate.")] = "x",
    y: Annotated[str, typer.Option("--y", metavar="COLUMN", help="Column of the second coordinate.")] = "y",
    window: Annotated[
        Path | None,
        typer.Option("--window", metavar="FILE", help="GeoJSON with the area of observation. Default: a box."),
    ] = None,
    type_: Annotated[
        str | None, typer.Option("--type", metavar="COLUMN", help="Column of types; each is fitted by itself.")
    ] = None,
    kernel: Annotated[
        KernelName, typer.Option("--kernel", "-k", help="Form of the covariance.")
    ] = KernelName.exponential,
    method: Annotated[Method, typer.Option("--method", "-m", help="How the covariance is fitted.")] = Method.contrast,
    simulations: Annotated[
        int, typer.Option("--simulations", metavar="N", min=19, help="Patterns drawn for envelope and errors.")
    ] = 99,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of these patterns.")] = 0,
    quiet: options.QuietOption = False,
) -> None:
    """Fit a log Gaussian Cox process to points: pattern, pair correlation with envelope, and intensity map.

    The folder gets index.html, its pictures, and estimates.csv with one row per type and parameter: the estimate, its
    standard error and a 90 % interval.

    \b
    Examples:
      coxfield pattern trees.csv -o report/
      coxfield pattern points.csv --x east --y north --window area.geojson --type species -o report/
      coxfield pattern points.csv -k matern32 -m palm --simulations 199 -o report/
    """  # noqa: D301
    from coxfield import plotting
    from coxfield.process import FitWarning, LogGaussianCoxProcess, PatternWarning

    try:
        plotting.figure()
    except ImportError as error:
        raise ValueError(str(error)) from None
    with console.gathered() as caught:
        warnings.simplefilter("always", PatternWarning)
        warnings.simplefilter("always", FitWarning)
        points = _read(table, x, y, window, type_)
        parts = {"all": points} if type_ is None else points.types()
        form = kernel_of(kernel, 1.0, 1.0)
        fits = {str(name): LogGaussianCoxProcess.fit(part, form, str(method)) for name, part in parts.items()}
        reports = [_report(name, fit, simulations, seed) for name, fit in fits.items()]
    notes = list(dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught))
    for note in notes:
        console.show_warning(note)
    _write(output, str(table), points, notes, reports)
    if not quiet:
        summary = {
            "Points": str(len(points)),
            "Types": console.counted(list(fits)),
            "Page": str(output / "index.html"),
        }
        console.print_summary(summary, err=True)


def _read(table: Path, x: str, y: str, window: Path | None, type_: str | None) -> "PointPattern":
    from coxfield.io import tables
    from coxfield.process import PointPattern, PolygonWindow

    rows = tables.read(table, verbatim=[type_])
    rows.require([name for name in (x, y, type_) if name is not None])
    places = dict(zip((x, y), rows.matrix([x, y]).T, strict=True))
    if type_ is not None:
        places[type_] = rows.labels(type_)
    try:
        area = None if window is None else PolygonWindow.from_geojson(window)
    except ImportError as error:
        raise ValueError(str(error)) from None
    return PointPattern.from_frame(places, x, y, type=type_, window=area)


@dataclass(frozen=True)
class Report:
    """What the page says about one type."""

    name: str
    fit: "FittedCoxProcess"
    p_value: float
    simulations: int
    estimates: list[dict[str, Any]]
    """Rows of the table of estimates."""
    pictures: dict[str, bytes]
    """PNG files, by what they show."""


def _report(name: str, fit: "FittedCoxProcess", simulations: int, seed: int) -> Report:
    """Draw the pictures of one type, and gather its estimates."""
    from coxfield import plotting

    envelope = fit.envelope("pcf", simulations, random_state=seed)
    drawn: dict[str, tuple[Callable[..., object], float]] = {
        "pattern": (fit.pattern.plot, 5.6),
        "envelope": (partial(_with_fit, envelope, fit), 6.4),
        "intensity": (fit.posterior().plot, 6.4),
        "residuals": (fit.residuals().plot, 6.4),
    }
    pictures = {}
    for what, (draw, width) in drawn.items():
        figure = plotting.figure(width, 4.6)
        draw(figure.subplots())
        pictures[what] = plotting.encode(figure, Path(f"{what}.png"))
    return Report(name, fit, envelope.p_value, simulations, _estimates(name, fit, simulations, seed), pictures)


def _estimates(name: str, fit: "FittedCoxProcess", simulations: int, seed: int) -> list[dict[str, Any]]:
    spread = fit.bootstrap(simulations, random_state=seed).standard_errors
    intervals = fit.intervals(0.9, min(simulations, TESTED), random_state=seed)
    return [
        {
            "type": name,
            "parameter": key,
            "estimate": value,
            "standard_error": spread[key],
            "low_90": intervals[key][0],
            "high_90": intervals[key][1],
        }
        for key, value in fit.estimates_.items()
    ]


def _with_fit(envelope, fit: "FittedCoxProcess", ax) -> None:
    """The envelope with the fitted pair correlation exp(C)."""
    envelope.plot(ax)
    ax.plot(envelope.r, fit.process_.pair_correlation(envelope.r), color="#D55E00", lw=1.2, label="fit, exp(C(r))")
    ax.legend(frameon=False)


def _write(output: Path, source: str, points: "PointPattern", notes: list[str], reports: list[Report]) -> None:
    """Write the folder, with the page last, so that what it shows is there."""
    import polars as pl

    from coxfield.utils.whole_files import whole_file

    files = {
        f"{what}-{number}.png": picture
        for number, report in enumerate(reports)
        for what, picture in report.pictures.items()
    }
    files["estimates.csv"] = pl.DataFrame([row for report in reports for row in report.estimates]).write_csv().encode()
    files["index.html"] = _page(source, points, notes, reports).encode()
    output.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        with whole_file(output / name) as stream:
            stream.write(content)


def _page(source: str, points: "PointPattern", notes: list[str], reports: list[Report]) -> str:
    said = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    sections = "".join(_section(number, report) for number, report in enumerate(reports))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Point pattern</title><style>'
        "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
        "img{max-width:48%;margin:.5rem;vertical-align:top}td,th{text-align:left;padding:.1rem 1rem .1rem 0}</style>"
        f"<h1>{html.escape(source)}: {len(points)} points</h1><p>Area {points.window.volume:.5g}, "
        f"{points.rate:.4g} points per unit of area.</p><ul>{said}</ul>{sections}</html>\n"
    )


def _section(number: int, report: Report) -> str:
    """The part of the page about one type."""
    fit = report.fit
    table = "".join(
        f"<tr><td>{html.escape(row['parameter'].replace('_', ' '))}</td><td>{row['estimate']:.4g}</td>"
        f"<td>{row['standard_error']:.2g}</td><td>{_ends(row['low_90'], row['high_90'])}</td></tr>"
        for row in report.estimates
    )
    pictures = "".join(f'<img src="{what}-{number}.png" alt="{what}">' for what in report.pictures)
    return (
        f"<h2>{html.escape(report.name)}: {len(fit.pattern)} points</h2><p>{html.escape(str(fit.kernel_))}, fitted by "
        f"{html.escape(fit.settings.method)} up to distance {fit.reach_:.3g}. The test of the "
        f"fitted process by its pair correlation has p = {report.p_value:.3g} ({report.simulations} simulations).</p>"
        "<table><tr><th>parameter</th><th>estimate</th><th>standard error</th><th>90 % interval</th></tr>"
        f"{table}</table><div>{pictures}</div>"
    )


def _ends(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}".replace("inf", "∞")

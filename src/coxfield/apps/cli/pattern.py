"""`coxfield pattern`: fit a log Gaussian Cox process to a table of points, as a page with pictures and a table."""

import html
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coxfield.apps.cli import console, options
from coxfield.apps.cli.simulate import KernelName, kernel_of

if TYPE_CHECKING:
    from coxfield.process import FittedCoxProcess, PointPattern


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
    import polars as pl

    from coxfield import plotting
    from coxfield.process import FitWarning, LogGaussianCoxProcess, PatternWarning
    from coxfield.utils.whole_files import whole_file

    try:
        plotting.figure()
    except ImportError as error:
        raise ValueError(str(error)) from None
    with console.gathered() as caught:
        warnings.simplefilter("always", PatternWarning)
        warnings.simplefilter("always", FitWarning)
        points = _read(table, x, y, window, type_)
        parts = {"all": points} if type_ is None else points.types()
        fits = {
            str(name): LogGaussianCoxProcess.fit(part, kernel_of(kernel, 1.0, 1.0), str(method))
            for name, part in parts.items()
        }
        rows: list[dict[str, Any]] = []
        sections: list[str] = []
        files: dict[str, bytes] = {}
        for number, (name, fit) in enumerate(fits.items()):
            more, drawn, found = _section(name, fit, number, simulations, seed)
            sections.append(more)
            files |= drawn
            rows += found
    notes = list(dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught))
    for note in notes:
        typer.secho(f"Warning: {note}", fg=typer.colors.YELLOW, err=True)
    files["estimates.csv"] = pl.DataFrame(rows).write_csv().encode()
    files["index.html"] = _page(str(table), points, notes, sections).encode()
    output.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():  # the page last, so that what it shows is there
        with whole_file(output / name) as stream:
            stream.write(content)
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


def _section(name: str, fit: "FittedCoxProcess", number: int, simulations: int, seed: int):
    """The part of the page about one type, its pictures as bytes, and its rows of estimates."""
    from coxfield import plotting

    envelope = fit.envelope("pcf", simulations, random_state=seed)
    errors = fit.bootstrap(simulations, random_state=seed)
    drawn = {
        "pattern": (lambda ax: fit.pattern.plot(ax), 5.6),
        "envelope": (lambda ax: _with_fit(envelope, fit, ax), 6.4),
        "intensity": (lambda ax: fit.posterior().plot(ax), 6.4),
        "residuals": (lambda ax: fit.residuals().plot(ax), 6.4),
    }
    files = {}
    for what, (draw, width) in drawn.items():
        figure = plotting.figure(width, 4.6)
        draw(figure.subplots())
        path = Path(f"{what}-{number}.png")
        files[path.name] = plotting.encode(figure, path)
    intervals, spread = errors.intervals(0.9), errors.standard_errors
    rows: list[dict[str, Any]] = [
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
    table = "".join(
        f"<tr><td>{html.escape(row['parameter'].replace('_', ' '))}</td><td>{row['estimate']:.4g}</td>"
        f"<td>{row['standard_error']:.2g}</td><td>{row['low_90']:.4g} to {row['high_90']:.4g}</td></tr>"
        for row in rows
    )
    pictures = "".join(f'<img src="{file}" alt="{file.split("-")[0]}">' for file in files)
    section = (
        f"<h2>{html.escape(name)}: {len(fit.pattern)} points</h2><p>{html.escape(str(fit.kernel_))}, fitted by "
        f"{html.escape(fit.settings.method)} up to distance {fit.reach_:.3g}. The pair correlation of the pattern lies "
        f"in the envelope of the fitted process with p = {envelope.p_value:.3g} ({simulations} simulations).</p>"
        "<table><tr><th>parameter</th><th>estimate</th><th>standard error</th><th>90 % interval</th></tr>"
        f"{table}</table><div>{pictures}</div>"
    )
    return section, files, rows


def _with_fit(envelope, fit: "FittedCoxProcess", ax) -> None:
    """The envelope with the fitted pair correlation exp(C)."""
    envelope.plot(ax)
    ax.plot(envelope.r, fit.process_.pair_correlation(envelope.r), color="#D55E00", lw=1.2, label="fit, exp(C(r))")
    ax.legend(frameon=False)


def _page(source: str, points: "PointPattern", notes: list[str], sections: list[str]) -> str:
    said = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Point pattern</title><style>'
        "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
        "img{max-width:48%;margin:.5rem;vertical-align:top}td,th{text-align:left;padding:.1rem 1rem .1rem 0}</style>"
        f"<h1>{html.escape(source)}: {len(points)} points</h1><p>Area {points.window.volume:.5g}, "
        f"{points.rate:.4g} points per unit of area.</p><ul>{said}</ul>{''.join(sections)}</html>\n"
    )

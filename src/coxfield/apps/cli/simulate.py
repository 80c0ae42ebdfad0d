"""`coxfield simulate`: draw a log Gaussian Cox process as a table of points and a picture."""

import math
import secrets
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from coxfield.apps.cli import console, options

if TYPE_CHECKING:
    import polars as pl
    from sklearn.gaussian_process.kernels import Kernel

    from coxfield.process import LogGaussianCoxProcess, Pattern

MOST_POINTS = 1_000_000  # a CSV of so many points in the plane has 40 MB


class KernelName(StrEnum):
    """Covariance functions, by their names on the command line."""

    rbf = "rbf"
    exponential = "exponential"
    matern32 = "matern32"
    matern52 = "matern52"


class WindowCommand(TyperCommand):
    """A command whose --window takes all numbers that follow it: two for each axis."""

    def parse_args(self, ctx, args):
        """Join the numbers after --window to one value, because an option can have only one."""
        joined: list[str] = []
        for word in args:
            if len(joined) > 1 and joined[-2] == "--window" and _is_number(word) and _is_number(joined[-1].split()[0]):
                joined[-1] += f" {word}"
            else:
                joined.append(word)
        return super().parse_args(ctx, joined)


def simulate(
    window: Annotated[
        str,
        typer.Option("--window", metavar="LOW HIGH ...", help="Ends of the window for each of one, two or three axes."),
    ],
    length_scale: Annotated[
        float, typer.Option("--length-scale", "-l", metavar="X", help="Distance over which the intensity varies.")
    ] = 1.0,
    variance: Annotated[float, typer.Option("--variance", metavar="X", help="Variance of the log intensity.")] = 1.0,
    mean: Annotated[float, typer.Option("--mean", metavar="X", help="Mean of the log intensity.")] = 0.0,
    kernel: Annotated[KernelName, typer.Option("--kernel", "-k", help="The covariance function.")] = KernelName.rbf,
    resolution: Annotated[
        int | None,
        typer.Option(
            "--resolution",
            metavar="N",
            min=1,
            help="Number of cells along the longest side. The intensity is constant in a cell.",
        ),
    ] = None,
    most_points: Annotated[
        int,
        typer.Option(
            "--most-points",
            metavar="N",
            min=1,
            help="Number of points to expect, given the intensity, above which nothing is drawn.",
        ),
    ] = MOST_POINTS,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", metavar="N", min=0, help="Seed that draws the same pattern again. Default: a new pattern."
        ),
    ] = None,
    output: options.TableOutputOption = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw to a .png, .pdf or .svg file. It is replaced if it exists."),
    ] = None,
    quiet: options.QuietOption = False,
) -> None:
    """Draw a log Gaussian Cox process: its points as a table, and a picture of its intensity and points.

    The logarithm of the intensity is a Gaussian process. Given the intensity, the points are a Poisson process. The
    table has a column x1, x2, ... for each axis of the window. A summary with the seed is printed to standard error.

    \b
    Examples:
      coxfield simulate --length-scale 1 --window 0 10 0 10 -o pattern.csv --plot pattern.png
      coxfield simulate --window 0 100 -k exponential --mean -1 -o pattern.parquet
      coxfield simulate --window -2 2 -2 2 -l 0.5 --variance 0.5 --mean 3 --seed 1 -o pattern.csv
      coxfield simulate --window 0 4 0 4 0 2 --resolution 16 --seed 1 | head -n 3
    """  # noqa: D301
    _check_numbers(length_scale, variance, mean)
    sides = _sides(window)
    from coxfield.process import CoarseGridWarning, LogGaussianCoxProcess

    console.check(output, plot)
    process = LogGaussianCoxProcess(kernel_of(kernel, length_scale, variance), mean)
    seed = secrets.randbelow(2**32) if seed is None else seed
    with console.gathered() as caught:
        warnings.simplefilter("always", CoarseGridWarning)
        pattern = process.sample(sides, resolution=resolution, most_points=most_points, random_state=seed)
    picture = None if plot is None else _picture(pattern, plot)
    for warning in caught:
        console.show_warning(warning.message)
    console.write(_table(pattern), output, picture, plot)
    if not quiet:
        console.print_summary(_summary(process, pattern, seed, output, plot), err=True)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _check_numbers(length_scale: float, variance: float, mean: float) -> None:
    """Refuse numbers that are not positive or not finite."""
    for name, value in (("--length-scale", length_scale), ("--variance", variance)):
        if not 0 < value < math.inf:
            raise typer.BadParameter(f"{name} must be positive and finite, got {value:g}")
    if not math.isfinite(mean):
        raise typer.BadParameter(f"--mean must be finite, got {mean:g}")


def _sides(window: str) -> list[tuple[float, float]]:
    """The value of --window as pairs of numbers, one pair per axis."""
    words = window.split()
    if len(words) not in (2, 4, 6) or not all(map(_is_number, words)):
        raise typer.BadParameter(
            f"--window takes two numbers for each of one, two or three axes, such as 0 10 0 10; got {window}"
        )
    numbers = [float(word) for word in words]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def kernel_of(name: KernelName, length_scale: float, variance: float) -> "Kernel":
    """A kernel by its name on the command line."""
    from sklearn.gaussian_process.kernels import RBF, Matern

    if name is KernelName.rbf:
        return variance * RBF(length_scale)
    nu = {KernelName.exponential: 0.5, KernelName.matern32: 1.5, KernelName.matern52: 2.5}[name]
    return variance * Matern(length_scale, nu=nu)


def _table(pattern: "Pattern") -> "pl.DataFrame":
    """One row per point, one column per axis."""
    import polars as pl

    names = [f"x{number}" for number in range(1, pattern.window.dimension + 1)]
    return pl.DataFrame(dict(zip(names, pattern.points.T, strict=True)))


def _picture(pattern: "Pattern", plot: Path) -> bytes:
    """The bytes of the picture. If drawing fails, nothing has been written yet."""
    from coxfield import plotting

    return plotting.encode(plotting.draw_sample(pattern), plot)


def _summary(
    process: "LogGaussianCoxProcess", pattern: "Pattern", seed: int, output: Path | None, plot: Path | None
) -> dict[str, str]:
    """The lines of the summary of a pattern."""
    given = pattern.intensity.integral if pattern.intensity is not None else math.nan
    summary = {
        "Points": str(len(pattern)),
        "Expected": f"{process.expected_count(pattern.window):.4g} ({given:.4g} given the intensity)",
        "Kernel": str(process.kernel),
        "Mean": f"{process.mean:g}",
        "Window": " x ".join(f"[{low:g}, {high:g}]" for low, high in pattern.window.sides),
        "Seed": str(seed),
    }
    return summary | {name: str(path) for name, path in (("Table", output), ("Picture", plot)) if path is not None}

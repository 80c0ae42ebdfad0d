"""Figure LGCPSamples: a random intensity of a log Gaussian Cox process, and points drawn from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from coxfield.apps.report.blocks import Figure, Note
from coxfield.apps.report.item import Item
from coxfield.apps.report.tasks import Task
from coxfield.process import LogGaussianCoxProcess, Pattern
from coxfield.process.grid import Grid, Intensity
from coxfield.process.pictures import draw_sample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coxfield.apps.report.records import Record

PROCESS = LogGaussianCoxProcess(RBF(1.0), mean=0.0)  # unit length scale and variance, as the paper states
WINDOW = ((0, 10), (0, 10))  # ours: the paper does not say
CELLS = 128  # a side: thirteen to a length scale, more than the eye can tell
NAME = "figure-samples/intensity and points"


def sample(seed: int) -> dict[str, Any]:
    """Draw an intensity and its points, and keep what a picture can show of them."""
    pattern = PROCESS.sample(WINDOW, resolution=CELLS, random_state=seed)
    rho = cast("Intensity", pattern.intensity)  # what a Cox process leaves always has one
    return {
        "window": WINDOW,
        "intensity": [[float(f"{value:.4g}") for value in row] for row in rho.values],
        "points": np.round(pattern.points, 4).tolist(),
        "expected_of_intensity": rho.integral,
        "expected_of_process": PROCESS.expected_count(WINDOW),
    }


def pattern_of(result: Mapping[str, Any]) -> Pattern:
    """The pattern that a record holds, with its intensity."""
    values = np.array(result["intensity"])
    rho = Intensity(Grid.over(result["window"], values.shape), values)
    return Pattern(result["points"], result["window"], intensity=rho)


def tasks(quick: bool) -> list[Task]:
    """One draw, quick or not."""
    return [Task(NAME, sample, {"seed": 4})]


def render(found: Mapping[str, Record]) -> Sequence[Figure | Note]:
    """The intensity beside its points, and how many points were to be expected."""
    record = found.get(NAME)
    if record is None or not record.done:
        return [Note("There is no result, so no figure. Run `coxfield reproduce figure-samples`.")]
    pattern = pattern_of(record.result)
    drawn = Figure(
        caption="Left: a random intensity, squared exponential kernel of unit variance and length scale, mean zero. "
        "Right: points drawn from it.",
        figure=draw_sample(pattern),
        description=f"An intensity with peaks a length scale or two wide, and {len(pattern)} points that crowd there.",
        name="lgcp_samples",
    )
    counts = (
        f"{len(pattern)} points were drawn; {record.result['expected_of_intensity']:.0f} were to be expected of this "
        f"intensity, and {record.result['expected_of_process']:.0f} of a random one. The paper's window and seed are "
        "not known: ours is a square of side 10."
    )
    return [drawn, Note(counts)]


ITEM = Item("figure-samples", "Figure LGCPSamples: a log Gaussian Cox process and a sample of it", tasks, render)

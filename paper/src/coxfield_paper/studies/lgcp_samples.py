"""Figure LGCPSamples: a random intensity of a log Gaussian Cox process, and points drawn from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from coxfield.plotting import draw_sample
from coxfield.process import Grid, Intensity, LogGaussianCoxProcess, Pattern
from coxfield_paper.report.blocks import Figure, Note
from coxfield_paper.report.item import Item, Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coxfield_paper.report.records import Record

PROCESS = LogGaussianCoxProcess(RBF(1.0), mean=0.0)  # unit length scale and variance, as the paper states
WINDOW = ((0, 10), (0, 10))  # ours: the paper does not say
CELLS = 128  # per side: thirteen per length scale, more than the eye can see
NAME = "figure-samples/intensity and points"


def sample(seed: int) -> dict[str, Any]:
    """Draw an intensity and its points. Digits that no picture can show are left out."""
    pattern = PROCESS.sample(WINDOW, resolution=CELLS, random_state=seed)
    rho = cast("Intensity", pattern.intensity)  # a pattern of a Cox process always has one
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
    """The intensity beside its points, and the expected number of points."""
    record = found.get(NAME)
    if record is None or not record.done:
        return [Note("There is no result, so no figure. Run `coxfield reproduce figure-samples`.")]
    pattern = pattern_of(record.result)
    drawn = Figure(
        caption="Left: a random intensity, squared exponential kernel of unit variance and length scale, mean zero. "
        "Right: points drawn from it.",
        figure=draw_sample(pattern),
        description=f"An intensity with peaks one or two length scales wide, and {len(pattern)} points, mostly there.",
        name="lgcp_samples",
    )
    counts = (
        f"{len(pattern)} points were drawn. The expected number of points is "
        f"{record.result['expected_of_intensity']:.0f} for this intensity, and "
        f"{record.result['expected_of_process']:.0f} for a random one. The paper states neither window nor seed; our "
        "window is a square of side 10."
    )
    return [drawn, Note(counts)]


ITEM = Item("figure-samples", "Figure LGCPSamples: a log Gaussian Cox process and a sample of it", tasks, render)

"""Figure LGCPSamples: a random intensity of a log Gaussian Cox process, and points drawn from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sklearn.gaussian_process.kernels import RBF

from coxfield import plotting
from coxfield.process import LogGaussianCoxProcess, Pattern
from coxfield.process.pictures import draw_sample
from coxfield.whole_files import whole_file

if TYPE_CHECKING:
    from pathlib import Path

PROCESS = LogGaussianCoxProcess(RBF(1.0), mean=0.0)  # unit length scale and variance, as the paper states
WINDOW = ((0, 10), (0, 10))  # ours: the paper does not say


@dataclass(frozen=True)
class Record:
    """A pattern with the intensity it was drawn from, and how many points were to be expected."""

    pattern: Pattern
    expected_count: float


def run(random_state: int = 4) -> Record:
    """Draw an intensity and its points."""
    return Record(PROCESS.sample(WINDOW, random_state=random_state), PROCESS.expected_count(WINDOW))


def draw(path: Path, record: Record) -> None:
    """Draw the intensity on the left and the points on the right."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = plotting.encode(draw_sample(record.pattern), path)
    with whole_file(path) as stream:
        stream.write(picture)

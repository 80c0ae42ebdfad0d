"""The weak prior that keeps learned parameters from growing without limit.

- The signal variance is the variance of a log intensity, whose natural size is 1. Its logarithm has deviation 3.
  Variances of 0.05 and 20 cost half a nat. A variance of 1e20, at which one pair of neighbours decides, costs over 100.
- The logarithm of a length scale has deviation 2 around its start, which is the best of the path. Length scales per
  feature share that freedom: each has 2 / sqrt(number of features). Without this, a hundred of them fit any labels.
- A class mean has deviation 1 around the given mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# By kind of parameter: class means, constants of a kernel, and (None) all others. These are a compromise: in cross
# validation on the training points of `studies/learning.py` in paper/ no value is best on all data sets.
DEVIATION = {"mean": 1.0, "constant_value": 3.0, None: 2.0}


@dataclass(frozen=True)
class NormalPrior:
    """Independent normal distributions around a centre; an infinite deviation leaves a parameter free.

    Examples
    --------
    >>> import numpy as np
    >>> prior = NormalPrior(np.array([0.0, 1.0]), np.array([2.0, np.inf]))
    >>> prior.log_density(np.array([2.0, 50.0])), prior.gradient(np.array([2.0, 50.0])).tolist()
    (-0.5, [-0.5, -0.0])
    """

    centre: NDArray
    deviation: NDArray

    def log_density(self, parameters: NDArray) -> float:
        """Log density up to a constant: 0 at the centre, -1/2 one deviation away."""
        return float(-0.5 * np.sum(np.square((parameters - self.centre) / self.deviation)))

    def gradient(self, parameters: NDArray) -> NDArray:
        """Derivative of the log density."""
        return -(parameters - self.centre) / np.square(self.deviation)


def default_prior(start: NDArray, kinds: list[tuple[str, int]]) -> NormalPrior:
    """The prior of a vector of parameters. It is centred at `start`, except that constants of kernels are centred at 1.

    `kinds` says what the entries are, such as ("length_scale", 3). Length scales per feature share the freedom of one:
    each has deviation 2 / sqrt(number of features).

    Examples
    --------
    >>> import numpy as np
    >>> prior = default_prior(np.array([7.0, 1.0, 2.0]), [("constant_value", 1), ("length_scale", 2)])
    >>> prior.centre.tolist(), prior.deviation.round(2).tolist()
    ([0.0, 1.0, 2.0], [3.0, 1.41, 1.41])
    """
    names = np.repeat([kind for kind, _ in kinds], [size for _, size in kinds])
    deviation = [
        np.full(size, DEVIATION.get(kind, DEVIATION[None]) / (1 if kind == "mean" else np.sqrt(size)))
        for kind, size in kinds
    ]
    return NormalPrior(np.where(names == "constant_value", 0.0, start), np.concatenate(deviation))

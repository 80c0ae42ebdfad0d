"""The length scales that the baselines try: those of `LGCPClassifier`, so that nobody searches better than another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from coxfield.engine.class_sums import arrange
from coxfield.kernels.covariance import recognise
from coxfield.selection.length_scale_path import candidate_factors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.class_sums import TrainingPoints


def arranged(X, codes, length_scale: float = 1.0) -> TrainingPoints:
    """Points arranged for class sums with the squared exponential of one length scale, shared by all classes."""
    return arrange(X, codes, [recognise(RBF(length_scale), X.shape[1])] * (int(codes.max()) + 1))


def candidates(X, length_scales) -> NDArray:
    """The length scales to try, longest first: those asked for, or 24 in steps of sqrt(2) suited to the data."""
    if length_scales is None and not np.ptp(X, axis=0).any():
        raise ValueError("all points are the same, so there is no length scale to choose: give length_scale")
    everything = arranged(X, np.zeros(len(X), dtype=int))
    return candidate_factors(everything, [RBF(1.0)], length_scales, bounded=False)

"""Warnings about labellings that users should not trust, each with advice."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONTRADICTION = 0.1  # of the points without a label: that many more than stated in a class are worth a warning
AGREE = 1.1  # up to this R-hat, chains count as agreeing


class TrivialLabellingWarning(UserWarning):
    """Every unlabelled point is given to one class."""


class ChainsDisagreeWarning(ConvergenceWarning):
    """Chains of the sampler still depend on their start, so label distributions cannot be trusted."""


def warn_if_chains_disagree(r_hat: NDArray) -> None:
    """Warn if R-hat of some points is large."""
    apart = r_hat > AGREE
    if apart.any():
        warnings.warn(
            f"chains disagree on the labels of {apart.sum()} points, R-hat up to {r_hat.max():.2f} where "
            f"{AGREE} is acceptable: give a larger n_draws, or a smaller signal variance",
            ChainsDisagreeWarning,
            stacklevel=6,  # the caller of fit
        )


def warn_if_trivial(labels: NDArray, inference: str) -> None:
    """Warn if all unlabelled points got the same class."""
    found, count = np.unique(labels), len(labels)
    if len(found) > 1 or count < 2:
        return
    if inference == "map":
        what = "the most probable labelling gives"
        why = "minimum cuts do when labels are few and the length scale is long"
    else:
        what = "the label distributions give"
        why = "happens when labels are few and the length scale or variance is large"
    warnings.warn(
        f"{what} all {count} unlabelled points to class {found.tolist()[0]!r}, as {why}; try a shorter length scale, "
        "class means that speak for the other classes, or more labels",
        TrivialLabellingWarning,
        stacklevel=4,  # the caller of fit
    )


def warn_if_contradicted(classes: NDArray, stated: NDArray, certain: NDArray) -> None:
    """Warn if more points are nearly certain to be of a class than the user states."""
    worst = int((certain - stated).argmax())
    if certain[worst] <= stated[worst] + CONTRADICTION:
        return
    warnings.warn(
        f"class_prior leaves {stated[worst]:.0%} of the points without a label to class {classes.tolist()[worst]!r}, "
        f"but {certain[worst]:.0%} are nearly certain to be of it: wrong shares do more harm than none, so check them",
        UserWarning,
        stacklevel=2,
    )

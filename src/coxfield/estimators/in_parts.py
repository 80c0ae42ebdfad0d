"""Scores of many points, part by part, so that somebody can be told how far they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import gen_batches

from coxfield.engine.class_sums import ClassSums, class_sums
from coxfield.engine.decision import Scores, prior_terms
from coxfield.progress import progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.store import Store
    from coxfield.kernels.per_class import PerClass
    from coxfield.kernels.protocol import Covariance

ROWS = 8192  # points of a part: several tiles for each thread


def scores_in_parts(
    store: Store, covariances: PerClass[Covariance], mean: NDArray, X, leave_out: NDArray | None = None
) -> Scores:
    """Scores of each row of X from labelled points.

    Parameters
    ----------
    store : Store
        The labelled points.
    covariances : PerClass of Covariance
    mean : array of shape (n_classes,)
    X : array or CSR array of shape (n, d)
    leave_out : array of shape (n,), optional
        For each row of X, the row of the store that must not count.
    """
    found = []
    with progress(f"scores of {X.shape[0]} points", X.shape[0], None, "float32 points take less time") as done:
        for part in gen_batches(X.shape[0], ROWS):
            some, left = X[part], None if leave_out is None else leave_out[part]
            found.append(Scores(prior_terms(covariances, some, mean), class_sums(store, some, left)))
            done(part.stop - part.start)
    return found[0] if len(found) == 1 else _joined(found)


def _joined(parts: list[Scores]) -> Scores:
    sums = ClassSums(*(np.concatenate([getattr(part.sums, name) for part in parts]) for name in ("values", "logs")))
    priors = [np.broadcast_to(part.prior, part.sums.values.shape) for part in parts]  # one row may stand for all
    return Scores(np.concatenate(priors), sums)

"""A fitted classifier on an array library: labelled points under chosen covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.arrays.class_sums import ArraySums, class_sums
from coxfield.arrays.library import Library
from coxfield.arrays.points import slices
from coxfield.arrays.store import ArrayScores, ArrayStore, store_arrays
from coxfield.engine.decision import prior_terms
from coxfield.progress import progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.kernels.per_class import PerClass

ROWS = 16384  # points that are scored at a time


@dataclass(frozen=True)
class ArrayModel:
    """Points of an array library, and the same points arranged for class sums."""

    labelled: Labelled
    """The points, an array of the library; class numbers and weights, arrays of NumPy."""
    covariances: PerClass
    library: Library
    store: ArrayStore

    @classmethod
    def of(cls, labelled: Labelled, covariances: PerClass) -> ArrayModel:
        """Arrange points."""
        library = Library.of(labelled.X)
        with np.errstate(all="ignore"):
            return cls(labelled, covariances, library, store_arrays(labelled, covariances, library))

    def __reduce__(self):
        # Libraries are modules, which have no pickles. The points are arranged again on loading.
        return ArrayModel.of, (self.labelled, self.covariances)

    @property
    def y(self) -> Any:
        """The class number of each point, in the library."""
        return self.library.array(self.labelled.y)

    def scores(self, X, mean: NDArray, leave_out: NDArray | None = None) -> ArrayScores:
        """Scores of each row of X; for each of them a row of the labelled points may be left out."""
        prior = self.library.array(prior_terms(self.covariances, X, mean))
        found = []
        # What overflows is far from everything. Only libraries that are built on NumPy would warn.
        with progress(f"scores of {X.shape[0]} points", X.shape[0], None) as done, np.errstate(all="ignore"):
            for part in slices(X.shape[0], ROWS):
                found.append(class_sums(self.store, X[part, :], None if leave_out is None else leave_out[part]))
                done(part.stop - part.start)
        return ArrayScores(self.library, prior, self._joined(found))

    def _joined(self, parts: list[ArraySums]) -> ArraySums:
        concat: Any = self.library.xp.concat
        return ArraySums(*(concat([getattr(part, name) for part in parts]) for name in ("values", "logs")))

"""A transformer that a user gave for a member of a mixture. What it returns is checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from coxfield.kernels.checked import REAL, call_noted, counted, kind_of, name_of
from coxfield.kernels.named_rows import PointsError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Transformer:
    """A fitted transformer with the interface of scikit-learn.

    Examples
    --------
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> halved = Transformer.fitted_to(FunctionTransformer(lambda X: X[::2]), np.zeros((4, 1)), np.zeros(4))
    >>> halved.transform(np.zeros((4, 1)))
    Traceback (most recent call last):
        ...
    ValueError: FunctionTransformer(...) returned an array of shape (2, 1) for 4 points: ...
    """

    fitted: Any

    @classmethod
    def fitted_to(cls, given, X, y: NDArray) -> Transformer:
        """A copy of the transformer, fitted to labelled points; the given one is not changed."""
        copy = clone(given)
        call_noted(copy.fit, (X, y), {}, given, f"fitted to {counted(X.shape[0])}")
        return cls(copy)

    @property
    def steps(self) -> Any:
        """The steps of a pipeline; None of any other transformer."""
        return getattr(self.fitted, "steps", None)

    @property
    def left_out(self) -> Any:
        """How the transformer corrects itself for points that are left out; None if it cannot."""
        return getattr(self.fitted, "left_out", None)

    def transform(self, X) -> Any:
        """The points in the representation: finite numbers, with a row for each point."""
        n = X.shape[0]
        found = call_noted(self.fitted.transform, (X,), {}, self.fitted, f"called on {counted(n)}")
        found = sparse.csr_array(found) if sparse.issparse(found) else np.asarray(found)  # it may be a data frame
        if found.ndim != 2 or found.shape[0] != n:
            raise ValueError(
                f"{name_of(self.fitted)} returned an array of shape {found.shape} for {counted(n)}: it must "
                "return a row for each point"
            )
        if found.dtype.kind not in REAL:
            raise ValueError(f"{name_of(self.fitted)} returned {kind_of(found)}: it must return real numbers")
        found = found.astype(np.float32 if found.dtype == np.float32 else np.float64, copy=False)
        self._check_finite(found, X)
        return found

    def _check_finite(self, found, X) -> None:
        numbers = found.data if sparse.issparse(found) else found
        if np.isfinite(numbers).all():
            return
        wrong = int(np.flatnonzero(~np.isfinite(numbers))[0])
        starts = found.indptr if sparse.issparse(found) else np.arange(len(found) + 1) * found.shape[1]
        row = int(np.searchsorted(starts, wrong, side="right")) - 1
        what = f"{name_of(self.fitted)} returned {numbers.ravel()[wrong]:g}"
        raise PointsError.at(what, [X[[row]]], "features must be finite")

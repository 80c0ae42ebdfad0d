"""Representations of the points: features as they are, standardised, whitened, or by any transformer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from coxfield.kernels.compression import Compression, NormalScores, winsorised
from coxfield.kernels.transformer import Transformer
from coxfield.kernels.units import Units
from coxfield.kernels.whitening import Whitening

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled

RAW, STANDARDISED, WHITENED = "raw", "standardised", "whitened"
PRINCIPAL, PRINCIPAL_WHITENED = "principal", "principal, whitened"
COMPRESSED, COMPRESSED_WHITENED = "compressed", "compressed, whitened"
RANKED, RANKED_WHITENED = "ranked", "ranked, whitened"
DIRECTIONS = 40  # principal directions, where there are at least twice as many features
MOST_DIRECTIONS = 2000  # that are whitened: the time grows like the cube of their number


@dataclass(frozen=True)
class Representation:
    """The training points in other coordinates."""

    name: str
    transform: Any
    """A fitted transformer of scikit-learn; None for the features as they are."""
    X: Any
    """The training points as they are."""

    @property
    def n_features(self) -> int:
        """Number of coordinates in it."""
        return self.X.shape[1] if self.transform is None else self.transform.transform(self.X[:1]).shape[1]

    @property
    def points(self) -> Any:
        """The training points in it. They may need much memory, so they are not kept."""
        return self.X if self.transform is None else self.transform.transform(self.X)


@dataclass(frozen=True)
class Representations:
    """The points in the representations that the members ask for; each is learned once."""

    labelled: Labelled
    known: list[tuple[Any, Representation]] = field(default_factory=list)
    """What was asked for, and what was learned."""

    def of(self, transform: Any) -> Representation:
        """The representation by a transformer, or by a name."""
        for asked, found in self.known:
            if asked is transform or (isinstance(asked, str) and asked == transform):
                return found
        fitted = self._fitted(transform)
        found = Representation(self._name(transform), fitted, self.labelled.X)
        self.known.append((transform, found))
        return found

    def _name(self, transform: Any) -> str:
        """A name that no other representation has."""
        if isinstance(transform, str):
            return transform
        kind = type(transform).__name__
        namesakes = sum(type(asked) is type(transform) for asked, _ in self.known)
        return f"{kind} {namesakes + 1}" if namesakes else kind

    def _fitted(self, transform: Any) -> Any:
        X, y, weights = self.labelled.X, self.labelled.y, self.labelled.weights
        if not isinstance(transform, str):
            if not hasattr(transform, "transform"):
                raise ValueError(f"transform must be {_ALLOWED} or a transformer of scikit-learn; got {transform!r}")
            return Transformer.fitted_to(transform, X, y)
        if transform not in NAMED:
            raise ValueError(f"transform must be {_ALLOWED} or a transformer of scikit-learn; got {transform!r}")
        if transform not in (RAW, STANDARDISED) and sparse.issparse(X):
            raise ValueError(f"sparse points have no representation {transform!r}: give a dense array")
        return _fitted(NAMED[transform], X, y, weights)

    def useful(self, transform: str) -> bool:
        """Whether a representation of the default bank can be had, and differs from the features as they are."""
        X, y = self.labelled.X, self.labelled.y
        if transform == RAW or X.shape[1] == 1:
            return transform == RAW
        if transform == STANDARDISED:
            fitted = self.of(transform).transform
            if isinstance(fitted, Pipeline):  # some features are of extreme size
                return len(np.unique(np.log2(fitted[0].units_) + np.log2(fitted[1].scale_))) > 1
            return bool(fitted.scale_.max() > fitted.scale_.min() * (1 + 1e-6))
        if sparse.issparse(X):
            return False
        if transform in (PRINCIPAL, PRINCIPAL_WHITENED) and min(X.shape) < 2 * DIRECTIONS:
            return False
        if transform == RANKED_WHITENED and X.shape[1] >= 2 * DIRECTIONS:  # pixels and the like have one unit
            return False
        if transform == WHITENED and min(X.shape) > MOST_DIRECTIONS:
            return False
        within = any((X[y == c] != X[y == c][:1]).any() for c in range(self.labelled.n_classes))
        return within or transform == PRINCIPAL


def _fitted(learn: Callable, X, y: NDArray, weights: NDArray | None) -> Any:
    """A fitted transformer. Features of extreme size are divided by powers of two first: it would square them."""
    units = Units().fit(X)
    if learn is NAMED[RAW] or (units.units_ == 1).all():
        return learn(X, y, weights)
    if learn in OF_DISTANCES:  # a common unit, so that proportions of distances stay
        units.units_[:] = units.units_.max()
    learned = learn(units.transform(X), y, weights)
    steps = learned.steps if isinstance(learned, Pipeline) else [(type(learned).__name__.lower(), learned)]
    return Pipeline([("units", units), *steps])


def _standardised(X, y: NDArray, weights: NDArray | None) -> Any:
    with np.errstate(invalid="ignore"):  # the variance of a constant column may be a little below 0
        values = X if sparse.issparse(X) else winsorised(X)  # one far value is not the unit of a feature
        scaler = StandardScaler(with_mean=False).fit(values, sample_weight=weights)
    scaler.scale_ = np.where(scaler.scale_ > 0, scaler.scale_, 1.0)
    return scaler


def _whitened(X, y: NDArray, weights: NDArray | None) -> Any:
    return Whitening().fit(X, y, weights)


def _principal_directions() -> Any:
    from sklearn.decomposition import PCA  # only those who need it pay for the import

    return PCA(DIRECTIONS, random_state=0)


def _alone(step: Callable[[], Any]) -> Callable:
    """A transformer that uses neither labels nor weights."""
    return lambda X, y, weights: step().fit(X)


def _then_whitened(step: Callable[[], Any]) -> Callable:
    """Such a transformer, then whitening."""

    def fitted(X, y: NDArray, weights: NDArray | None) -> Any:
        first = step().fit(X)  # one by one: a pipeline of users who route metadata would refuse the weights
        return make_pipeline(first, Whitening().fit(first.transform(X), y, weights))

    return fitted


NAMED: dict[str, Callable] = {
    RAW: lambda X, y, weights: None,
    STANDARDISED: _standardised,
    WHITENED: _whitened,
    PRINCIPAL: _alone(_principal_directions),
    PRINCIPAL_WHITENED: _then_whitened(_principal_directions),
    COMPRESSED: _alone(Compression),
    COMPRESSED_WHITENED: _then_whitened(Compression),
    RANKED: _alone(NormalScores),
    RANKED_WHITENED: _then_whitened(NormalScores),
}
DEFAULT = (RAW, STANDARDISED, WHITENED, PRINCIPAL, PRINCIPAL_WHITENED, RANKED_WHITENED)
OF_DISTANCES = (NAMED[PRINCIPAL], NAMED[PRINCIPAL_WHITENED])  # features of a larger size count more
_ALLOWED = ", ".join(map(repr, NAMED))

"""The bank: the members among which a mixture chooses."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, Kernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

from coxfield.kernels.distances import centre, place, product_error, sq_distances
from coxfield.kernels.mixture import Ladder
from coxfield.kernels.protocol import TOLERABLE
from coxfield.kernels.radial import Radial, recognise
from coxfield.kernels.sklearn_tree import check_kernel, free_length_scales, length_unit, rescale_length
from coxfield.kernels.transforms import (
    ALPHAS,
    Beside,
    Compression,
    Member,
    NormalScores,
    Transformer,
    Units,
    Whitening,
    feature_sizes,
    winsorised,
)
from coxfield.selection.grid import (
    LARGEST,
    RATIO,
    SMALLEST,
    default_factors,
    given_factors,
    typical_distance,
    within_bounds,
)
from coxfield.selection.mixture.cross_fitting import (
    CrossFitted,
    fitted_without,
    folds_of,
    number_of_folds,
    uses_labels,
)
from coxfield.selection.mixture.loo_members import COLUMNS
from coxfield.selection.mixture.relevance import relevances
from coxfield.utils.numbers import power_of_two

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled


# Representations of the points: features as they are, standardised, whitened, or by any transformer.


RAW, STANDARDISED, WHITENED = "raw", "standardised", "whitened"
PRINCIPAL, PRINCIPAL_WHITENED = "principal", "principal, whitened"
COMPRESSED, COMPRESSED_WHITENED = "compressed", "compressed, whitened"
RANKED, RANKED_WHITENED = "ranked", "ranked, whitened"
CATEGORIES = "categories"  # alone
ALL_WHITENED = "numbers and categories, whitened"  # together
ALONE = ", without categories"
RELEVANT = "relevant"  # columns multiplied by their relevance
RELEVANT_ROWS = 150  # with fewer, gradients say little, and small clean sets lose
AT_A_TIME = 10_000  # rows that are standardised at a time
LARGE = 1e100  # squares of larger numbers are near the end of all numbers
DIRECTIONS = 40  # principal directions, where there are at least twice as many features
LEVELS_CAUTION = 0.2  # times the shrinkage, beside categories: their columns are in one unit, and many are nearly equal
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
    n_categories: int = 0
    """How many columns, the last ones, are categories."""
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
        name = transform.removesuffix(ALONE)
        if name not in NAMED or (name in (CATEGORIES, ALL_WHITENED) and not self.n_categories):
            raise ValueError(f"transform must be {_ALLOWED} or a transformer of scikit-learn; got {transform!r}")
        if transform not in (RAW, STANDARDISED) and sparse.issparse(X):
            raise ValueError(f"sparse points have no representation {transform!r}: give a dense array")
        if not self.n_categories or transform in (RAW, ALL_WHITENED):
            return _fitted(NAMED[name], X, y, weights)
        learned = _fitted(NAMED[name], self.numbers, y, weights)
        return Beside(learned, self.numbers.shape[1], 0 if transform != name else self.n_categories)

    @property
    def numbers(self) -> Any:
        """The columns that are not categories."""
        return (
            self.labelled.X[:, : self.labelled.X.shape[1] - self.n_categories] if self.n_categories else self.labelled.X
        )

    @property
    def default(self) -> list[str]:
        """The representations of the default bank.

        In a table with categories, numbers with categories beside them, without them, categories alone, and both
        whitened together, which sees combinations of levels. Numbers as they are have no unit in common with
        categories.
        """
        if not self.n_categories:
            return [name for name in DEFAULT if self.useful(name)]
        n_numbers = self.numbers.shape[1] if (self.numbers != self.numbers[:1]).any() else 0
        useful = [name for name in DEFAULT if name != RAW and n_numbers and (name == STANDARDISED or self.useful(name))]
        X, categories = self.labelled.X, self.labelled.X[:, self.numbers.shape[1] :]
        if n_numbers and (categories == categories[:1]).all():
            return [name + ALONE for name in useful]
        found = [*useful, *(name + ALONE for name in useful[-1:]), CATEGORIES]
        return [*found, ALL_WHITENED] if min(X.shape) <= MOST_DIRECTIONS and self._varies_within(X) else found

    def useful(self, transform: str) -> bool:
        """Whether a representation of the default bank can be had, and differs from the features as they are."""
        X = self.numbers
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
        return transform == PRINCIPAL or self._varies_within(X)

    def _varies_within(self, X) -> bool:
        """Whether points of a class differ: otherwise there is nothing to whiten by."""
        _, first, of = np.unique(self.labelled.y, return_index=True, return_inverse=True)
        return bool((X[first[of]] != X).any())


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
        scaler = StandardScaler(with_mean=False)
        for some in gen_batches(X.shape[0], AT_A_TIME):  # it holds several copies in double precision
            scaler.partial_fit(values[some], sample_weight=None if weights is None else weights[some])
    scaler.scale_ = np.where(scaler.scale_ > 0, scaler.scale_, 1.0)
    return scaler


def _whitened(X, y: NDArray, weights: NDArray | None) -> Any:
    return Whitening().fit(X, y, weights)


def _levels_whitened(X, y: NDArray, weights: NDArray | None) -> Any:
    return Whitening().fit(X, y, weights, LEVELS_CAUTION)


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
    CATEGORIES: lambda X, y, weights: None,
    ALL_WHITENED: _levels_whitened,
}
DEFAULT = (RAW, STANDARDISED, WHITENED, PRINCIPAL, PRINCIPAL_WHITENED, RANKED_WHITENED)
OF_DISTANCES = (NAMED[PRINCIPAL], NAMED[PRINCIPAL_WHITENED])  # features of a larger size count more
_ALLOWED = ", ".join(repr(name) for name in NAMED if name not in (CATEGORIES, ALL_WHITENED))


SHORTEST = 0.35  # times the median distance to the nearest neighbour
MODERATE = 1e6  # a signal variance: powers of densities should neither overflow nor vanish
PAIRED = 500  # points whose distances from each other are looked at
LONELY = 8.0  # times the median distance: points that are so far away do not say how far apart points are
FEW = 1000  # points whose nearest neighbours are looked for


def bank_of(
    kernel: Any, labelled: Labelled, length_scales=None, n_categories: int = 0, *, wide: bool = False
) -> list[Ladder]:
    """The ladders of a bank, without weights.

    Parameters
    ----------
    kernel : None, kernel, Member, or a list of kernels and members
        None for the default bank. Kernels in a list are taken as they are. A kernel alone is taken along a path of
        length scales.
    labelled : Labelled
    length_scales : array-like, optional
        Length scales of members without a kernel, or factors for a kernel alone, in place of those that fit the data.
    n_categories : int
        How many columns, the last ones, are categories of a table.
    wide : bool
        Whether the default bank has a representation by the relevance of the columns.
    """
    seen = Representations(labelled, n_categories)
    if kernel is None:
        if sparse.issparse(labelled.X):
            warnings.warn(
                "X is sparse, so the mixture has no members on whitened features: they would be dense", stacklevel=4
            )
        members = [Member(transform=name) for name in seen.default]
        ladders = [ladder for member in members for ladder in _of(member, seen, length_scales)]
        return ladders + (_relevant(seen, length_scales) if wide else [])
    if isinstance(kernel, Kernel):
        return [_along_path(Member(kernel), seen, length_scales)]
    if not isinstance(kernel, Member | list | tuple):
        check_kernel(kernel)  # refuses it
    members = [kernel] if isinstance(kernel, Member) else list(kernel)
    if not members:
        raise ValueError("the bank of covariances is empty: give kernel=None for the default bank")
    given = [member if isinstance(member, Member) else Member(member) for member in members]
    return _merged([ladder for member in given for ladder in _of(member, seen, length_scales)])


def _ladder(rep: Representation, kernel: Kernel, factors: NDArray, alphas) -> Ladder:
    covariance = recognise(kernel, rep.n_features)
    alphas, floors = checked_alphas(alphas)
    if isinstance(covariance, Radial) and not 1 / MODERATE <= covariance.variance <= MODERATE:
        covariance = covariance.rescaled(variance=1 / covariance.variance)  # the weight of a member will make up for it
    try:
        covariance.check_nonnegative()
    except ValueError:
        raise ValueError(
            f"{kernel!r} may take negative values, so it has no density and cannot be a member of a mixture: use RBF, "
            "Matern or RationalQuadratic, or give selection=None"
        ) from None
    # A floor counts points, and a point adds C(x, x) to the density at its own place.
    one = float(np.median(covariance.diagonal(rep.points[:FEW])))
    weights = np.zeros((len(factors), len(alphas)))
    return Ladder(rep.name, rep.transform, covariance, factors, alphas, floors, weights, one)


def checked_alphas(alphas) -> tuple[NDArray, NDArray]:
    """Powers of the density and what is added to it; each entry is a power, or a pair of both."""
    try:
        pairs = np.array([(one, 0) if np.ndim(one) == 0 else one for one in alphas], dtype=float).reshape(-1, 2)
    except (TypeError, ValueError):
        pairs = np.empty((0, 2))
    powers, floors = pairs.T
    if not powers.size or not ((powers >= 0) & (powers <= 1) & (floors >= 0) & (floors < np.inf)).all():
        raise ValueError(
            "alphas of a Member must be a list of numbers from 0 to 1, or of pairs of such a number and a floor of the "
            f"density that is not negative, got {alphas!r}"
        )
    return powers, floors


def _of(member: Member, seen: Representations, length_scales) -> list[Ladder]:
    """A member as it is; without a kernel, squared exponentials at all useful length scales."""
    rep = seen.of(member.transform)
    if member.kernel is not None:
        check_kernel(member.kernel)
        return [_honest(_ladder(rep, member.kernel, np.ones(1), member.alphas), member.transform, seen)]
    return [_honest(_at_useful_scales(rep, seen, length_scales, member.alphas), member.transform, seen)]


def _at_useful_scales(rep: Representation, seen: Representations, length_scales, alphas) -> Ladder:
    """Squared exponentials on a representation."""
    scales = _scales(rep.points, 1.0, seen.labelled.weights) if length_scales is None else given_factors(length_scales)
    # Length scales relative to the longest: coordinates of a moderate size neither overflow nor underflow.
    return _ladder(rep, RBF(scales[0]), scales / scales[0], alphas)


def _honest(ladder: Ladder, transform: Any, seen: Representations) -> Ladder:
    """The ladder, cross-fitted if a user's transformer uses labels and classes can be told apart in every fold."""
    labelled = seen.labelled
    corrects_itself = hasattr(transform, "left_out")
    if isinstance(transform, str) or corrects_itself or not uses_labels(transform) or labelled.n_classes > COLUMNS:
        return ladder
    transforms, fold = fitted_without(lambda some: Transformer.fitted_to(transform, some.X, some.y), labelled)
    return cross_fitted(ladder, transforms, fold)


def cross_fitted(ladder: Ladder, transforms: tuple[Any, ...], fold: NDArray) -> CrossFitted:
    """A ladder of which rows of each fold see another transformer."""
    return CrossFitted(**vars(ladder), transforms=transforms, fold=fold)


def _relevant(seen: Representations, length_scales) -> list[Ladder]:
    """Columns multiplied by what gradients say that they are worth, unless that is no better than standardised ones."""
    labelled = seen.labelled
    n, d = labelled.X.shape
    if sparse.issparse(labelled.X) or d == 1 or labelled.n_classes > COLUMNS or n < RELEVANT_ROWS:
        return []
    scaler = _standardised(seen.numbers, labelled.y, labelled.weights) if seen.numbers.shape[1] else None
    units = np.ones(d)
    if scaler is not None:
        units[: len(scaler.scale_)] = scaler.scale_
    Z = winsorised(labelled.X)
    if not (feature_sizes(Z) / units <= LARGE).all():
        return []
    fold = folds_of(labelled.y, number_of_folds(n))
    metrics = relevances(Z, labelled.y, labelled.counts, labelled.n_classes, fold, units)
    del Z  # it is as large as the points
    if metrics is None:
        return []
    mean = np.mean(metrics, axis=0)
    rep = Representation(RELEVANT, _scaled_by(units / mean, labelled.X), labelled.X)
    ladder = _at_useful_scales(rep, seen, length_scales, ALPHAS)
    of_folds = tuple(_scaled_by(units / each, labelled.X) for each in metrics)
    return [replace(cross_fitted(ladder, of_folds, fold), relevance=mean)]


def _scaled_by(scale: NDArray, X: Any) -> StandardScaler:
    """The points divided by a number for each column."""
    scaler = StandardScaler(with_mean=False).fit(X[:2])
    scaler.scale_, scaler.var_ = scale, np.square(scale)
    return scaler


def _along_path(member: Member, seen: Representations, length_scales) -> Ladder:
    """A kernel along a path of length scales, within its bounds."""
    kernel, rep = member.kernel, seen.of(member.transform)
    recognise(kernel, rep.n_features)
    if not free_length_scales(kernel):
        factors = np.ones(1)
    elif length_scales is not None:
        factors = given_factors(length_scales)
    else:
        factors = within_bounds(_scales(rep.points, length_unit(kernel), seen.labelled.weights), [kernel])
        factors = factors if factors.size else np.ones(1)
    return _ladder(rep, rescale_length(kernel, factors[0]), factors / factors[0], member.alphas)


def _scales(Z: Any, unit: float | NDArray, weights: NDArray | None) -> NDArray:
    """Length scales from twice the root mean square distance, by sqrt(2), to a third of a nearest distance."""
    from sklearn.neighbors import NearestNeighbors

    distance = _usual_distance(Z, unit, weights)
    longest, near = default_factors(distance), power_of_two(distance)  # distances in units near their own size
    with np.errstate(over="ignore", under="ignore"):  # of a feature whose length scale is much longer or shorter
        points = place(Z, np.clip(near * np.asarray(unit), SMALLEST, LARGEST), centre(Z))
    rows = np.random.default_rng(0).permutation(len(points))[:FEW]
    with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn adds all numbers up to see if one is infinite
        index = NearestNeighbors(n_neighbors=min(2, len(points))).fit(points.coordinates)
        nearest = index.kneighbors(points.coordinates[rows])[0][:, -1]
    nearest = nearest[nearest > 0]
    shortest = SHORTEST * near * float(np.median(nearest)) if nearest.size else 0.0
    # In single precision, distances are too coarse for shorter length scales.
    with np.errstate(over="ignore"):
        precise = near * np.sqrt(float(np.median(product_error(points, points))) / TOLERABLE)
    return longest[longest >= min(max(shortest / RATIO, precise), longest[min(1, len(longest) - 1)])]


def _usual_distance(Z: Any, unit: float | NDArray, weights: NDArray | None) -> float:
    """The root mean square distance; of all but a few points, if these are very far from the others."""
    distance = typical_distance(Z, unit, weights)
    if sparse.issparse(Z) or not distance:
        return distance
    near = power_of_two(distance)
    rows = np.random.default_rng(0).permutation(Z.shape[0])[:PAIRED]
    with np.errstate(over="ignore", under="ignore"):
        points = place(Z, np.clip(near * np.asarray(unit), SMALLEST, LARGEST), centre(Z), rows)
    from_others = np.median(sq_distances(points, points), axis=1)
    usual = float(np.median(from_others))
    if not 0 < np.sqrt(usual) * LONELY < distance / near:
        return distance
    return typical_distance(Z[rows[from_others <= LONELY**2 * usual]], unit) or distance


def _merged(ladders: list[Ladder]) -> list[Ladder]:
    """Ladders that differ in their length scale alone as one, so that they share their distances."""
    groups: list[list[Ladder]] = []
    for ladder in ladders:
        group = next((group for group in groups if _alike(ladder, group[0])), None)
        if group is None:
            groups.append([ladder])
        else:
            group.append(ladder)
    return [group[0] if len(group) == 1 else _joined(group) for group in groups]


def _alike(one: Ladder, other: Ladder) -> bool:
    a, b = one.covariance, other.covariance
    if not (isinstance(a, Radial) and isinstance(b, Radial) and a.profile == b.profile):
        return False
    same = one.transform is other.transform and one.powers == other.powers
    return same and np.size(a.length_scale) == 1 == np.size(b.length_scale)


def _joined(group: list[Ladder]) -> Ladder:
    lengths = [np.atleast_1d(length_unit(ladder.covariance.kernel)) * ladder.factors for ladder in group]
    longest = max(range(len(group)), key=lambda k: float(lengths[k].max()))
    every = np.unique(np.concatenate(lengths))[::-1]
    base = group[longest]
    factors = every / float(np.asarray(length_unit(base.covariance.kernel)).item())
    return replace(base, factors=factors, weights=np.zeros((len(every), len(base.alphas))))

"""The bank: the members among which a mixture chooses."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, Kernel

from coxfield.kernels.distances import TOLERABLE, centre, place, product_error, sq_distances
from coxfield.kernels.member import Member
from coxfield.kernels.mixture_ladder import Ladder
from coxfield.kernels.radial import Radial
from coxfield.kernels.recognise import recognise
from coxfield.kernels.sklearn_tree import check_kernel, free_length_scales, length_unit, rescale_length
from coxfield.selection.grid import (
    LARGEST,
    RATIO,
    SMALLEST,
    default_factors,
    given_factors,
    typical_distance,
    within_bounds,
)
from coxfield.selection.mixture import representations
from coxfield.selection.mixture.representations import Representations
from coxfield.utils.powers_of_two import power_of_two

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.selection.mixture.representations import Representation

DEFAULT = tuple(Member(transform=name) for name in representations.DEFAULT)
SHORTEST = 0.35  # times the median distance to the nearest neighbour
MODERATE = 1e6  # a signal variance: powers of densities should neither overflow nor vanish
PAIRED = 500  # points whose distances from each other are looked at
LONELY = 8.0  # times the median distance: points that are so far away do not say how far apart points are
FEW = 1000  # points whose nearest neighbours are looked for


def bank_of(kernel: Any, labelled: Labelled, length_scales=None) -> list[Ladder]:
    """The ladders of a bank, without weights.

    Parameters
    ----------
    kernel : None, kernel, Member, or a list of kernels and members
        None for the default bank. Kernels in a list are taken as they are. A kernel alone is taken along a path of
        length scales.
    labelled : Labelled
    length_scales : array-like, optional
        Length scales of members without a kernel, or factors for a kernel alone, in place of those that fit the data.
    """
    seen = Representations(labelled)
    if kernel is None:
        useful = [member for member in DEFAULT if seen.useful(member.transform)]
        if sparse.issparse(labelled.X):
            warnings.warn(
                "X is sparse, so the mixture has no members on whitened features: they would be dense", stacklevel=4
            )
        return [ladder for member in useful for ladder in _of(member, seen, length_scales)]
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
    alphas, floors = _checked_alphas(alphas)
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


def _checked_alphas(alphas) -> tuple[NDArray, NDArray]:
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
        return [_ladder(rep, member.kernel, np.ones(1), member.alphas)]
    scales = _scales(rep.points, 1.0, seen.labelled.weights) if length_scales is None else given_factors(length_scales)
    # Length scales relative to the longest: coordinates of a moderate size neither overflow nor underflow.
    return [_ladder(rep, RBF(scales[0]), scales / scales[0], member.alphas)]


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

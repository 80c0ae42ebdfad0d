"""A mixture of covariances in a model file: its arrays fit together, and hold what learning makes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from coxfield.io.kernel_content import check_kernel
from coxfield.io.requirements import (
    is_number,
    is_text,
    require,
    require_array,
    require_fields,
    require_positive,
)
from coxfield.io.transform_content import check_sparse, check_transform
from coxfield.kernels.called import Called
from coxfield.kernels.mixture import Mixture
from coxfield.kernels.mixture_ladder import Ladder
from coxfield.kernels.radial import Radial
from coxfield.kernels.recognise import recognise

MEMBERS = 2_000  # length scales times powers of the density, in all ladders; a bank has some hundred
LARGEST_POWER = 16  # of the density; those of use are at most 1
SLACK = 3.0  # nats by which rounding changes the density of points that are beyond the precision of their distances


def check_points(X: Any, what: str) -> None:
    """Refuse points that are no array, or no sparse array, of finite numbers in single or double precision."""
    if sparse.issparse(X):
        check_sparse(X, what)
        require(X.format == "csr" and X.ndim == 2, f"{what} is a sparse matrix without rows")
        numbers = require_array(X.data, what, (None,))
    else:
        numbers = require_array(X, what, (None, None))
    require(numbers.dtype in (np.float32, np.float64), f"{what} is an array of type {numbers.dtype}")
    require(min(X.shape) > 0, f"{what} is empty")


def check_mixture(mixture: Any) -> None:
    """Refuse a mixture that no fit would make."""
    require_fields(mixture, Mixture, "the covariance")
    check_points(mixture.X, "X of the mixture")
    n = mixture.X.shape[0]
    if mixture.counts is not None:
        require_positive(mixture.counts, "counts of the mixture", (n,))
    require(type(mixture.ladders) is tuple and len(mixture.ladders) > 0, "the mixture has no members")
    for ladder in mixture.ladders:
        _check_ladder(ladder, mixture.X)
    require(any(ladder.weights.any() for ladder in mixture.ladders), "weights of the mixture are all 0")
    members = sum(ladder.weights.size for ladder in mixture.ladders)
    require(members <= MEMBERS, f"the mixture has {members} members, more than {MEMBERS}")
    if mixture.log_densities is not None:
        listed = type(mixture.log_densities) is tuple and len(mixture.log_densities) == len(mixture.ladders)
        require(listed, "the mixture does not have the densities of each representation")
        for ladder, log_q in zip(mixture.ladders, mixture.log_densities, strict=True):
            require_array(log_q, "log_densities of the mixture", (len(ladder.factors), n))
            _check_densities(ladder, log_q, mixture)


def _check_ladder(ladder: Any, X: Any) -> None:
    require_fields(ladder, Ladder, "a part of the mixture")
    require(is_text(ladder.name), "the name of a representation is no text")
    width = check_transform(ladder.transform, X)
    _check_covariance(ladder.covariance, width)
    factors = require_positive(ladder.factors, "factors of the mixture", (None,))
    alphas = require_positive(ladder.alphas, "alphas of the mixture", (None,), zero=True)
    require(bool((alphas <= LARGEST_POWER).all()), f"alphas of the mixture are larger than {LARGEST_POWER}")
    require_positive(ladder.floors, "floors of the mixture", (len(alphas),), zero=True)
    require(is_number(ladder.one) and ladder.one > 0, "the unit of the density is not a positive number")
    require_positive(ladder.weights, "weights of the mixture", (len(factors), len(alphas)), zero=True)


def _check_covariance(covariance: Any, n_features: int) -> None:
    """Refuse a covariance that is not the one of its kernel."""
    known = type(covariance) in (Radial, Called)
    require(known, f"a member of the mixture has a {type(covariance).__name__} where a covariance is needed")
    require_fields(covariance, type(covariance), "a covariance")
    check_kernel(covariance.kernel, n_features)
    expected = recognise(covariance.kernel, n_features)
    expected.check_nonnegative()
    same = type(covariance) is type(expected)
    if isinstance(covariance, Radial) and isinstance(expected, Radial):
        require_fields(covariance.profile, type(expected.profile), "the profile of a covariance")
        same = (
            covariance.profile == expected.profile
            and is_number(covariance.variance)
            and covariance.variance == expected.variance
            and np.array_equal(covariance.length_scale, expected.length_scale)
        )
    require(same, "a covariance is not the one of its kernel")


def _check_densities(ladder: Ladder, log_q: np.ndarray, mixture: Mixture) -> None:
    """Refuse densities that are impossible: they have the term of the point itself, and no term is larger."""
    if not isinstance(ladder.covariance, Radial):
        return  # the power of a kernel may be larger between other points
    counts = np.ones(mixture.n_reference) if mixture.counts is None else mixture.counts.astype(float)
    own = np.log(ladder.covariance.variance)
    possible = (log_q >= own + np.log(counts) - SLACK) & (log_q <= own + np.log(counts.sum()) + SLACK)
    require(bool(possible.all()), "log_densities of the mixture are not those of its points")

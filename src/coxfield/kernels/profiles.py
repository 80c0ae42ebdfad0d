"""Profiles: stationary covariances as functions of the squared distance, with the length scale divided out.

A profile c satisfies C(x, x') = variance * c(|(x - x') / length_scale|^2) and c(0) = 1. A profile computes its
logarithm, because a kernel value that underflows still has a logarithm. It works in place, because these are the large
arrays of the hot path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.special import gammaln, kve

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGE_ORDER = 50.0  # of a Matern profile: above it, an expansion is accurate
ALPHAS = {"float32": (1e-25, 1e12), "float64": (1e-250, 1e15)}


class Profile(Protocol):
    """What the class sums ask of a stationary covariance."""

    def log_of(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by log c(d2)."""
        ...

    def log_slope_of(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by log(-2 c'(d2)), from which derivatives by length scales are computed.

        The derivative of c by the logarithm of the length scale of feature k is -2 c'(d2) (z_k - z'_k)^2. At distance 0
        of a rough profile c' is infinite, but the product with the distance is 0, so the logarithm is set to -inf.
        """
        ...


@dataclass(frozen=True)
class SquaredExponential:
    """c(d2) = exp(-d2 / 2): the kernel of all the paper's experiments."""

    def log_of(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by -d2 / 2."""
        d2 *= -0.5
        return d2

    def log_slope_of(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by -d2 / 2: the profile is its own slope."""
        return self.log_of(d2)


@dataclass(frozen=True)
class Matern:
    """Matern with t = sqrt(2 nu d2); nu = 1/2 is the exponential kernel, nu -> inf the squared exponential."""

    nu: float

    def log_of(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by the logarithm of the Matern profile."""
        if self.nu > LARGE_ORDER:
            d2[...] = _log_large_order(d2.astype(float) / self.nu * 2, self.nu)
            return d2
        d2 *= 2 * self.nu
        t = np.sqrt(d2, out=d2)
        if self.nu == 0.5:
            return np.negative(t, out=t)
        if self.nu == 1.5:
            return np.subtract(np.log1p(t), t, out=t)
        if self.nu == 2.5:
            return np.subtract(np.log1p(t * (1 + t / 3)), t, out=t)
        t[...] = self._log_bessel_form(t)
        return t

    def _log_bessel_form(self, t: NDArray) -> NDArray:
        """Log of 2^(1-nu) / Gamma(nu) t^nu K_nu(t), the profile."""
        value = self._log_bessel(t, self.nu, self.nu)
        # At t = 0 (and where kve overflows just beside it) the profile is 1.
        return np.where(np.isfinite(value), np.minimum(value, 0), 0)

    def _log_bessel(self, t: NDArray, power: float, order: float) -> NDArray:
        """Log of 2^(1-nu) / Gamma(nu) t^power K_order(t); kve = K e^t neither over- nor underflows for large t."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return (1 - self.nu) * math.log(2) - gammaln(self.nu) + power * np.log(t) + np.log(kve(order, t)) - t

    def log_slope_of(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by the logarithm of the slope: t^nu becomes 2 nu t^(nu-1), K_nu K_(nu-1)."""
        if self.nu > LARGE_ORDER:  # t^(nu-1) K_(nu-1)(t) is the profile of order nu - 1, up to its constant
            ratio = self.nu / (self.nu - 1)
            d2[...] = math.log(ratio) + _log_large_order(d2.astype(float) / (self.nu - 1) * 2 * ratio, self.nu - 1)
            return d2
        d2 *= 2 * self.nu
        t = np.sqrt(d2, out=d2)
        if self.nu == 1.5:
            return np.subtract(math.log(3), t, out=t)
        if self.nu == 2.5:
            return np.subtract(math.log(5 / 3) + np.log1p(t), t, out=t)
        if self.nu == 0.5:
            with np.errstate(divide="ignore"):
                slope = -t - np.log(t)
        else:
            slope = math.log(2 * self.nu) + self._log_bessel(t, self.nu - 1, self.nu - 1)
        t[...] = np.where(np.isfinite(slope), slope, -np.inf)
        return t


def _log_large_order(z2: NDArray, nu: float) -> NDArray:
    """Log of the Matern profile at t^2 = nu^2 z2, by the uniform expansion of K_nu(nu z) for large nu (Olver).

    With the expansion of Gamma(nu) all large terms cancel, so any order will do; above 50, ten digits are right. K_nu
    itself overflows at orders of some hundreds.
    """
    root = np.sqrt(1 + z2)
    q = z2 / (1 + root)
    series = _log_series(1 / root, nu) - _log_series(np.ones(1), nu)
    return nu * (np.log1p(q / 2) - q) - 0.25 * np.log1p(z2) + series


def _log_series(p: NDArray, nu: float) -> NDArray:
    """Log of the sum of (-1/nu)^k u_k(p) over k = 0, ..., 4, with the polynomials u_k of the expansion."""
    s = np.square(p)
    terms = (
        p * (3 - 5 * s) / 24,
        s * (81 + s * (-462 + s * 385)) / 1152,
        p * s * (30375 + s * (-369603 + s * (765765 - s * 425425))) / 414720,
        s**2 * (4465125 + s * (-94121676 + s * (349922430 + s * (-446185740 + s * 185910725)))) / 39813120,
    )
    return np.log1p(sum(term * (-1 / nu) ** k for k, term in enumerate(terms, 1)))


@dataclass(frozen=True)
class RationalQuadratic:
    """c(d2) = (1 + d2 / (2 alpha))^-alpha."""

    alpha: float

    def log_of(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by -alpha log(1 + d2 / (2 alpha))."""
        return self._log_power(d2, self.effective_alpha(d2.dtype))

    def log_slope_of(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by -(alpha + 1) log(1 + d2 / (2 alpha))."""
        return self._log_power(d2, self.effective_alpha(d2.dtype) + 1)

    def effective_alpha(self, dtype) -> float:
        """alpha as far as the precision can tell it from 0 and from infinity, where the profile has its limits."""
        return float(np.clip(self.alpha, *ALPHAS[np.dtype(dtype).name]))

    def _log_power(self, d2: NDArray, power: float) -> NDArray:
        """Overwrite squared distances by -power log(1 + d2 / (2 alpha))."""
        with np.errstate(over="ignore"):
            d2 /= 2 * self.effective_alpha(d2.dtype)
        np.minimum(d2, np.finfo(d2.dtype).max, out=d2)
        np.log1p(d2, out=d2)
        d2 *= -power
        return d2

    def by_log_alpha(self, d2: NDArray) -> NDArray:
        """Derivative of log c by log alpha at squared distances, which are not overwritten."""
        alpha = self.effective_alpha(d2.dtype)
        with np.errstate(over="ignore"):
            u = np.minimum(d2 / (2 * alpha), np.finfo(d2.dtype).max / 2)
        return alpha * (u / (1 + u) - np.log1p(u))

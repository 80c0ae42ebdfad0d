"""Profiles of radial covariances in any array library; `coxfield.kernels.profiles` has them for NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coxfield.kernels.profiles import Matern, RationalQuadratic, SquaredExponential
from coxfield.kernels.radial import Radial

if TYPE_CHECKING:
    from coxfield.arrays.library import Library
    from coxfield.kernels.protocol import Covariance

ORDERS = (0.5, 1.5, 2.5)  # of Matern profiles without Bessel functions, which the array API standard does not have


def check_covariance(covariance: Covariance, library: Library) -> None:
    """Refuse a covariance that cannot be computed in other libraries than NumPy."""
    if not isinstance(covariance, Radial):
        raise TypeError(
            f"{covariance.kernel!r} can be computed for NumPy arrays only, but the points are {library}: give a "
            "product of constants with one RBF, Matern or RationalQuadratic, or convert the points to NumPy"
        )
    profile = covariance.profile
    if isinstance(profile, Matern) and profile.nu not in ORDERS:
        raise ValueError(
            f"Matern with nu={profile.nu:g} can be computed for NumPy arrays only, but the points are {library}: give "
            "nu of 0.5, 1.5, 2.5 or inf, or convert the points to NumPy"
        )


def log_profile(profile, d2, library: Library) -> Any:
    """log c of squared distances, which may be overwritten."""
    xp = library.xp
    if isinstance(profile, SquaredExponential):
        d2 *= -0.5
        return d2
    if isinstance(profile, RationalQuadratic):
        alpha = profile.effective_alpha(library.precision(d2))
        d2 /= 2 * alpha
        ratio = xp.log1p(xp.clip(d2, max=xp.finfo(d2.dtype).max))
        ratio *= -alpha
        return ratio
    d2 *= 2 * profile.nu
    return _log_matern(profile.nu, xp.sqrt(d2), xp)


def _log_matern(nu: float, t, xp) -> Any:
    """Log of the Matern profile at t = sqrt(2 nu d2)."""
    if nu == 0.5:
        return -t
    return xp.log1p(t if nu == 1.5 else t * (1 + t / 3)) - t

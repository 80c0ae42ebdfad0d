"""Covariance functions, as everything else sees them.

`protocol` says what is asked of a covariance. `radial` and `called` answer for scikit-learn's kernels, and `mixture`
for mixtures of them. `recognise` turns a kernel into one of them. To add a covariance, write its two classes. Nothing
else changes; see `docs/architecture.md`.
"""

from coxfield.kernels.transforms import Member

__all__ = ["Member"]

"""Covariance functions, as everything else sees them.

`protocol` says what is asked of a covariance. `radial` and `called` answer for scikit-learn's kernels, and `held` for
values that were computed before. `recognise` turns a kernel into one of them. To add a covariance, write its two
classes. Nothing else changes; see `docs/architecture.md`.
"""

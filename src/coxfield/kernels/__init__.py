"""Covariance functions, as everything else sees them.

`protocol` says what is asked of a covariance; `radial` and `called` answer for scikit-learn's kernels, `held` for
values that were computed before. `recognise` turns a kernel into one of them. To add a covariance, write its two
classes and nothing else changes: `docs/architecture.md`.
"""

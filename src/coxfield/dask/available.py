"""Imported before everything else of this package, so that one sentence says what is missing."""

EXTRA = "coxfield[dask]"

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError:
    raise ImportError(f"coxfield.dask needs dask and distributed: pip install '{EXTRA}'") from None

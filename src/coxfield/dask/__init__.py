"""Training points and queries on a cluster: class sums add over shards of points and over blocks of queries."""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError:
    raise ImportError("coxfield.dask needs dask and distributed: pip install 'coxfield[dask]'") from None

from coxfield.dask.classifier import DaskLGCPClassifier
from coxfield.dask.neighbours import neighbour_distances

__all__ = ["DaskLGCPClassifier", "neighbour_distances"]

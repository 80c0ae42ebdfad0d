"""Training points and queries on a cluster: class sums add over shards of points and over blocks of queries."""

from coxfield.dask.available import EXTRA as _EXTRA  # noqa: F401
from coxfield.dask.classifier import DaskLGCPClassifier
from coxfield.dask.neighbours import neighbour_distances

__all__ = ["DaskLGCPClassifier", "neighbour_distances"]

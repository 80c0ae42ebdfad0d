"""The order of the gallery: what a newcomer wants first. Examples that are not listed come last, by their names."""

from __future__ import annotations

ORDER = (
    "plot_first_hour.py",
    "plot_rings.py",
    "plot_few_labels.py",
    "plot_choosing_covariance.py",
    "plot_calibration.py",
    "plot_doubtful_labels.py",
    "plot_reasons.py",
    "plot_guaranteed_sets.py",
    "plot_pipeline.py",
    "plot_stream.py",
    "plot_dask.py",
    "plot_asking.py",
    "plot_network.py",
    "plot_helix.py",
    "plot_simulation.py",
    "plot_trees.py",
    "plot_cells.py",
    "plot_trend.py",
    "plot_permanental.py",
)


class GalleryOrder:
    """A sort key for sphinx-gallery, which makes one per folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        """Place of a file."""
        return ORDER.index(name) if name in ORDER else len(ORDER), name

    def __repr__(self) -> str:
        return type(self).__name__

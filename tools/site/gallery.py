"""The order of the gallery, and its small pictures: one panel each, which can be read at the size of a stamp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from sphinx_gallery.scrapers import matplotlib_scraper
from sphinx_gallery.utils import scale_image

# What a newcomer wants first. Examples that are not listed come last, by their names.

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

# The figure and the panel that stand for an example. For others it is the first panel of the first figure.
PANELS = {
    "plot_first_hour": (2, 0),
    "plot_rings": (1, 1),
    "plot_guaranteed_sets": (1, 1),
    "plot_trees": (2, 1),
    "plot_trend": (1, 3),
}
WHOLE = ("plot_doubtful_labels", "plot_reasons")  # many small pictures, which tell nothing one by one


def figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures of an example, as sphinx-gallery does, and one panel for the small picture."""
    paths, example = block_vars["image_path_iterator"], Path(block_vars["src_file"]).stem
    chosen, panel = PANELS.get(example, (1, 0))
    opened = plt.get_fignums()
    if example not in WHOLE and 0 <= chosen - 1 - len(paths) < len(opened):
        figure = plt.figure(opened[chosen - 1 - len(paths)])
        figure.canvas.draw()  # the layout is made now
        box = figure.axes[panel].get_window_extent().padded(4).transformed(figure.dpi_scale_trans.inverted())
        figure.savefig(_panel(Path(paths.image_path).parent, example), dpi=200, bbox_inches=box)
    return matplotlib_scraper(block, block_vars, gallery_conf)


def use_panels(app: Any) -> None:
    """Replace the small pictures of whole figures, in which a panel cannot be read."""
    for images in Path(app.srcdir).glob("gallery/images"):
        for thumb in images.glob("thumb/*_thumb.png"):
            panel = _panel(images, thumb.name.removeprefix("sphx_glr_").removesuffix("_thumb.png"))
            if panel.exists():
                scale_image(panel, thumb, *app.config.sphinx_gallery_conf["thumbnail_size"])


def _panel(images: Path, example: str) -> Path:
    return images / f"panel_{example}.png"


class GalleryOrder:
    """A sort key for sphinx-gallery, which makes one per folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        """Place of a file."""
        return ORDER.index(name) if name in ORDER else len(ORDER), name

    def __repr__(self) -> str:
        return type(self).__name__

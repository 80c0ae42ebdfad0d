"""Pictures of fitted models, labellings and point processes; needs matplotlib (`pip install coxfield[plot]`)."""

from coxfield.plotting.few_labels import MANY, plot_few_labels, plot_labelling
from coxfield.plotting.figures import (
    COLOURS,
    DARK,
    MARKERS,
    PICTURES,
    axes_for,
    check_picture,
    encode,
    figure,
    plot_points,
    plot_probability,
)
from coxfield.plotting.guaranteed_sets import plot_label_quality, plot_sets
from coxfield.plotting.processes import (
    draw_sample,
    plot_envelope,
    plot_intensity,
    plot_map,
    plot_pattern,
    plot_summary,
)
from coxfield.plotting.reasons import plot_reasons
from coxfield.plotting.selection import plot_features, plot_mixture, plot_reliability, plot_selection_path

__all__ = [
    "COLOURS",
    "DARK",
    "MANY",
    "MARKERS",
    "PICTURES",
    "axes_for",
    "check_picture",
    "draw_sample",
    "encode",
    "figure",
    "plot_envelope",
    "plot_features",
    "plot_few_labels",
    "plot_intensity",
    "plot_label_quality",
    "plot_labelling",
    "plot_map",
    "plot_mixture",
    "plot_pattern",
    "plot_points",
    "plot_probability",
    "plot_reasons",
    "plot_reliability",
    "plot_selection_path",
    "plot_sets",
    "plot_summary",
]

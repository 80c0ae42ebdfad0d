"""Pictures of fitted models, labellings and point processes; needs matplotlib (`pip install coxfield[plot]`)."""

from coxfield.plotting.few_labels import plot_few_labels
from coxfield.plotting.figures import PICTURES, axes_for, check_picture, encode, figure
from coxfield.plotting.guaranteed_sets import plot_sets
from coxfield.plotting.label_quality import plot_label_quality
from coxfield.plotting.labelling import MANY, plot_labelling
from coxfield.plotting.mixture import plot_mixture
from coxfield.plotting.points import plot_points, plot_probability
from coxfield.plotting.processes import (
    draw_sample,
    plot_envelope,
    plot_intensity,
    plot_map,
    plot_pattern,
    plot_summary,
)
from coxfield.plotting.reasons import plot_reasons
from coxfield.plotting.reliability import plot_reliability
from coxfield.plotting.selection_path import plot_selection_path
from coxfield.plotting.styles import COLOURS, DARK, MARKERS

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

"""The former place of `coxfield.plotting.processes`."""

from coxfield.plotting.processes import draw_sample, plot_intensity, plot_pattern

__all__ = ["draw_sample", "plot_intensity", "plot_pattern"]

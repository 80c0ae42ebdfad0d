"""The point processes themselves: simulate them, thin and superpose them, evaluate their densities.

A request flows window -> grid -> Gaussian field -> intensity -> points. `LogGaussianCoxProcess` is the process of the
paper, `label_distribution` what it says of labels, and `thinned_label_distribution` what that is the limit of.
"""

from coxfield.process.densities import log_product_density
from coxfield.process.gaussian_field import sample_gaussian_field
from coxfield.process.grid import Grid, Intensity
from coxfield.process.interference import gp_classifier_prior, interference
from coxfield.process.labels import LabelDistribution, label_distribution, log_superposition_density
from coxfield.process.lgcp import CoarseGridWarning, LogGaussianCoxProcess
from coxfield.process.observation import thinned_label_distribution
from coxfield.process.pattern import Pattern
from coxfield.process.poisson import poisson_process, superpose, thin
from coxfield.process.window import Window

__all__ = [
    "CoarseGridWarning",
    "Grid",
    "Intensity",
    "LabelDistribution",
    "LogGaussianCoxProcess",
    "Pattern",
    "Window",
    "gp_classifier_prior",
    "interference",
    "label_distribution",
    "log_product_density",
    "log_superposition_density",
    "poisson_process",
    "sample_gaussian_field",
    "superpose",
    "thin",
    "thinned_label_distribution",
]

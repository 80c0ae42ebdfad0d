"""The point processes themselves: simulate them, thin and superpose them, evaluate their densities.

A simulation goes window -> grid -> Gaussian field -> intensity -> points. `LogGaussianCoxProcess` is the process of the
paper. `label_distribution` is the distribution of labels that the paper's classifier uses. It is the limit of
`thinned_label_distribution` as the thinning probability goes to 0.
"""

from coxfield.geometry.window import Window
from coxfield.process.densities import log_product_density
from coxfield.process.fields import Grid, Intensity, sample_gaussian_field
from coxfield.process.labels import (
    LabelDistribution,
    gp_classifier_prior,
    interference,
    label_distribution,
    log_superposition_density,
    thinned_label_distribution,
)
from coxfield.process.lgcp import CoarseGridWarning, LogGaussianCoxProcess
from coxfield.process.pattern import Pattern
from coxfield.process.poisson import poisson_process, superpose, thin

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

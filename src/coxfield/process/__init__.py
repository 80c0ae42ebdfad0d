"""The point processes themselves: simulate them, evaluate their densities, and fit them to point patterns.

A simulation goes window -> grid -> Gaussian field -> intensity -> points. `LogGaussianCoxProcess` is the process of the
paper. `label_distribution` is the distribution of labels that the paper's classifier uses. It is the limit of
`thinned_label_distribution` as the thinning probability goes to 0.
"""

from coxfield.geometry.window import PolygonWindow, Window
from coxfield.process.densities import log_product_density
from coxfield.process.fields import Grid, Intensity, sample_gaussian_field
from coxfield.process.fitting import Bootstrap, FitWarning
from coxfield.process.goodness import (
    Envelope,
    FittedPermanental,
    Residuals,
    envelope,
    fit_permanental,
    residuals,
    third_order,
)
from coxfield.process.labels import (
    LabelDistribution,
    gp_classifier_prior,
    interference,
    label_distribution,
    log_superposition_density,
    thinned_label_distribution,
)
from coxfield.process.lgcp import CoarseGridWarning, FittedCoxProcess, FittedTypes, LogGaussianCoxProcess
from coxfield.process.pattern import Pattern, PatternWarning, PointPattern, poisson_process, superpose, thin
from coxfield.process.posterior import Posterior, latent_posterior
from coxfield.process.summaries import Summary, j_function, k_function, l_function, pair_correlation
from coxfield.process.trend import Covariates, Trend, fit_trend

__all__ = [
    "Bootstrap",
    "CoarseGridWarning",
    "Covariates",
    "Envelope",
    "FitWarning",
    "FittedCoxProcess",
    "FittedPermanental",
    "FittedTypes",
    "Grid",
    "Intensity",
    "LabelDistribution",
    "LogGaussianCoxProcess",
    "Pattern",
    "PatternWarning",
    "PointPattern",
    "PolygonWindow",
    "Posterior",
    "Residuals",
    "Summary",
    "Trend",
    "Window",
    "envelope",
    "fit_permanental",
    "fit_trend",
    "gp_classifier_prior",
    "interference",
    "j_function",
    "k_function",
    "l_function",
    "label_distribution",
    "latent_posterior",
    "log_product_density",
    "log_superposition_density",
    "pair_correlation",
    "poisson_process",
    "residuals",
    "sample_gaussian_field",
    "superpose",
    "thin",
    "thinned_label_distribution",
    "third_order",
]

"""R's spatstat as an oracle, where it is installed: definitions that agree give numbers that agree."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from coxfield.process import LogGaussianCoxProcess, PointPattern, k_function, pair_correlation
from coxfield.process.fitting import Bounds, Settings, contrast, search

PROGRAM = """
suppressPackageStartupMessages(library(spatstat.model))
p <- redwood; p <- affine(p, mat = diag(2), vec = -c(p$window$xrange[1], p$window$yrange[1]))
g <- pcf(p, correction = c("translate", "Ripley")); k <- Kest(p, correction = c("translate", "Ripley"))
strict <- list(reltol = 1e-12, maxit = 5000)
a <- lgcp.estpcf(p, c(var = 1, scale = 0.1), control = strict)
b <- lgcp.estK(p, c(var = 1, scale = 0.1), control = strict)
show <- function(x) paste0("[", paste(format(x[is.finite(x)], digits = 12), collapse = ","), "]")
cat(paste0('{"x":', show(p$x), ',"y":', show(p$y), ',"r":', show(g$r[-1]), ',"iso":', show(g$iso[-1]), ',"trans":',
  show(g$trans[-1]), ',"kr":', show(k$r[-1]), ',"kiso":', show(k$iso[-1]), ',"ktrans":', show(k$trans[-1]), ',"pcf":',
  show(a$par), ',"K":', show(b$par), "}"))
"""


@pytest.fixture(scope="module")
def oracle():
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    done = subprocess.run(["Rscript", "-e", PROGRAM], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"spatstat.model is not installed: {done.stderr.splitlines()[-1]}")
    return {name: np.array(values) for name, values in json.loads(done.stdout).items()}


@pytest.fixture(scope="module")
def redwood(oracle):
    return PointPattern(np.column_stack([oracle["x"], oracle["y"]]), [(0, 1), (0, 1)])


@pytest.mark.parametrize(("correction", "name"), [("isotropic", "kiso"), ("translation", "ktrans")])
def test_k_is_that_of_spatstat(oracle, redwood, correction, name):
    # spatstat counts pairs in bins that end at r, with coordinates of twelve digits here.
    found = k_function(redwood, oracle["kr"], correction=correction).values
    np.testing.assert_allclose(found, oracle[name], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("correction", "name"), [("isotropic", "iso"), ("translation", "trans")])
def test_the_pair_correlation_is_that_of_spatstat(oracle, redwood, correction, name):
    # spatstat spreads distances over a grid of 512 nodes before it smooths them; we do not. At the first nodes, where
    # the sum is divided by a small r, that shows.
    found = pair_correlation(redwood, oracle["r"], correction=correction).values
    assert np.abs(found - oracle[name])[4:].max() < 0.01 * oracle[name].max()


def test_minimum_contrast_of_the_same_curve_is_that_of_spatstat(oracle, redwood):
    kernel = Matern(1.0, nu=0.5)
    for statistic, r, observed in (("pcf", "r", "iso"), ("K", "kr", "kiso")):
        r, observed = oracle[r], oracle[observed]
        objective = contrast(r, observed, Settings(kernel, statistic=statistic), 2, r[-1] / 1000)
        found = search(objective, kernel, Bounds.of(kernel, r[-1], redwood))
        np.testing.assert_allclose(found, oracle[statistic], rtol=1e-5)


def test_the_whole_fit_is_near_that_of_spatstat(oracle, redwood):
    fit = LogGaussianCoxProcess.fit(redwood, Matern(1.0, nu=0.5))
    np.testing.assert_allclose([fit.variance_, fit.length_factor_], oracle["pcf"], rtol=0.03)

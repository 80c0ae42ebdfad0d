"""Real patterns of R's spatstat.data, read where R is installed: each step of a fit beside spatstat, with pictures.

`python -m benchmarks.real_patterns FOLDER` fits `redwood` (62 seedlings) and `bei` (3,604 trees on a slope), prints the
estimates beside those of `kppm`, and draws pattern, pair correlation, envelope, posterior intensity and residuals.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from sklearn.gaussian_process.kernels import Matern

from coxfield import plotting
from coxfield.process import Covariates, Grid, LogGaussianCoxProcess, PointPattern, Window, pair_correlation

PROGRAM = """
suppressPackageStartupMessages(library(spatstat.model))
show <- function(x) paste0("[", paste(format(as.vector(x), digits = 12, trim = TRUE), collapse = ","), "]")
points <- function(p) paste0(
  '"x":', show(p$x), ',"y":', show(p$y), ',"sides":', show(c(p$window$xrange, p$window$yrange)))
one <- function(formula, ...) {
  f <- suppressWarnings(kppm(formula, "LGCP", ...)); show(c(unlist(f$par), if (is.stationary(f)) f$mu else coef(f)))
}
e <- bei.extra$elev; g <- bei.extra$grad
cat(paste0('{"redwood":{', points(redwood), ',"contrast pcf":', one(redwood ~ 1, statistic = "pcf"), ',"contrast K":',
  one(redwood ~ 1), ',"palm":', one(redwood ~ 1, method = "palm"), ',"composite":', one(redwood ~ 1, method = "clik2"),
  '},"bei":{', points(bei), ',"cells":', show(c(e$xrange, e$yrange, e$dim)), ',"elev":', show(e$v), ',"grad":',
  show(g$v), ',"contrast pcf":', one(bei ~ elev + grad, data = bei.extra, statistic = "pcf"), ',"contrast K":',
  one(bei ~ elev + grad, data = bei.extra), "}}"))
"""
METHODS = {
    "contrast pcf": {"method": "contrast"},
    "contrast K": {"method": "contrast", "statistic": "K"},
    "palm": {"method": "palm"},
    "composite": {"method": "composite"},
}
KERNEL = Matern(1.0, nu=0.5)


def read():
    """Patterns, covariates and spatstat's estimates."""
    done = subprocess.run(["Rscript", "-e", PROGRAM], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def pattern_of(data):
    x0, x1, y0, y1 = data["sides"]
    return PointPattern(np.column_stack([data["x"], data["y"]]), [(x0, x1), (y0, y1)])


def covariates_of(data):
    """Images of spatstat as covariates: its rows are y, and its columns x."""
    x0, x1, y0, y1, rows, columns = data["cells"]
    grid = Grid(Window([(x0, x1), (y0, y1)]), (int(columns), int(rows)))
    # R lists a matrix by columns, which are values of x: so that the array is (x, y) as it comes.
    return Covariates(grid, {name: np.reshape(data[name], grid.shape) for name in ("elev", "grad")})


def draw(folder, name, fit):
    """One picture per step."""
    steps = {
        "pattern": fit.pattern.plot,
        "pcf": pair_correlation(fit.pattern).plot,
        "envelope": fit.envelope("L", 39, random_state=0).plot,
        "posterior": fit.posterior().plot,
        "residuals": fit.residuals().plot,
    }
    for step, plot in steps.items():
        figure = plotting.figure(6.4, 4.6)
        plot(figure.subplots())
        path = folder / f"{name}-{step}.png"
        path.write_bytes(plotting.encode(figure, path))


def run(quick=False, folder=None):
    """Fit, print, draw."""
    for name, data in read().items():
        how = {} if name == "redwood" else {"trend": ["elev", "grad"], "covariates": covariates_of(data)}
        pattern = pattern_of(data)
        for method in [method for method in METHODS if method in data]:
            fit = LogGaussianCoxProcess.fit(pattern, KERNEL, **METHODS[method], **how)
            rest = [fit.mean_] if fit.trend_ is None else fit.trend_.coefficients
            ours, theirs = (", ".join(f"{v:.4g}" for v in some) for some in (
                [fit.variance_, fit.length_factor_, *rest], data[method]))  # fmt: skip
            Console().print(f"{name}, {method}: coxfield {ours}; spatstat {theirs}")
            if method == "contrast pcf" and folder is not None and not quick:
                draw(folder, name, fit)


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    run(folder=Path(sys.argv[1]))

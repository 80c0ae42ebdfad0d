"""
Reports in a town: a trend and clusters
=======================================

Reports are more frequent near the centre, and they come in clusters. A trend takes up the first, and
the covariance the second. Without the trend, the covariance would have to explain both.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import Matern

from coxfield.process import Covariates, Grid, LogGaussianCoxProcess, PolygonWindow

town = PolygonWindow([(0, 0), (6, 0), (6, 3), (4, 5), (0, 5)], holes=[[(4.2, 0.6), (5.2, 0.6), (5.2, 1.6), (4.2, 1.6)]])
grid = Grid.over([(0, 6), (0, 5)], 60)
distance = np.linalg.norm(grid.centres() - (2.5, 2.5), axis=1).reshape(grid.shape)  # kilometres
covariates = Covariates(grid, {"distance": distance})

truth = LogGaussianCoxProcess(1.0 * Matern(0.25, nu=0.5), lambda x: 4.0 - 0.8 * covariates["distance"](x) - 0.5)
reports = truth.sample(town, random_state=4)
fit = LogGaussianCoxProcess.fit(reports, Matern(nu=0.5), trend=["distance"], covariates=covariates)
print({name: round(value, 2) for name, value in fit.estimates_.items()})

# %%
# The trend, and what remains: residuals in units of their standard errors, and the posterior.
figure, panels = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
reports.plot(panels[0, 0]).set_title(f"{len(reports)} reports", fontsize="medium")
fit.intensity(grid).plot(panels[0, 1]).set_title("trend", fontsize="medium")
fit.residuals(0.4).plot(panels[1, 0])
fit.posterior().plot(panels[1, 1])
plt.show()

"""
Trees: fit a Cox process to a pattern
=====================================

Trees of one species stand in clumps. A log Gaussian Cox process says how strong the clumping is and
how far it reaches, and where the forest is dense. Here the trees are drawn from a known process, so
that we can see how much of it comes back.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import Matern

from coxfield.process import LogGaussianCoxProcess, pair_correlation

window = [(0, 500), (0, 300)]  # metres
truth = LogGaussianCoxProcess(1.5 * Matern(25.0, nu=0.5), np.log(400 / 150_000) - 0.75)
trees = truth.sample(window, random_state=2)

fit = LogGaussianCoxProcess.fit(trees, Matern(nu=0.5))
print(f"{len(trees)} trees; variance {fit.variance_:.2f} (true 1.5), length {fit.length_factor_:.0f} m (true 25 m)")

# %%
# The pair correlation says how much more often two trees stand at distance r than if they stood
# independently. That of the process is exp(C(r)).
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
trees.plot(left)
g = pair_correlation(trees)
g.plot(right)
right.plot(g.r, fit.process_.pair_correlation(g.r), color="#D55E00", label="fit")
right.plot(g.r, truth.pair_correlation(g.r), color="black", ls=":", label="truth")
right.legend(frameon=False)

# %%
# Does the fitted process describe the trees? A global envelope judges all distances at once.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
fit.envelope("L", 39, random_state=0).plot(left)
fit.posterior().plot(right)
plt.show()

"""
The permanental classifier
==========================

The appendix of the paper has a second process. Its intensity is a sum of squares of Gaussian
processes, and its densities are permanents. :class:`coxfield.PermanentalClassifier` classifies with
it. The decisions are much the same. The cost is not: the cube of the number of points.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier, PermanentalClassifier
from coxfield.datasets import load_synth
from coxfield.permanents import alpha_permanent, log_permanent_ratio_cyclic
from coxfield.plotting import plot_points, plot_probability

synth = load_synth()
figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, clf in zip(panels, (LGCPClassifier(selection="loo_error"), PermanentalClassifier()), strict=True):
    clf.fit(synth.X_train, synth.y_train)
    plot_probability(clf, synth.X_train, ax, resolution=80)
    plot_points(synth.X_train, synth.y_train, ax, size=5)
    ax.set_title(f"{type(clf).__name__}: {1 - clf.score(synth.X_test, synth.y_test):.1%} wrong", fontsize="medium")

# %%
# A permanent of n rows has n! terms. Ratios of permanents are approximated by cycles of two, three
# and four points. Here are the exact log ratio and the approximations, for points that come closer
# and closer.
points = np.random.default_rng(0).uniform(0, 2, size=(11, 2))
scales = np.geomspace(0.05, 3, 25)
exact, cyclic = [], {2: [], 3: [], 4: []}
for scale in scales:
    K = 2 * RBF(scale)(points)
    A, row, variance = K[:10, :10], K[10:, :10], K[10:, 10]
    exact.append(np.log(alpha_permanent(K) / alpha_permanent(A)))
    for cycles, values in cyclic.items():
        values.append(log_permanent_ratio_cyclic(A, row, variance, cycles=cycles)[0])

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.semilogx(scales, exact, color="black", label="exact")
for cycles, values in cyclic.items():
    ax.semilogx(scales, values, "--", label=f"{cycles} cycles")
ax.set(xlabel="length scale", ylabel="log ratio")
ax.legend(frameon=False)
plt.show()

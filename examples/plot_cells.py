"""
Cells of two types: from patterns to a classifier
=================================================

Each type of cell has its own process. Two fitted processes are the generative model of the paper, and
give its classifier: of which type would a cell be, if one were seen here?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF

from coxfield.process import LogGaussianCoxProcess, pair_correlation, superpose, thin

window = [(0, 1), (0, 1)]  # millimetres
tumour = LogGaussianCoxProcess(1.5 * RBF(0.12), np.log(150) - 0.75).sample(window, random_state=1)
immune = LogGaussianCoxProcess(0.8 * RBF(0.06), np.log(120) - 0.4).sample(window, random_state=5)
cells = superpose({"tumour": tumour, "immune": immune})

types = LogGaussianCoxProcess.fit_types(cells, RBF(1.0))
for name, fit in types.fits.items():
    print(f"{name}: {len(fit.pattern)} cells, {fit.kernel_}, mean {fit.mean_:.2f}")

# %%
# The cross pair correlation is 1 if the types ignore each other, as these do.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
cells.plot(left)
pair_correlation(cells, types=("tumour", "immune")).plot(right).set_title("between types", fontsize="medium")

# %%
# Class probabilities on a map. The classifier takes the labelled cells for a small share of all
# cells, so that empty places say nothing; here one cell in twenty is labelled. The shares of the
# posterior intensities use all cells, and know where none were seen.
clf = types.classifier(thin(cells, 0.05, random_state=0))
grid, shares = types.posterior_probabilities()
chance = clf.predict_proba(grid.centres())[:, list(clf.classes_).index("tumour")].reshape(grid.shape)
figure, panels = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
for ax, values, title in zip(panels, (chance, shares["tumour"]), ("classifier", "posterior share"), strict=True):
    picture = ax.imshow(values.T, extent=(0, 1, 0, 1), origin="lower", cmap="cividis", vmin=0, vmax=1)
    ax.set_title(f"tumour: {title}", fontsize="medium")
figure.colorbar(picture, ax=panels, label="probability")
plt.show()

"""
A network, and a picture: graphs of your own
============================================

Points may be nodes of a graph instead of rows of numbers.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.feature_extraction.image import grid_to_graph

from coxfield import SLGCPClassifier
from coxfield.field import LabelField, map_labels
from coxfield.plotting import COLOURS

# %%
# Here are 300 papers of three fields that cite each other, mostly within a field. Two papers per
# field are labelled.
rng = np.random.default_rng(0)
field = np.arange(300) % 3
cites = np.triu(rng.random((300, 300)) < np.where(field[:, None] == field, 0.06, 0.005), k=1)
network = sparse.csr_array((cites | cites.T).astype(float))
clf = SLGCPClassifier("precomputed").fit(network, np.where(np.arange(300) < 6, field, -1))
print(f"{np.sum(clf.transduction_ != field)} of 294 wrong")

# %%
# ``map_`` has a place for each node. Lines are citations, and black rings are the given labels.
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ends = np.stack(network.nonzero())
ax.plot(*clf.map_[ends].transpose(2, 0, 1), color="0.85", linewidth=0.4, zorder=0)
ax.scatter(*clf.map_.T, c=np.array(COLOURS)[clf.transduction_], s=14)
ax.scatter(*clf.map_[:6].T, s=60, facecolors="none", edgecolors="black")
ax.set_axis_off()

# %%
# Pixels are nodes too. Each has costs per class, and neighbours want to agree. The cut is exact.
region = np.hypot(*(np.indices((60, 60)) - 30)) < 18
grey = region + rng.normal(size=region.shape)
costs = np.stack([grey.ravel() ** 2, (grey.ravel() - 1) ** 2], axis=1) / 2
result = map_labels(LabelField.from_graph(grid_to_graph(60, 60), np.full(3600, -1), unary=costs))
figure, panels = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
titles = {"truth": region, "with noise": grey, f"cut, proven: {result.certified.all()}": result.labels.reshape(60, 60)}
for ax, (title, picture) in zip(panels, titles.items(), strict=True):
    ax.imshow(picture, cmap="gray")
    ax.set_title(title)
    ax.set_axis_off()
plt.show()

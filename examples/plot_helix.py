"""
Double helix: thin shapes in space
==================================

Two strands wind around each other. Fifteen points of each strand are labelled. A classifier that
sees only these thirty points cannot know the strands. One that sees all points follows them.
"""

import matplotlib.pyplot as plt
import numpy as np

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.datasets import make_double_helix
from coxfield.plotting import COLOURS

X, truth = make_double_helix(500, random_state=0)
rng = np.random.default_rng(1)
known = np.concatenate([rng.choice(np.flatnonzero(truth == strand), 15, replace=False) for strand in (0, 1)])
y = np.full(len(X), -1)
y[known] = truth[known]

# %%
# Three labellings: from the labelled points alone, from all points, and by the minimum cut of the
# paper.
found = {
    "labelled points alone": LGCPClassifier().fit(X[known], y[known]).predict(X),
    "all points": SLGCPClassifier().fit(X, y).transduction_,
    "minimum cut": SLGCPClassifier(inference="map").fit(X, y).transduction_,
}

# %%
# Black rings are the given labels.
inks = np.array([COLOURS[0], COLOURS[4]])
figure, panels = plt.subplots(1, 3, figsize=(12, 5), subplot_kw={"projection": "3d"}, layout="constrained")
for ax, (name, labels) in zip(panels, found.items(), strict=True):
    ax.scatter(*X.T, c=inks[labels], s=8)
    ax.scatter(*X[known].T, s=45, facecolors="none", edgecolors="black")
    ax.set_title(f"{name}: {np.mean(labels != truth):.1%} wrong")
    ax.view_init(12, 35)
    ax.set(xticks=[], yticks=[], zticks=[])
    ax.set_box_aspect((1, 1, 1.4))
plt.show()

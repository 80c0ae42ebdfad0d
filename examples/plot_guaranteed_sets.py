"""
Sets with a guarantee
=====================

:meth:`coxfield.LGCPClassifier.predict_set` gives a set of classes for each point. The true class is
in the set with the probability that you ask for, whether the model is right or not. Where classes
overlap the sets are larger.
"""

import matplotlib.pyplot as plt
import numpy as np

from coxfield import LGCPClassifier
from coxfield.datasets import load_synth
from coxfield.plotting import plot_sets

X, y, X_test, y_test = load_synth(return_X_y=True)

# %%
# The guarantee is exact if the labels that calibrate did not choose the covariance. Half of the
# rows choose it here.
clf = LGCPClassifier(selection_part=0.5, random_state=0).fit(X, y)

# %%
# Regions of the plane with the same set, for two coverages.
figure, panels = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
for ax, coverage in zip(panels, (0.9, 0.98), strict=True):
    plot_sets(clf, X, y, coverage, ax=ax, resolution=100)

# %%
# What is asked for, and what is found on 1,000 new points. One set of training points may be lucky
# or unlucky. The guarantee is about the average over training points and new points.
p_values = clf.set_p_values(X_test)
asked = np.linspace(0.5, 0.99, 50)
own = p_values[np.arange(len(y_test)), y_test]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(asked, [np.mean(own > 1 - c) for c in asked])
left.plot(asked, asked, color="0.6", linewidth=1)
left.set(xlabel="coverage asked for", ylabel="coverage found")
right.plot(asked, [np.mean((p_values > 1 - c).sum(axis=1)) for c in asked])
right.set(xlabel="coverage asked for", ylabel="mean size of the sets")
plt.show()

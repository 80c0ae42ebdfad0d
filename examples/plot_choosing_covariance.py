"""
Choosing a covariance
=====================

The covariance says how far a training point reaches. There are three ways to choose it: learn a
mixture (the default), take one length scale by leave-one-out (the rule of the paper), or give your
own.
"""

import matplotlib.pyplot as plt
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.datasets import load_synth
from coxfield.plotting import plot_mixture, plot_points, plot_probability, plot_selection_path

synth = load_synth()
X, y = synth.X_train, synth.y_train
classifiers = {
    "learned mixture": LGCPClassifier(),
    "one length scale": LGCPClassifier(selection="loo_error"),
    "RBF(0.05) as it is": LGCPClassifier(RBF(0.05), selection=None),
}

# %%
# The probability of the second class. A length scale that is too short believes every point.
figure, panels = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
for ax, (name, clf) in zip(panels, classifiers.items(), strict=True):
    clf.fit(X, y)
    plot_probability(clf, X, ax)
    plot_points(X, y, ax, size=6)
    ax.set_title(f"{name}: {1 - clf.score(synth.X_test, synth.y_test):.1%} wrong")

# %%
# What was learned. Each stem is a member of the mixture, and its height is its share of the
# evidence.
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
plot_mixture(classifiers["learned mixture"], ax)

# %%
# What was tried for one length scale.
figure, ax = plt.subplots(figsize=(9, 3.8), layout="constrained")
plot_selection_path(classifiers["one length scale"], ax)
plt.show()

"""
Few labels on many digits
=========================

There are 1,797 small pictures of digits, and five labels of each digit. All pictures together show
which of them belong together.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from coxfield import SLGCPClassifier
from coxfield.plotting import plot_few_labels

X, truth = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
known = np.concatenate([rng.choice(np.flatnonzero(truth == digit), 5, replace=False) for digit in range(10)])
y = np.full(len(X), -1)
y[known] = truth[known]

clf = SLGCPClassifier().fit(X, y)
wrong = clf.transduction_ != truth
print(f"{len(known)} labels given, {wrong.mean():.1%} of all labels wrong")

# %%
# ``label_distributions_`` has probabilities. So we know where to expect the errors. Here is the
# share of errors among the pictures, from the most doubtful tenth to the surest.
doubt = 1 - clf.label_distributions_.max(axis=1)
order = np.argsort(-doubt)
for tenth, rows in enumerate(np.array_split(order, 10)):
    print(f"tenth {tenth + 1}: {wrong[rows].mean():.0%} wrong")

# %%
# A map of the pictures. Left: the most probable digit. Right: the doubt, in bits.
figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
plot_few_labels(clf, axes=axes, title="digit")

# %%
# The twelve most doubtful pictures, with the digit that was found.
figure, panels = plt.subplots(2, 6, figsize=(9, 3.6), layout="constrained")
for ax, row in zip(panels.flat, order, strict=False):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{clf.transduction_[row]}? truth {truth[row]}", fontsize="small")
    ax.set_axis_off()
plt.show()

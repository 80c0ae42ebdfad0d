"""
Reasons: which rows speak for a class
=====================================

A class score is a plain sum over training rows. So the reasons of a prediction are exact: the rows
that add most, and how much they add.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from coxfield import LGCPClassifier

X, y = load_digits(return_X_y=True)
clf = LGCPClassifier().fit(X[:1500], y[:1500])
new = X[1500:]

# %%
# Take the new picture with the smallest difference between the two best classes.
scores = clf.class_scores(new)
best = np.sort(scores, axis=1)
row = int(np.argmin(best[:, -1] - best[:, -2]))
reasons = clf.contributions(new[[row]], top=4)
two = np.argsort(-scores[row])[:2]
probabilities = clf.predict_proba(new[[row]])[0]

# %%
# The rows that speak loudest for each of the two classes. The number is what a row adds to the
# score of its class.
figure, panels = plt.subplots(2, 5, figsize=(9, 4.2), layout="constrained")
for (first, *others), digit in zip(panels, two, strict=True):
    first.imshow(new[row].reshape(8, 8), cmap="gray_r")
    first.set_title(f"a {digit} with {probabilities[digit]:.0%}?", fontsize="medium")
    for ax, witness, share in zip(others, reasons.rows[0, digit], reasons.shares[0, digit], strict=True):
        ax.imshow(X[witness].reshape(8, 8), cmap="gray_r")
        ax.set_title(f"row {witness}: {share:.2f}", fontsize="small")
for ax in panels.flat:
    ax.set_axis_off()

# %%
# Nothing is left out: shares, the rest, and nothing else, add up to the score.
print(np.allclose(reasons.shares.sum(axis=2) + reasons.rest, scores[[row]]))
plt.show()

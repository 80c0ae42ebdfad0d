"""
Doubtful labels, with the pictures
==================================

Labels are made by people, and some are wrong. :meth:`coxfield.LGCPClassifier.label_quality`
predicts each label from all the others and ranks them. No model is fitted twice.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from coxfield import LGCPClassifier
from coxfield.plotting import plot_label_quality

X, truth = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
changed = rng.choice(len(X), 50, replace=False)
y = truth.copy()
y[changed] = (truth[changed] + rng.integers(1, 10, size=50)) % 10

# %%
# Fifty of 1,797 labels are wrong now. How many of them are among the fifty most doubtful ones?
clf = LGCPClassifier().fit(X, y)
quality = clf.label_quality()
first = np.argsort(quality["rank"])[:50]
print(f"{np.isin(first, changed).sum()} of the 50 most doubtful labels were changed")
print(f"{np.sum(quality['suggested'][changed] == truth[changed])} of the 50 suggestions are the true digit")

# %%
# The first twelve.
figure, ax = plt.subplots(figsize=(7, 6), layout="constrained")
plot_label_quality(clf, 12, ax=ax)

# %%
# How many to check? Go down the list until hardly any label is wrong. The curve is steep, and then
# flat.
checked = np.arange(1, 201)
order = np.argsort(quality["rank"])[:200]
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(checked, np.isin(order, changed).cumsum())
ax.set(xlabel="labels checked", ylabel="wrong labels found", ylim=(0, 52))
ax.axhline(50, color="0.6", linewidth=1)
plt.show()

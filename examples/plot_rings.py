"""
Rings: all labels, and few labels
=================================

Two classes lie on rings. No straight line separates them. With all labels,
:class:`coxfield.LGCPClassifier` draws a round border. With ten labels,
:class:`coxfield.SLGCPClassifier` follows the rings.
"""

import matplotlib.pyplot as plt
import numpy as np

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.datasets import make_circles
from coxfield.plotting import plot_few_labels, plot_points, plot_probability

X, truth = make_circles(2, random_state=0)
supervised = LGCPClassifier().fit(X, truth)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
plot_points(X, truth, left).set_title("the data")
plot_probability(supervised, X, right).set_title("probability, from all labels")

# %%
# Now keep every thirtieth label. -1 stands for unknown.
y = np.where(np.arange(len(X)) % 30 == 0, truth, -1)
semi = SLGCPClassifier().fit(X, y)
print(f"{np.sum(y >= 0)} labels given, {np.sum(semi.transduction_ != truth)} of {len(X)} labels wrong")

# %%
# Left: the labels found; large symbols are the given ones. Right: the doubt that is left.
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plot_few_labels(semi, axes=axes)
plt.show()

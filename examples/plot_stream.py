"""
A stream: rows that come and go
===============================

The classes move. A classifier that keeps all rows believes the past too long. One that forgets old
rows follows. ``partial_fit`` and ``forget`` cost what the new and the old rows cost. ``reselect``
chooses the covariance again; here that is done now and then.
"""

import matplotlib.pyplot as plt
import numpy as np

from coxfield import LGCPClassifier

rng = np.random.default_rng(0)
BATCHES, ROWS, KEPT = 40, 50, 200


def batch(turn):
    """Two clouds on opposite sides of a circle, at an angle that grows with time."""
    y = rng.integers(2, size=ROWS)
    angle = turn * np.pi / 30 + np.pi * y
    return np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.5 * rng.normal(size=(ROWS, 2)), y


X, y = batch(0)
keeps, forgets = (LGCPClassifier().fit(X, y) for _ in range(2))

# %%
# Each batch is first predicted and then learned.
wrong = {"keeps all rows": [], f"keeps {KEPT} rows": []}
for turn in range(1, BATCHES):
    X, y = batch(turn)
    for clf, errors in zip((keeps, forgets), wrong.values(), strict=True):
        errors.append(np.mean(clf.predict(X) != y))
        clf.partial_fit(X, y)
    if turn % 4 == 3:
        forgets.reselect()
    forgets.forget(np.arange(max(0, len(forgets.y_fit_) - KEPT)))
print(f"{len(keeps.y_fit_)} rows and {len(forgets.y_fit_)} rows at the end")

# %%
# Means over five batches.
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, errors in wrong.items():
    ax.plot(np.arange(5, BATCHES), np.convolve(errors, np.ones(5) / 5, "valid"), label=name)
ax.set(xlabel="batch", ylabel="share of wrong predictions", ylim=(0, None))
ax.legend(frameon=False)
plt.show()

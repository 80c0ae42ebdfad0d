"""
Which labels to ask for
=======================

If each label costs work, ask for those that teach most. :meth:`coxfield.SLGCPClassifier.suggest`
names them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from coxfield import SLGCPClassifier

X, truth = load_digits(return_X_y=True)
X, truth = X[:800], truth[:800]
start = np.array([np.flatnonzero(truth == digit)[0] for digit in range(10)])


def curve(ask, rounds=5, at_once=5):
    """Share of wrong labels against the number of labels, if `ask` chooses them."""
    y = np.full(len(X), -1)
    y[start] = truth[start]
    shares = []
    for _ in range(rounds):
        clf = SLGCPClassifier(random_state=0).fit(X, y)
        shares.append(np.mean(clf.transduction_ != truth))
        rows = ask(clf, y, at_once)
        y[rows] = truth[rows]
    return shares


# %%
# Three rules: at random, the smallest probability, and ``suggest``. The smallest probability may ask five
# times about one digit, or about pictures that are like no others. ``suggest`` spreads its questions.
rng = np.random.default_rng(0)
rules = {
    "at random": lambda clf, y, n: rng.choice(np.flatnonzero(y < 0), n, replace=False),
    "least sure": lambda clf, y, n: np.argsort(clf.label_distributions_.max(axis=1))[:n],
    "suggest": lambda clf, y, n: clf.suggest(n),
}
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, rule in rules.items():
    shares = curve(rule)
    ax.plot(10 + 5 * np.arange(len(shares)), 100 * np.array(shares), "o-", label=name)
ax.set(xlabel="labels", ylabel="wrong labels, %", ylim=(0, None), xticks=range(10, 35, 5))
ax.legend(frameon=False)
plt.show()

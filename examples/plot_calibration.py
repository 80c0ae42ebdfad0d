"""
Are the probabilities right?
============================

A classifier that says 0.8 should be right in 80 % of such cases. A reliability diagram shows
whether it is.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from coxfield import LGCPClassifier
from coxfield.calibration import reliability
from coxfield.datasets import load_banana
from coxfield.plotting import plot_reliability

X, y = load_banana(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)
classifiers = {
    "LGCPClassifier()": LGCPClassifier(),
    "the paper's rule": LGCPClassifier(selection="loo_error"),
    "random forest": RandomForestClassifier(random_state=0),
    "15 neighbours": KNeighborsClassifier(15),
}

# %%
# Fit with 400 points and judge with 4,900.
found = {}
for name, clf in classifiers.items():
    found[name] = reliability(y_test, clf.fit(X_train, y_train).predict_proba(X_test), clf.classes_)
    print(f"{name:18} error {found[name].error:.3f}, calibration error {found[name].expected_calibration_error:.3f}")

# %%
# On the diagonal probabilities are right. Below it a classifier is too sure, above it not sure
# enough.
figure, ax = plt.subplots(figsize=(6, 6), layout="constrained")
plot_reliability(found, ax)
plt.show()

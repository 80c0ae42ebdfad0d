"""
Pipelines and searches of scikit-learn
======================================

The classifiers are estimators of scikit-learn. They work in pipelines, cross validation and grid
searches, with data frames, and beside other classifiers in a vote.
"""

import matplotlib.pyplot as plt
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from coxfield import LGCPClassifier

X, y = load_wine(return_X_y=True)

# %%
# Cross validation beside others. ``LGCPClassifier()`` needs no scaling.
forest, linear = RandomForestClassifier(random_state=0), make_pipeline(StandardScaler(), LogisticRegression())
rivals = {"LGCP": LGCPClassifier(), "random forest": forest, "logistic regression": linear}
rivals["vote of all three"] = VotingClassifier(list(rivals.items()), voting="soft")
losses = {name: -cross_val_score(clf, X, y, cv=5, scoring="neg_log_loss") for name, clf in rivals.items()}
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.boxplot(losses.values(), tick_labels=losses.keys())
ax.set(ylabel="log loss in five folds, nats", ylim=(0, None))

# %%
# A pipeline with a choice of columns, and a search over the way to choose the covariance.
columns = make_column_transformer((FunctionTransformer(), slice(0, 7)))
search = GridSearchCV(
    make_pipeline(columns, LGCPClassifier()),
    {"lgcpclassifier__selection": ["mixture", "loo_error", "pseudo_likelihood"]},
    scoring="neg_log_loss",
)
search.fit(X, y)
tried, scores = (search.cv_results_[name] for name in ("params", "mean_test_score"))
for way, score in zip(tried, scores, strict=True):
    print(f"{way['lgcpclassifier__selection']:18} log loss {-score:.3f}")

# %%
# Where the seven columns are not enough.
figure, ax = plt.subplots(figsize=(4.4, 4), layout="constrained")
ConfusionMatrixDisplay.from_predictions(y, cross_val_predict(search.best_estimator_, X, y), ax=ax, colorbar=False)
plt.show()

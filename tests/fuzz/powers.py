"""What must hold for live data, reasons, doubtful labels and guaranteed sets of every `LGCPClassifier`."""

import copy

import numpy as np

from fuzz.faults import BrokenError, check_labels, check_numbers, check_probabilities

COVERAGE = 0.8


def check_label_quality(estimator):
    """Probabilities, labels, and every rank once."""
    quality = estimator.label_quality()
    for name in ("probability", "suggested_probability"):
        if not ((quality[name] >= 0) & (quality[name] <= 1 + 1e-6)).all():
            raise BrokenError(f"label_quality has a {name} outside of 0 to 1")
    for name in ("label", "suggested"):
        check_labels(estimator, quality[name], f"label_quality {name}")
    if not np.array_equal(np.sort(quality["rank"]), np.arange(len(estimator.y_fit_))):
        raise BrokenError("label_quality has ranks that are no order")


def check_reasons(estimator, X):
    """Shares and the rest add up to the scores, and every row is a training row of its class."""
    reasons, scores = estimator.contributions(X, top=3), estimator.class_scores(X)
    check_numbers(reasons.shares, "contributions shares")
    total = reasons.shares.sum(axis=2) + reasons.rest
    limits = np.finfo(scores.dtype)
    finite = np.abs(scores) < limits.max / 10  # larger ones do not fit into single precision
    size = np.abs(scores) + np.abs(reasons.shares).sum(axis=2) + np.abs(reasons.rest)
    size = np.broadcast_to(size.max(axis=1, keepdims=True), size.shape)  # sums are relative to the largest of a row
    tolerance = 1e-3 if scores.dtype == np.float32 else 1e-9  # of single precision, another order of the sums
    if (np.abs(total - scores)[finite] > tolerance * size[finite] + limits.tiny).any():
        raise BrokenError("contributions do not add up to class_scores")
    query, number, rank = np.nonzero(reasons.rows >= 0)
    if not (estimator.y_fit_[reasons.rows[query, number, rank]] == number).all():
        raise BrokenError("contributions names rows of another class")


def check_sets(estimator, X):
    """P-values are shares, and the sets are those of their p-values."""
    for per_class in (False, True):
        p = estimator.set_p_values(X, per_class=per_class)
        if not ((p > 0) & (p <= 1)).all():
            raise BrokenError("set_p_values has a value outside of 0 to 1")
        sets = estimator.predict_set(X, COVERAGE, per_class=per_class)
        clear = np.abs(p - (1 - COVERAGE)) > 1e-9
        if not np.array_equal(sets[clear], (p > 1 - COVERAGE)[clear]):
            raise BrokenError("predict_set and set_p_values contradict each other")


def check_live_data(estimator):
    """A row leaves and comes back."""
    new = copy.deepcopy(estimator)
    row, label = estimator.X_fit_[:1].copy(), estimator.classes_[estimator.y_fit_[:1]]
    before = estimator.predict_proba(row)
    new.forget([0])
    check_probabilities(new.predict_proba(row), "predict_proba after forget")
    check_label_quality(new)
    new.partial_fit(row, label, classes=label)
    check_probabilities(new.predict_proba(row), "predict_proba after partial_fit")
    check_probabilities(new.loo_predict_proba(), "loo_predict_proba after partial_fit")
    if not np.array_equal(estimator.predict_proba(row), before):
        raise BrokenError("a copy that forgets has changed the original")

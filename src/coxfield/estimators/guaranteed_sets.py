"""Sets of classes with a guarantee: full conformal prediction in closed form."""

from __future__ import annotations


class GuaranteedSets:
    """`predict_set` of `LGCPClassifier`."""

"""How far the labels of training points can be trusted, by closed-form leave-one-out."""

from __future__ import annotations


class LabelQuality:
    """`label_quality` of `LGCPClassifier`."""

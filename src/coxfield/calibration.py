"""Are predicted probabilities right? Reliability and log loss, before and after learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import log_loss

from coxfield import LGCPClassifier

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["Comparison", "Reliability", "compare", "reliability"]


@dataclass(frozen=True)
class Reliability:
    """How often the most probable class was right, compared with its predicted probability.

    That probability is called the confidence. The arrays have one entry per bin of the confidence; NaN for empty bins.
    """

    edges: NDArray
    """Edges of the bins, from 1 / number of classes to 1."""
    confidence: NDArray
    """Mean probability of the most probable class."""
    accuracy: NDArray
    """Share of points whose most probable class was right."""
    standard_error: NDArray
    """Standard error of the accuracy if the probabilities are right."""
    counts: NDArray
    """Number of points per bin."""
    log_loss: float
    """Mean negative log probability of the true class, in nats."""
    error: float
    """Share of wrong decisions."""

    @property
    def expected_calibration_error(self) -> float:
        """Mean over points of the distance between accuracy and confidence of their bin."""
        full = self.counts > 0
        return float(np.average(np.abs(self.accuracy - self.confidence)[full], weights=self.counts[full]))


def reliability(y, probabilities, classes=None, n_bins: int = 10) -> Reliability:
    """Compare predicted probabilities with true classes.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true classes.
    probabilities : array-like of shape (n, n_classes)
        Predicted probabilities, such as `predict_proba` of points that were not in the training set.
    classes : array-like of shape (n_classes,), default=None
        The class of each column, such as `classes_`; None for the sorted classes of y.
    n_bins : int, default=10

    Returns
    -------
    Reliability

    Examples
    --------
    >>> import numpy as np
    >>> from coxfield.calibration import reliability
    >>> sure = np.array([[0.9, 0.1]] * 10)
    >>> found = reliability([0] * 6 + [1] * 4, sure, n_bins=5)  # predicts 0.9, and is right in 6 of 10 cases
    >>> found.counts.tolist(), found.accuracy[-1].item(), round(found.expected_calibration_error, 3)
    ([0, 0, 0, 0, 10], 0.6, 0.3)
    """
    y, probabilities = np.asarray(y), np.asarray(probabilities, dtype=float)
    classes = np.unique(y) if classes is None else np.asarray(classes)
    if probabilities.shape != (len(y), len(classes)):
        raise ValueError(
            f"probabilities have shape {probabilities.shape}, but there are {len(y)} labels and {len(classes)} classes:"
            " give one row per label, one column per class, and `classes` if y does not hold all of them"
        )
    right, confidence = classes[probabilities.argmax(axis=1)] == y, probabilities.max(axis=1)
    edges = np.linspace(1 / len(classes), 1, n_bins + 1)
    bins = np.clip(np.searchsorted(edges, confidence, side="right") - 1, 0, n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        mean, accuracy = (np.bincount(bins, of, n_bins) / counts for of in (confidence, right))
        spread = np.sqrt(np.bincount(bins, confidence * (1 - confidence), n_bins)) / counts
    loss = log_loss(y, probabilities, labels=classes)
    return Reliability(edges, mean, accuracy, spread, counts, float(loss), float(1 - right.mean()))


@dataclass(frozen=True)
class Comparison:
    """The reliability of the default classifier and of the classifier with learned parameters."""

    before: Reliability
    after: Reliability

    def __str__(self) -> str:
        """One line per classifier."""
        return "\n".join(
            f"{name} learning: log loss {of.log_loss:.3f}, error {of.error:.3f}, "
            f"calibration error {of.expected_calibration_error:.3f}"
            for name, of in (("before", self.before), ("after", self.after))
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw both reliability diagrams into the same axes; see `coxfield.plotting.plot_reliability`."""
        from coxfield.plotting import plot_reliability

        return plot_reliability({"before learning": self.before, "after learning": self.after}, ax)


def compare(X_train, y_train, X_test, y_test, *, kernel=None, n_bins: int = 10) -> Comparison:
    """Reliability and log loss on test points before and after learning the parameters.

    Before: `LGCPClassifier` with `selection="loo_error"`; after: with `selection="pseudo_likelihood"`.

    Parameters
    ----------
    X_train, y_train : training points and their classes
    X_test, y_test : test points and their classes
    kernel : as for `LGCPClassifier`
    n_bins : int, default=10

    Returns
    -------
    Comparison
        Its `plot` draws the reliability diagrams.

    Examples
    --------
    >>> from coxfield.calibration import compare
    >>> from coxfield.datasets import load_synth
    >>> found = compare(*load_synth(return_X_y=True))
    >>> bool(found.after.log_loss < found.before.log_loss)
    True
    """
    found = []
    for selection in ("loo_error", "pseudo_likelihood"):
        classifier = LGCPClassifier(kernel, selection=selection).fit(X_train, y_train)
        found.append(reliability(y_test, classifier.predict_proba(X_test), classifier.classes_, n_bins))
    return Comparison(*found)

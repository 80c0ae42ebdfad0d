"""`SVMClassifier`: the support vector machine of the paper, with its length scale by leave-one-out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from joblib import Parallel, delayed
from scipy.spatial.distance import pdist, squareform
from sklearn.svm import SVC

from coxfield.baselines.base import Baseline, candidates, check_length_scale, in_unit, log_kernel, unit_of
from coxfield.progress import progress
from coxfield.selection.loo import SelectionPath

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

CAUTION = 0.01  # margin in every inequality below, because the solver meets its conditions only to 0.001
LENGTHS = (1e-120, 1e6)  # length scales, in units of the points, between which the machine converges
VANISHED = 1e-100  # smaller kernel values count as 0


def default_C(X, length_scale: float) -> float:  # noqa: N802
    r"""The default C of SVM-light: one over the square of the mean length of the points.

    The length of a point is its distance, in the space of the kernel, from the image of the origin, so

    .. math:: C^{-1/2} = \frac1n \sum_i \sqrt{2 - 2 e^{-|x_i|^2 / 2 l^2}}.

    It is 1/2 if the length scale is much shorter than the distances of the points from the origin, and grows like l^2
    if it is much longer. Unlike the kernel, it depends on the origin of X.

    Examples
    --------
    >>> import numpy as np
    >>> print(f"{default_C(np.array([[3.0, 4.0]]), 0.1):.3f}, {default_C(np.array([[3.0, 4.0]]), 100.0):.0f}")
    0.500, 400
    """
    lengths = np.sqrt(-2 * np.expm1(log_kernel(np.einsum("ij,ij->i", X, X), length_scale)))
    return float(np.maximum(lengths.mean(), np.finfo(float).tiny ** 0.25) ** -2)


def _kernel_matrix(d2: NDArray, length_scale: float) -> NDArray:
    """The squared exponential, without subnormal numbers, which make the solver ten times slower."""
    K = np.exp(log_kernel(d2, length_scale))
    K[K < VANISHED] = 0
    return K


def loo_error(K: NDArray, codes: NDArray, C: float, done: Callable[[float], None] | None = None) -> float:
    """Exact leave-one-out 0-1 loss of a support vector machine with kernel matrix K, with few refits.

    Leaving out a point that is not a support vector changes nothing. For two classes, two more cases are clear. A point
    on the wrong side stays on the wrong side if it is left out. A point with slack s, weight a and 2 a + s < 1 stays on
    the right side (Joachims 2000, for kernel values within [0, 1]). Only for the other points is the machine refitted.
    `done` is called with shares of the work, which add up to 1.
    """
    machine = SVC(C=C, kernel="precomputed").fit(K, codes)
    if len(machine.classes_) > 2:
        doubtful, wrong = machine.support_, 0
    else:
        doubtful, wrong = _doubtful(machine, K, codes)
    tell, share = done or (lambda share: None), 1 / (1 + len(doubtful))
    tell(share)
    for row in doubtful:
        wrong += _fails_without(K, codes, C, row)
        tell(share)
    return wrong / len(codes)


def _doubtful(machine: SVC, K: NDArray, codes: NDArray) -> tuple[NDArray, int]:
    """Support vectors whose leave-one-out decision is unknown, and the number of points that are surely wrong."""
    margins = machine.decision_function(K) * np.where(codes == machine.classes_[1], 1, -1)
    support = machine.support_
    weights = np.abs(machine.dual_coef_[0])
    wrong = margins[support] < -CAUTION
    right = 2 * weights + np.maximum(1 - margins[support], 0) < 1 - CAUTION
    return support[~wrong & ~right], int(wrong.sum())


def _fails_without(K: NDArray, codes: NDArray, C: float, row: int) -> bool:
    """Whether the machine trained without one point misclassifies that point."""
    others = np.delete(np.arange(len(codes)), row)
    if len(np.unique(codes[others])) < 2:
        return True
    machine = SVC(C=C, kernel="precomputed").fit(K[np.ix_(others, others)], codes[others])
    return bool(machine.predict(K[row : row + 1, others])[0] != codes[row])


class SVMClassifier(Baseline):
    r"""Support vector machine with a squared exponential kernel, set up as in the paper's comparison.

    It is `sklearn.svm.SVC` with gamma = 1 / 2 l^2, the default C of SVM-light, and l chosen by leave-one-out.

    Parameters
    ----------
    length_scale : float, default=None
        Length scale l of the kernel exp(-\|x - x'\|^2 / 2 l^2). None chooses it by the exact leave-one-out 0-1 loss.
        Among equals the longest wins: it gives the smoothest machine, with the fewest support vectors.
    C : float, default=None
        Penalty of the slack. None for the default of SVM-light; see `default_C`.
    length_scales : array-like, default=None
        Length scales tried. None for the 24 that `LGCPClassifier` tries.
    n_jobs : int, default=None
        Threads that share the length scales; None for one, -1 for all processors.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    length_scale_, C_ : float
        The parameters in use.
    machine_ : SVC
        The fitted machine.
    selection_path_ : dict of arrays
        What was tried: "length_scale", "C", "loo_error" and "chosen". Absent if `length_scale` was given.

    Examples
    --------
    >>> from coxfield.baselines import SVMClassifier
    >>> from coxfield.datasets import load_synth
    >>> synth = load_synth()
    >>> clf = SVMClassifier(length_scale=0.3).fit(synth.X_train, synth.y_train)
    >>> bool(clf.score(synth.X_test, synth.y_test) > 0.9)
    True
    """

    def __init__(
        self,
        length_scale: float | None = None,
        C: float | None = None,
        *,
        length_scales: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.length_scale = length_scale
        self.C = C
        self.length_scales = length_scales
        self.n_jobs = n_jobs

    def fit(self, X, y) -> Self:
        """Choose the length scale if it is not given, and train the machine.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        X, codes = self._labelled_points(X, y)
        if self.C is not None and not 0 < self.C < np.inf:
            raise ValueError(f"C must be a positive finite number, or None for SVM-light's default; got {self.C!r}")
        self._unit = unit_of(X)
        self.length_scale_ = (
            self._select(X, codes) if self.length_scale is None else check_length_scale(self.length_scale)
        )
        X, scale = in_unit(X, self._unit), np.clip(self.length_scale_ / self._unit, *LENGTHS)
        self.C_ = self._penalty(X, scale)
        self.machine_ = SVC(C=self.C_, kernel="rbf", gamma=scale**-2 / 2).fit(X, self.classes_[codes])
        return self

    def _penalty(self, X, length_scale: float) -> float:
        return default_C(X, length_scale) if self.C is None else float(self.C)

    def _select(self, X, codes) -> float:
        """The longest length scale among those of least leave-one-out error."""
        length_scales, X = candidates(X, self.length_scales) / self._unit, in_unit(X, self._unit)
        penalties = np.array([self._penalty(X, length_scale) for length_scale in length_scales])
        d2 = squareform(pdist(X, "sqeuclidean"))
        title, faster = f"leave-one-out, {len(length_scales)} length scales", "fewer length_scales take less time"
        with progress(title, len(length_scales), None, faster) as done:
            errors = Parallel(self.n_jobs, prefer="threads")(
                delayed(loo_error)(_kernel_matrix(d2, length_scale), codes, C, done)
                for length_scale, C in zip(length_scales, penalties, strict=True)
            )
        tried = {"factor": length_scales, "C": penalties, "loo_error": np.array(errors)}
        path = SelectionPath(tried, ("loo_error",))
        self.selection_path_ = path.table(self._unit)
        return path.chosen("factor") * self._unit

    def decision_function(self, X) -> NDArray:
        """Signed distance from the decision surface for two classes; for more, votes of the pairwise machines.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        X = in_unit(self._queries(X), self._unit)
        return self.machine_.decision_function(X)

    def _decisions(self, X) -> NDArray:
        X = in_unit(self._queries(X), self._unit)
        return self.machine_.predict(X)[:, None] == self.classes_  # the votes of the machine, with its rule for ties

"""`Member`: a kernel on a representation of the points, for the bank of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# With 0, dense regions decide everything. With 1 and no floor, the classifier is too certain far from the data.
ALPHAS = (0.5, 0.75, (0.75, 3.0), (1.0, 3.0))


@dataclass(frozen=True)
class Member:
    """A kernel on a representation of the points.

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, optional
        Never negative. None for squared exponentials at all useful length scales.
    transform : str or transformer of scikit-learn, default="raw"
        The representation: "raw" (the features as they are), "standardised", "whitened" (by their covariance within
        classes, `coxfield.kernels.whitening.Whitening`), "principal" (40 principal directions), "compressed" (heavy
        tails are compressed, `coxfield.kernels.compression.Compression`), "principal, whitened", "compressed,
        whitened", or a transformer, which is fitted to the training points and their labels.
    alphas : tuple of float or of pairs (float, float), default=(0.5, 0.75, (0.75, 3), (1, 3))
        Powers of the density by which the kernel may be divided; 0 for the kernel itself. A pair is a power and a floor
        that is added to the density, in points: with a floor, a few points that are far from all others say little.
        The mixture chooses among them.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> bank = [Member(RBF(1.0)), Member(transform="whitened"), Member(RBF(2.0), PCA(2), alphas=(0.5,))]
    """

    kernel: Any = None
    transform: Any = "raw"
    alphas: tuple[Any, ...] = ALPHAS

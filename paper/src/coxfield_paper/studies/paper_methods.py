"""The paper's semi-supervised classifier, in one place: the default of `SLGCPClassifier` is another method."""

from __future__ import annotations

from sklearn.gaussian_process.kernels import RBF

from coxfield import SLGCPClassifier

WIDE = (1e-300, 1e300)  # bounds that leave out no length scale, whatever the units of the points are


def paper_slgcp(kernel=None, *, inference: str = "map", **how) -> SLGCPClassifier:
    """SLGCP as in the paper: one squared exponential covariance, and the most probable labelling of its label field.

    Parameters
    ----------
    kernel : kernel, default=None
        None for a squared exponential whose length scale is chosen by cross validation.
    inference : {"map", "marginals", "perturb_and_map"}, default="map"
        Never the default of `SLGCPClassifier`. The paper has "map"; the others use the same label field.
    **how
        Other parameters of `SLGCPClassifier`.

    Examples
    --------
    >>> classifier = paper_slgcp(length_scales=[0.5, 1.0])
    >>> classifier.kernel, classifier.inference
    (RBF(length_scale=1), 'map')
    """
    return SLGCPClassifier(RBF(1.0, WIDE) if kernel is None else kernel, inference=inference, **how)

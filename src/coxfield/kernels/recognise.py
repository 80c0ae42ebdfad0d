"""From a kernel to a covariance: the fast path if the kernel allows it, otherwise calls of the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coxfield.kernels.called import Called
from coxfield.kernels.radial import Radial
from coxfield.kernels.sklearn_tree import check_hyperparameters, check_kernel, check_variance

if TYPE_CHECKING:
    from coxfield.kernels.protocol import Covariance


def recognise(kernel, n_features: int) -> Covariance:
    """The covariance of a kernel for data with `n_features` columns; anything else is refused.

    Products of constants with one `RBF`, `Matern` or `RationalQuadratic` become `Radial`. Other kernels of scikit-learn
    become `Called`. An object that can be bound to points is already a `Covariance` and is returned unchanged.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, DotProduct
    >>> type(recognise(2.0 * RBF(1.0), 3)).__name__, type(recognise(DotProduct(), 3)).__name__
    ('Radial', 'Called')
    """
    if hasattr(kernel, "bind"):
        return kernel
    check_kernel(kernel)
    check_hyperparameters(kernel, n_features)
    radial = Radial.of(kernel)
    if radial is not None:
        check_variance(radial.variance, kernel)
    return radial or Called(kernel)

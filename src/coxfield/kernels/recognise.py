"""From a kernel to a covariance: the fast path where the kernel allows it, a call where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coxfield.kernels.called import Called
from coxfield.kernels.radial import Radial
from coxfield.kernels.sklearn_tree import check_hyperparameters, check_kernel

if TYPE_CHECKING:
    from coxfield.kernels.protocol import Covariance


def recognise(kernel, n_features: int) -> Covariance:
    """The covariance of a kernel for data with `n_features` columns, or a refusal in one sentence.

    Products of constants with one `RBF`, `Matern` or `RationalQuadratic` become `Radial`, other kernels of
    scikit-learn `Called`. What can be bound to points is a `Covariance` already, and stays as it is.

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
    return Radial.of(kernel) or Called(kernel)

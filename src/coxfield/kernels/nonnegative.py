"""Covariances that are never negative. Theorem 2, and so every minimum cut, needs them."""

from __future__ import annotations

from sklearn.gaussian_process import kernels

NONNEGATIVE = (
    kernels.RBF,
    kernels.Matern,
    kernels.RationalQuadratic,
    kernels.ExpSineSquared,
    kernels.ConstantKernel,
    kernels.WhiteKernel,
)


def check_nonnegative(kernel: kernels.Kernel) -> None:
    """Refuse a kernel that may take a negative value: Theorem 2 needs covariances that are never negative.

    The structure of the kernel decides: sums, products and powers of kernels that are never negative are never
    negative. Only exact types count, because a subclass may compute anything.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, DotProduct
    >>> check_nonnegative(2.0 * RBF(1.0) ** 2)
    >>> check_nonnegative(RBF(1.0) + DotProduct())
    Traceback (most recent call last):
        ...
    ValueError: DotProduct(sigma_0=1) may take negative values, ...
    """
    if type(kernel) in (kernels.Sum, kernels.Product):
        check_nonnegative(kernel.k1)
        check_nonnegative(kernel.k2)
    elif type(kernel) is kernels.Exponentiation:
        check_nonnegative(kernel.kernel)
    elif type(kernel) not in NONNEGATIVE:
        raise ValueError(
            f"{kernel!r} may take negative values, but the label field needs covariances that are never negative: "
            "otherwise the most probable labelling is not a minimum cut (Theorem 2). Use RBF, Matern, "
            "RationalQuadratic, ExpSineSquared, ConstantKernel or WhiteKernel, or sums, products and powers of them."
        )

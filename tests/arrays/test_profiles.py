"""Profiles in array libraries against those in NumPy."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, RationalQuadratic

from coxfield.arrays.library import to_numpy
from coxfield.arrays.points import check_covariance, log_profile
from coxfield.kernels.recognise import recognise
from tolerances import assert_close

KERNELS = [
    RBF(1.0),
    Matern(1.0, nu=0.5),
    Matern(1.0, nu=1.5),
    Matern(1.0, nu=2.5),
    Matern(1.0, nu=np.inf),
    RationalQuadratic(1.0, alpha=0.3),
    RationalQuadratic(1.0, alpha=1e-300),
    RationalQuadratic(1.0, alpha=1e300),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_logarithms_are_those_of_numpy(kernel, dtype, given, library):
    covariance = recognise(kernel, 2)
    check_covariance(covariance, library)
    d2 = np.concatenate([[0.0], np.logspace(-6, 25, 40)]).astype(dtype)
    with np.errstate(over="ignore"):
        found = to_numpy(log_profile(covariance.profile, given(d2), library))
    assert found.dtype == dtype
    # log1p(t) - t is a difference of terms that are no larger than t = sqrt(2 nu d2)
    scale = np.sqrt(5 * d2.astype(float)) + d2.astype(float) if isinstance(kernel, Matern) else None
    assert_close(found, covariance.profile.log_of(d2.copy()), scale=scale)


def test_other_kernels_are_refused(library):
    with pytest.raises(TypeError, match=rf"DotProduct.* NumPy arrays only, but the points are {library.name} arrays"):
        check_covariance(recognise(DotProduct(), 2), library)
    with pytest.raises(ValueError, match=r"Matern with nu=0.7 .* give nu of 0.5, 1.5, 2.5 or inf, or convert"):
        check_covariance(recognise(Matern(1.0, nu=0.7), 2), library)

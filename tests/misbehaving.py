"""A kernel of a user with a mistake."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Hyperparameter, Kernel, StationaryKernelMixin

#: What spoils the values of a call, by name.
VALUES = {
    "nan": lambda K: np.where(K.min() == K, np.nan, K),
    "inf": lambda K: np.where(K.min() == K, np.inf, K),
    "huge": lambda K: 1e300 * K,
    "wide": lambda K: np.hstack([K, K[:, :1]]),
    "flat": np.ravel,
    "scalar": lambda K: 1.0,
    "none": lambda K: None,
    "ragged": lambda K: [[1.0], [1.0, 2.0]],
    "text": lambda K: K.astype(str),
    "object": lambda K: K.astype(object),
    "complex": lambda K: K + 1j,
    "negative": np.negative,
}
#: What spoils the diagonal.
DIAGONALS = {
    "diag nan": lambda d: d * np.nan,
    "diag shape": lambda d: d[:, None],
    "diag negative": np.negative,
    "diag differs": lambda d: 2 * d,
}
#: What spoils the gradient.
GRADIENTS = {
    "gradient nan": lambda K, G: (K, G * np.nan),
    "gradient shape": lambda K, G: (K, G[:, :, 0]),
    "gradient missing": lambda K, G: K,
}


class FaultError(Exception):
    """An exception of a user's own."""


class Spoiled(StationaryKernelMixin, Kernel):
    """A squared exponential with a fault; without one it is right."""

    def __init__(self, fault="", length_scale=1.0):
        self.fault = fault
        self.length_scale = length_scale

    @property
    def hyperparameter_length_scale(self):
        return Hyperparameter("length_scale", "numeric", (1e-5, 1e5))

    def __call__(self, X, Y=None, eval_gradient=False):
        if self.fault == "raises":
            raise FaultError("mine")
        values, gradient = RBF(self.length_scale)(X, eval_gradient=True) if Y is None else (self._plain(X, Y), None)
        if self.fault == "writes":
            X[:] = 0
        values = VALUES.get(self.fault, lambda K: K)(values)
        if not eval_gradient:
            return values
        return GRADIENTS.get(self.fault, lambda K, G: (K, G))(values, gradient)

    def _plain(self, X, Y):
        return RBF(self.length_scale)(X, Y)

    def diag(self, X):
        if self.fault == "diag raises":
            raise FaultError("mine")
        return DIAGONALS.get(self.fault, lambda d: d)(np.ones(len(X)))

"""Kernels as Python source: those of scikit-learn in all combinations, and kernels that misbehave."""

import numpy as np
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Kernel

from fuzz.chance import happens, mostly

NUMBERS = ["1.0", "0.5", "2.0", "0.1", "10.0"]
BOUNDS = ["", "", ", 'fixed'", ", (1e-300, 1e300)", ", (0.5, 2.0)"]
ORDERS = ["0.5", "1.5", "2.5", "0.7", "inf", "3.5"]
OTHERS = [
    "DotProduct(1.0)",
    "DotProduct(0.0)",
    "ExpSineSquared(1.0, 2.0)",
    "WhiteKernel(0.1)",
    "ConstantKernel(2.0)",
    "PairwiseKernel(metric='laplacian')",
    "CompoundKernel([RBF(1.0), RBF(2.0)])",
]
POWERS = ["2", "3", "0.5", "1", "0", "-1", "-2", "1e300"]


class KernelFaultError(RuntimeError):
    """What a misbehaving kernel raises. It must reach the user as it is."""


class Misbehaving(Kernel):
    """A kernel of a user, with a mistake."""

    FAULTS = (
        *("nan", "one_nan", "inf", "negative_inf", "negative", "asymmetric"),
        *("flat", "wide", "scalar", "none", "text", "complex", "integer", "float32", "list"),
        *("raises", "raises_later", "nan_later", "diag_nan", "diag_shape", "diag_raises", "writes", "huge"),
    )

    def __init__(self, fault="nan"):
        self.fault = fault

    def __call__(self, X, Y=None, eval_gradient=False):
        """Values of a squared exponential, spoiled."""
        if self.fault == "raises" or (self.fault == "raises_later" and Y is not None and len(X) != len(Y)):
            raise KernelFaultError("the kernel of the user has failed")
        if self.fault == "writes":
            X[:] = 0.0
        with np.errstate(all="ignore"):
            values = np.nan_to_num(RBF(1.0)(X, Y))
        values = _spoiled(values, self.fault, square=Y is None or len(X) == len(Y))
        return (values, np.empty((len(X), len(X), 0))) if eval_gradient else values

    def diag(self, X):
        """Values at equal points, spoiled too if the mistake is here."""
        if self.fault == "diag_raises":
            raise KernelFaultError("the kernel of the user has failed")
        ones = np.ones(X.shape[0])
        return {"diag_nan": ones * np.nan, "diag_shape": ones[:, None] + ones}.get(self.fault, ones)

    def is_stationary(self):
        """Not all mistakes are, so the answer is no."""
        return False


def _spoiled(values, fault, *, square):
    if fault == "one_nan" or (fault == "nan_later" and not square):
        values[-1, -1] = np.nan
    elif fault in ("asymmetric", "negative"):
        values = values * np.linspace(1, 2, values.shape[1]) * (-1 if fault == "negative" else 1)
    elif fault in ("nan", "inf", "negative_inf", "huge"):
        values = values * {"nan": np.nan, "inf": np.inf, "negative_inf": -np.inf, "huge": 1e308}[fault]
    changes = {
        "flat": np.ravel,
        "wide": lambda v: np.hstack([v, v[:, :1]]),
        "scalar": lambda v: 1.0,
        "none": lambda v: None,
        "text": lambda v: v.astype(str),
        "complex": lambda v: v + 1j,
        "integer": lambda v: v.astype(int),
        "float32": lambda v: v.astype(np.float32),
        "list": lambda v: v.tolist(),
    }
    with np.errstate(all="ignore"):
        return changes.get(fault, lambda v: v)(values)


@st.composite
def numbers(draw):
    """A positive number, mostly near one, sometimes of any magnitude."""
    if happens(draw, 25):
        return f"1e{draw(st.integers(-300, 300))}"
    return draw(st.sampled_from(NUMBERS))


@st.composite
def length_scales(draw, d):
    """One length scale, or one per feature; seldom a wrong number of them."""
    if not happens(draw, 20):
        return draw(numbers())
    count = d + (1 if happens(draw, 5) else 0)
    return "[" + ", ".join(draw(numbers()) for _ in range(count)) + "]"


@st.composite
def radial(draw, d):
    """One kernel that the package computes by itself."""
    length, bounds = draw(length_scales(d)), draw(st.sampled_from(BOUNDS))
    form = draw(st.sampled_from(["RBF", "RBF", "Matern", "RationalQuadratic"]))
    if form == "RationalQuadratic":
        named = bounds.replace(", ", ", length_scale_bounds=", 1)
        return f"RationalQuadratic({draw(numbers())}, alpha={draw(numbers())}{named})"
    order = f", nu={draw(st.sampled_from(ORDERS))}" if form == "Matern" else ""
    return f"{form}({length}{bounds}{order})"


@st.composite
def kernels(draw, d):
    """A kernel for points with d features."""
    one = draw(radial(d))
    form = mostly(draw, ["plain", "plain", "times"], ["sum", "product", "power", "other", "other_sum"], percent=30)
    if happens(draw, 6):
        return f"Misbehaving({draw(st.sampled_from(Misbehaving.FAULTS))!r})"
    if form == "times":
        return f"ConstantKernel({draw(numbers())}{draw(st.sampled_from(BOUNDS))}) * {one}"
    if form in ("sum", "product"):
        return f"{one} {'+' if form == 'sum' else '*'} {draw(radial(d))}"
    if form == "power":
        return f"{one} ** {draw(st.sampled_from(POWERS))}"
    if form == "other":
        return draw(st.sampled_from(OTHERS))
    return f"{one} + {draw(st.sampled_from(OTHERS))}" if form == "other_sum" else one

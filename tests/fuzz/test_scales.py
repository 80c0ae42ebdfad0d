"""Units do not matter: data and length scales times a power of two give the same probabilities."""

import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.baselines import ParzenClassifier

ROUNDING = {np.float64: 1e-9, np.float32: 1e-4}
REACH = {np.float64: 900, np.float32: 60}
FIXED = "fixed"
#: Estimators by name, as functions of the unit of length.
SUPERVISED = {
    "RBF": lambda unit: LGCPClassifier(RBF(0.7 * unit), selection=None),
    "RBF fixed": lambda unit: LGCPClassifier(RBF(0.7 * unit, FIXED), selection=None),
    "RBF per feature": lambda unit: LGCPClassifier(RBF([0.7 * unit, 2 * unit, unit]), selection=None),
    "constant times RBF": lambda unit: LGCPClassifier(ConstantKernel(3.0) * RBF(0.7 * unit), selection=None),
    "sum": lambda unit: LGCPClassifier(RBF(0.7 * unit) + Matern(unit, nu=0.5), selection=None),
    "kernel per class": lambda unit: LGCPClassifier({0: RBF(unit), 1: Matern(unit), 2: RBF(unit)}, selection=None),
    **{
        f"Matern {nu}": lambda unit, nu=nu: LGCPClassifier(Matern(0.7 * unit, FIXED, nu=nu), selection=None)
        for nu in (0.5, 0.7, 1.5, 2.5, np.inf)
    },
    "RationalQuadratic": lambda unit: LGCPClassifier(RationalQuadratic(0.7 * unit, alpha=1.3), selection=None),
    "loo_error": lambda _: LGCPClassifier(selection="loo_error"),
    "loo_log_loss": lambda _: LGCPClassifier(selection="loo_log_loss"),
    "loo_error, given lengths": lambda unit: LGCPClassifier(selection="loo_error", length_scales=[unit, 0.3 * unit]),
    "mixture": lambda _: LGCPClassifier(),
    "mixture of a kernel": lambda unit: LGCPClassifier([RBF(unit), Matern(0.7 * unit)]),
    "Parzen": lambda _: ParzenClassifier(),
    "Parzen, given length": lambda unit: ParzenClassifier(0.7 * unit),
}
SEMI_SUPERVISED = {
    "few labels": lambda _: SLGCPClassifier(),
    "map": lambda _: SLGCPClassifier(inference="map"),
    "map, given kernel": lambda unit: SLGCPClassifier(RBF(0.4 * unit, FIXED), selection=None),
    "marginals": lambda unit: SLGCPClassifier(
        RBF(0.4 * unit, FIXED), selection=None, inference="marginals", n_draws=64, random_state=0
    ),
}
ALL = SUPERVISED | SEMI_SUPERVISED
IN_FLOAT32 = ("RBF", "Matern 1.5", "RationalQuadratic", "loo_error", "mixture", "few labels", "map")


def points():
    """Points of three classes and new points, all of about unit size."""
    rng = np.random.default_rng(11)
    truth = np.arange(36) % 3
    return rng.normal(size=(36, 3)) + 2 * truth[:, None], truth, rng.normal(scale=4, size=(12, 3))


def probabilities(name, power, precision):
    """What an estimator says about training points and new points, with all lengths times a power of two."""
    X, y, new = points()
    if name in SEMI_SUPERVISED:
        y = np.where(np.arange(len(y)) < 9, y, -1)
    X, new = (np.ldexp(one.astype(precision), power) for one in (X, new))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)  # about labellings of so few points
        model = ALL[name](np.ldexp(1.0, power)).fit(X, y)
        found = [model.predict_proba(X), model.predict_proba(new)]
        if name in SEMI_SUPERVISED:
            found.append(model.label_distributions_)
        elif hasattr(model, "loo_predict_proba"):
            found.append(model.loo_predict_proba())
    return np.concatenate(found)


reference = cache(lambda name, precision: probabilities(name, 0, precision))


def assert_unit_does_not_matter(name, power, precision):
    __tracebackhide__ = True
    found = probabilities(name, power, precision)
    np.testing.assert_allclose(found, reference(name, precision), rtol=0, atol=ROUNDING[precision])


def powers(precision):
    """Powers of two: both ends of the range, and some that Hypothesis draws."""
    reach = REACH[precision]

    def decorate(test):
        for power in (-reach, reach):
            test = example(power=power)(test)
        limits = settings(max_examples=2, derandomize=True, database=None, deadline=None)
        return limits(given(power=st.integers(1 - reach, reach - 1))(test))

    return decorate


@pytest.mark.parametrize("name", ALL)
@powers(np.float64)
def test_probabilities_do_not_depend_on_the_unit(name, power):
    assert_unit_does_not_matter(name, power, np.float64)


@pytest.mark.parametrize("name", IN_FLOAT32)
@powers(np.float32)
def test_probabilities_in_single_precision_do_not_depend_on_the_unit(name, power):
    assert_unit_does_not_matter(name, power, np.float32)


@pytest.mark.parametrize("name", ["RBF", "loo_error", "mixture", "map", "Parzen"])
def test_data_and_length_scales_do_matter(name):
    found = reference(name, np.float64)
    assert np.ptp(found) > 0.2  # probabilities that are all alike would agree at any unit

r"""The partition function of the label field, and the joint predictive probabilities that it normalises.

Eqs conditionalModel and explicitMRF divide the weight of a labelling by M(x), the product density of the superposition
process. In a `LabelField`, points with known labels act through the unary terms. The sum over the unknown labels y* is

.. math:: Z = \sum_{y^*} e^{-E(y^*)} = \frac{\sum_{y^*} \prod_c m^{(c)}(x^{(c)}, x^{*(c)})}{\prod_c m^{(c)}(x^{(c)})},

the product density of new points of unknown class, given the labelled ones. Without labelled points it is M(x*).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from coxfield.field.annealing import Alternation, anneal, weigh_subgraphs
from coxfield.field.arguments import check_labels
from coxfield.field.mcmc import Gibbs, SwendsenWang
from coxfield.utils.numbers import generator

if TYPE_CHECKING:
    from coxfield.field.annealing import AnnealedWeights
    from coxfield.field.potts import LabelField


METHODS = "auto", "enumerate", "annealing", "subgraphs"
SAMPLERS = {"both": Alternation, "gibbs": Gibbs, "swendsen-wang": SwendsenWang}
QUICKLY_LISTED = 2**16  # up to so many labellings, listing takes less time than sampling
ENOUGH = 32  # effective particles; with fewer, their spread says little about the error


@dataclass(frozen=True)
class LogPartition:
    """log Z of a label field, and its precision."""

    log_z: float
    standard_error: float
    """Standard error of log_z; 0 by enumeration."""
    effective_particles: float
    """The number of particles of equal weight that would be as precise; infinite by enumeration."""
    n_temperatures: int
    """Steps between the distribution known in closed form and the field; 0 by enumeration."""
    method: str
    """"enumerate", "annealing" or "subgraphs"."""


@dataclass(frozen=True)
class LogPredictive:
    """The logarithm of a predictive probability or density, and its precision."""

    value: float
    standard_error: float
    """Standard error of value; 0 by enumeration."""


def log_partition(
    field: LabelField,
    *,
    method: str = "auto",
    sampler: str = "both",
    n_particles: int = 512,
    n_temperatures: int | None = None,
    random_state=None,
) -> LogPartition:
    """Logarithm of the sum of exp(-E(y)) over all labellings.

    Without labelled points it is log M(x) of eq. conditionalModel.

    Parameters
    ----------
    field : LabelField
    method : {"auto", "enumerate", "annealing", "subgraphs"}, default="auto"
        "enumerate" lists all labellings. "annealing" is annealed importance sampling, for any field. "subgraphs" is the
        chain of Jerrum and Sinclair, a check for two classes with one covariance, equal means and no labelled points.
        "auto" lists up to 65,536 labellings, and anneals if there are more.
    sampler : {"both", "gibbs", "swendsen-wang"}, default="both"
        How annealing moves the labels; "both" alternates.
    n_particles : int, default=512
        Independent particles, or chains of subgraphs. The standard error is proportional to one over the square root of
        their number.
    n_temperatures : int, optional
        Steps from the distribution known in closed form to the field. By default as many as the field needs.
    random_state : int, numpy Generator or None

    Returns
    -------
    LogPartition

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField, log_partition
    >>> field = LabelField.from_points(np.linspace(0, 4, 10)[:, None], RBF(1.0), labels=[-1] * 10)
    >>> exact = log_partition(field)
    >>> exact.method, round(exact.log_z, 3)
    ('enumerate', 24.4)
    >>> for method in ("annealing", "subgraphs"):
    ...     estimate = log_partition(field, method=method, random_state=0)
    ...     print(estimate.standard_error < 0.05, abs(estimate.log_z - exact.log_z) < 4 * estimate.standard_error)
    True True
    True True
    """
    _check(method, sampler, n_particles, n_temperatures)
    rng = generator(random_state)
    if method == "auto":
        method = "enumerate" if field.n_classes ** len(field) <= QUICKLY_LISTED else "annealing"
    if method == "enumerate":
        return LogPartition(float(logsumexp(-field.enumerate()[1])), 0.0, np.inf, 0, method)
    if method == "subgraphs":
        return _estimate(weigh_subgraphs(field, rng, n_particles, n_temperatures), method)
    return _estimate(anneal(SAMPLERS[sampler](field), rng, n_particles, n_temperatures), method)


def log_joint_predictive(field: LabelField, labels, *, random_state=None, **options) -> LogPredictive:
    r"""Log probability of the labels of test points jointly, given the labelled points of the field.

    For one test point it is eq. predictiveDistribution. For several, labelled together, eq. explicitMRF gives

    .. math:: \log \Pr(y^*) = -E(y^*) - \log Z,

    If the field has other unlabelled points, their labels are summed over:

    .. math:: \log \Pr(y^*) = -E(y^*) + \log Z_{\text{others given } y^*} - \log Z.

    Parameters
    ----------
    field : LabelField
        The field of the test points and of any other unlabelled points.
    labels : array-like of shape (n,)
        Class of each node, -1 for nodes whose labels are summed over.
    random_state : int, numpy Generator or None
    **options
        Passed on to `log_partition`.

    Examples
    --------
    Neighbouring test points probably have one class. A product of single probabilities cannot show this:

    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField, log_joint_predictive
    >>> field = LabelField.from_points([[0.0], [2.0], [0.9], [1.1]], RBF(1.0), labels=[0, 1, -1, -1])
    >>> for labels in ([0, 0], [0, 1], [0, -1]):
    ...     print(labels, round(float(np.exp(log_joint_predictive(field, labels).value)), 3))
    [0, 0] 0.363
    [0, 1] 0.154
    [0, -1] 0.517
    """
    labels = check_labels(labels, field.X, field.n_classes)
    rng = generator(random_state)
    tested = np.flatnonzero(labels >= 0)
    energy = field.among(tested).energy(labels[tested])
    others = log_partition(field.condition(labels), random_state=rng, **options)
    everything = log_partition(field, random_state=rng, **options)
    return _difference(others, everything, -energy)


def log_predictive_density(field: LabelField, new, *, random_state=None, **options) -> LogPredictive:
    """Log product density of new points of unknown class, given the field's other points: log M(x, x*) - log M(x).

    Parameters
    ----------
    field : LabelField
    new : array of shape (n_new,)
        The new points, as numbers of nodes. The other nodes and the labelled points are given.
    random_state : int, numpy Generator or None
    **options
        Passed on to `log_partition`.

    Examples
    --------
    Points attract others of any class:

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField, log_predictive_density
    >>> field = LabelField.from_points([[0.0], [0.1], [5.0]], RBF(1.0), labels=[-1, -1, -1])
    >>> near, far = (log_predictive_density(field, [node]).value for node in (1, 2))
    >>> print(f"{near:.2f}, {far:.2f}")
    1.81, 1.19
    """
    new = np.asarray(new, dtype=int)
    if len(np.unique(new)) < new.size or new.min(initial=0) < 0 or new.max(initial=-1) >= len(field):
        raise ValueError(f"new must hold different numbers of nodes below {len(field)}, got {new.tolist()}")
    rng = generator(random_state)
    everything = log_partition(field, random_state=rng, **options)
    given = log_partition(field.among(np.setdiff1d(np.arange(len(field)), new)), random_state=rng, **options)
    return _difference(everything, given)


def _difference(one: LogPartition, other: LogPartition, constant: float = 0.0) -> LogPredictive:
    error = float(np.hypot(one.standard_error, other.standard_error))
    return LogPredictive(constant + one.log_z - other.log_z, error)


def _estimate(annealed: AnnealedWeights, method: str) -> LogPartition:
    """The log of the mean weight, and its standard error by the jackknife.

    The jackknife leaves out one particle at a time. If few particles have most of the weight, it is more reliable than
    linear error propagation.
    """
    top, n = annealed.log_weights.max(), len(annealed.log_weights)
    weights = np.exp(annealed.log_weights - top)
    total = weights.sum()
    without = np.log1p(-np.minimum(weights / total, 1 - np.finfo(float).eps))
    effective = float(total**2 / np.square(weights).sum())
    _warn_if_few(effective, n, method)
    return LogPartition(
        float(annealed.log_start + top + np.log(total / n)),
        float(np.hypot(np.sqrt(n - 1) * without.std(), annealed.resolution)),
        effective,
        len(annealed.temperatures) - 1,
        method,
    )


def _warn_if_few(effective: float, n_particles: int, method: str) -> None:
    if effective < min(ENOUGH, n_particles / 4):
        warnings.warn(
            f"{method} left {effective:.1f} effective particles of {n_particles}, so the standard error may be too "
            "small: give more n_temperatures or n_particles",
            stacklevel=4,
        )


def _check(method, sampler, n_particles, n_temperatures) -> None:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler must be one of {', '.join(SAMPLERS)}, got {sampler!r}")
    if not isinstance(n_particles, int | np.integer) or n_particles < 2:
        raise ValueError(f"n_particles must be a whole number of at least 2, got {n_particles!r}")
    if n_temperatures is not None and (not isinstance(n_temperatures, int | np.integer) or n_temperatures < 1):
        raise ValueError(f"n_temperatures must be a whole number of at least 1, or None, got {n_temperatures!r}")

"""Samplers of the label field beside enumeration, on small random fields.

The marginals of Gibbs and Swendsen-Wang must agree with enumeration up to their standard errors. The marginals of
perturb-and-MAP are approximations; the tables say how good.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

from coxfield.field import Gibbs, LabelField, PerturbAndMap, SwendsenWang, sample
from coxfield_paper.report.blocks import Note, Table
from coxfield_paper.report.item import Item
from coxfield_paper.studies.study import Study

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from coxfield.field import Samples
    from coxfield_paper.report.records import Record

NAME = "table-samplers"
FIELDS, QUICK_FIELDS = 50, 3
CHAINS, BURN_IN = 32, 50  # of Gibbs and Swendsen-Wang
KERNELS = (
    RBF(0.5),
    2.0 * RBF(1.0),
    0.3 * RBF([0.4, 1.5]),
    Matern(0.7, nu=0.5),
    Matern(1.0, nu=1.5),
    RationalQuadratic(1.0, alpha=0.7),
    RBF(0.3) + 0.1 * Matern(2.0),
)
STRENGTHS = (0.0, 0.5, 2.0, np.inf)  # total coupling of a node; the limits of the groups of the summary


EXPECTED = (
    f"{CHAINS} chains of Gibbs and of Swendsen-Wang per field. If a sampler is right, the largest deviation of dozens "
    "of marginals is usually between 2 and 3 standard errors."
)


def random_field(seed: int) -> LabelField:
    """A field of 4 to 12 nodes: two or three classes, one kernel or one per class, labelled points, random means."""
    rng = np.random.default_rng(seed)
    n, n_classes, shared = 4 + seed % 9, 2 + seed % 2, seed % 4 < 2
    X = rng.normal(size=(n + 3, 2)) * rng.choice([0.5, 1.0, 3.0])
    labels = np.concatenate([rng.integers(n_classes, size=3), np.full(n, -1)])
    picks = [KERNELS[pick] for pick in rng.integers(len(KERNELS), size=n_classes)]
    kernel = picks[0] if shared else picks
    return LabelField.from_points(X, kernel, labels, mean=rng.normal(size=n_classes) / 2, n_classes=n_classes)


def exact_marginals(field: LabelField) -> NDArray:
    """Probability of each class at each node by enumeration, shape (n, Q)."""
    labels, energies = field.enumerate()
    weights = softmax(-energies)
    return np.stack([weights @ (labels == c) for c in range(field.n_classes)], axis=1)


@dataclass(frozen=True)
class Deviation:
    """How far the marginals of one field are from those of enumeration."""

    n: int
    n_classes: int
    shared: bool
    """Whether all classes have the same covariance."""
    coupling: float
    """Sum of the couplings of a node, mean over nodes and classes."""
    gibbs: float
    """Largest deviation of Gibbs, in units of its standard error."""
    swendsen_wang: float
    """The same of Swendsen-Wang."""
    perturb_and_map: float
    """Largest absolute deviation of perturb-and-MAP."""
    perturb_and_map_mean: float
    """Its mean absolute deviation over nodes and classes."""
    monte_carlo_error: float
    """Largest standard error of its marginals: a smaller deviation means nothing."""


def standard_deviations(samples: Samples, truth: NDArray) -> NDArray:
    """Deviations of marginals from the truth, in units of their standard errors, shape (n, Q)."""
    return (samples.marginals - truth) / samples.standard_errors


def deviation(seed: int, n_samples: int = 400, n_perturbed: int = 1000) -> Deviation:
    """Sample one random field in three ways, and compare with enumeration.

    Parameters
    ----------
    seed : int
        Seed of the field and of the samplers.
    n_samples : int, default=400
        Draws per chain of Gibbs and Swendsen-Wang, of 32 chains each.
    n_perturbed : int, default=1000
        Draws of perturb-and-MAP.
    """
    field = random_field(seed)
    truth = exact_marginals(field)
    gibbs, clusters = (_exact_deviation(one(field), truth, n_samples, seed) for one in (Gibbs, SwendsenWang))
    perturbed = sample(PerturbAndMap(field), n_perturbed, n_chains=1, burn_in=0, random_state=seed)
    off = np.abs(perturbed.marginals - truth)
    return Deviation(
        len(field),
        field.n_classes,
        field.shared,
        float(field.totals.mean()),
        gibbs,
        clusters,
        float(off.max()),
        float(off.mean()),
        float(perturbed.standard_errors.max()),
    )


def _exact_deviation(sampler, truth: NDArray, n_samples: int, seed: int) -> float:
    samples = sample(sampler, n_samples, n_chains=CHAINS, burn_in=BURN_IN, random_state=seed)
    return float(np.abs(standard_deviations(samples, truth)).max())


def measure(seed: int) -> dict[str, Any]:
    """The deviations of one random field, as a record holds them."""
    return asdict(deviation(seed))


STUDY = Study(f"{NAME}/field", measure, (), cells={(): FIELDS}, quick={(): QUICK_FIELDS})


def render(found: Mapping[str, Record]) -> Sequence[Table | Note]:
    """A table of perturb-and-MAP by strength of coupling, and a table of all fields."""
    done = [Deviation(**record.result) for record in found.values() if record.done]
    if not done:
        return [Note(f"There are no results, so no tables. Run `coxfield reproduce {NAME}`.")]
    return [summary(done), fields(done)]


def summary(found: Sequence[Deviation]) -> Table:
    """Perturb-and-MAP by strength of coupling."""
    rows = []
    for low, high in pairwise(STRENGTHS):
        group = [one for one in found if low <= one.coupling < high]
        if group:
            mean = np.mean([one.perturb_and_map_mean for one in group])
            largest = max(one.perturb_and_map for one in group)
            error = np.median([one.monte_carlo_error for one in group])
            rows.append((f"{low:g} to {high:g}", f"{len(group)}", f"{mean:.3f}", f"{largest:.3f}", f"{error:.3f}"))
    return Table(
        caption="Perturb-and-MAP: absolute deviation of its marginals from enumeration.",
        headings=("coupling of a node", "fields", "mean", "largest", "typical standard error"),
        rows=tuple(rows),
    )


def fields(found: Sequence[Deviation]) -> Table:
    """All samplers, one row per field."""
    return Table(
        caption="Deviation of marginals from enumeration: the largest in each field.",
        headings=(
            "nodes",
            "classes",
            "covariances",
            "coupling",
            "Gibbs, standard errors",
            "Swendsen-Wang, standard errors",
            "perturb-and-MAP",
            "its mean",
            "its standard error",
        ),
        rows=tuple(_row(one) for one in found),
        notes=(EXPECTED,),
    )


def _row(one: Deviation) -> tuple[str, ...]:
    kind = "one" if one.shared else "one per class"
    exact = f"{one.gibbs:.1f}", f"{one.swendsen_wang:.1f}"
    off = (f"{number:.3f}" for number in (one.perturb_and_map, one.perturb_and_map_mean, one.monte_carlo_error))
    return f"{one.n}", f"{one.n_classes}", kind, f"{one.coupling:.2f}", *exact, *off


ITEM = Item(NAME, "Samplers of the label field beside enumeration", STUDY.tasks, render, beyond=True)

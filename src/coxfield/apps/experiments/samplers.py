"""Samplers of the label field beside enumeration, on small random fields.

`python -m coxfield.apps.experiments.samplers` prints how
far the marginals of Gibbs and Swendsen-Wang are from the truth, in
their own standard errors, and by how much those of perturb-and-MAP, which is an approximation, are off.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import softmax
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

from coxfield.field import Gibbs, LabelField, PerturbAndMap, SwendsenWang, sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field import Samples
    from coxfield.field.sampling.chains import Sampler

FIELDS = 50
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
STRENGTHS = (0.0, 0.5, 2.0, np.inf)  # total coupling of a node, between the groups of the summary


def random_field(seed: int) -> LabelField:
    """A field of 4 to 12 nodes: two or three classes, one kernel or one a class, clamped points, random means."""
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
    """How far the marginals of one field are from the truth."""

    n: int
    n_classes: int
    shared: bool
    """Whether the classes have one covariance."""
    coupling: float
    """Sum of a node's couplings to the others, mean over nodes and classes."""
    gibbs: float
    """Largest deviation, in its standard error."""
    swendsen_wang: float
    perturb_and_map: float
    """Largest absolute deviation."""
    perturb_and_map_mean: float
    """Mean absolute deviation over nodes and classes."""
    monte_carlo_error: float
    """Largest standard error of perturb-and-MAP's marginals: a deviation below it means nothing."""


def standard_deviations(samples: Samples, truth: NDArray) -> NDArray:
    """Deviations of marginals from the truth in units of their standard errors, shape (n, Q)."""
    return (samples.marginals - truth) / samples.standard_errors


def deviation(seed: int, n_samples: int = 400, n_perturbed: int = 1000) -> Deviation:
    """Sample one random field in three ways and compare with enumeration.

    Parameters
    ----------
    seed : int
        Of the field and of the samplers.
    n_samples : int, default=400
        Draws of each of 32 chains of Gibbs and Swendsen-Wang.
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


def _exact_deviation(sampler: Sampler, truth: NDArray, n_samples: int, seed: int) -> float:
    samples = sample(sampler, n_samples, n_chains=CHAINS, burn_in=BURN_IN, random_state=seed)
    return float(np.abs(standard_deviations(samples, truth)).max())


def deviations(n_fields: int = FIELDS, **sizes) -> list[Deviation]:
    """One record a random field."""
    return [deviation(seed, **sizes) for seed in range(n_fields)]


def render(records: list[Deviation]) -> Table:
    """A row a field."""
    table = Table(title="Deviation of marginals from enumeration")
    headings = ("nodes", "classes", "covariances", "coupling", "Gibbs / s.e.", "Swendsen-Wang / s.e.")
    for heading in (*headings, "perturb-and-MAP, largest", "mean", "its s.e."):
        table.add_column(heading, justify="right")
    for one in records:
        kind = "one" if one.shared else "one a class"
        exact = f"{one.gibbs:.1f}", f"{one.swendsen_wang:.1f}"
        off = one.perturb_and_map, one.perturb_and_map_mean, one.monte_carlo_error
        table.add_row(
            f"{one.n}", f"{one.n_classes}", kind, f"{one.coupling:.2f}", *exact, *(f"{number:.3f}" for number in off)
        )
    return table


def render_summary(records: list[Deviation]) -> Table:
    """Perturb-and-MAP by strength of coupling."""
    table = Table(title="Perturb-and-MAP: absolute deviation of marginals from enumeration")
    for heading in ("coupling of a node", "fields", "mean", "largest", "typical s.e."):
        table.add_column(heading, justify="right")
    for low, high in pairwise(STRENGTHS):
        group = [one for one in records if low <= one.coupling < high]
        if group:
            mean = np.mean([one.perturb_and_map_mean for one in group])
            largest = max(one.perturb_and_map for one in group)
            error = np.median([one.monte_carlo_error for one in group])
            cells = (f"{low:g} to {high:g}", f"{len(group)}", f"{mean:.3f}", f"{largest:.3f}", f"{error:.3f}")
            table.add_row(*cells)
    return table


def main() -> None:
    """Print both tables."""
    console = Console(width=140)
    records = deviations()
    console.print(render(records))
    console.print(render_summary(records))


if __name__ == "__main__":
    main()

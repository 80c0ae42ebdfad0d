"""Labels proven optimal one by one, for more than two classes (after Kovtun).

For a class alpha, combine all other classes into one label 'other'. Its unary term is min_{c != alpha} u_i(c), and its
covariance is M_ij = max_{c != alpha} C^(c)_ij. Let A be the nodes with label alpha in a minimum of this two-class
problem. Then some optimal labelling gives alpha to all of A.

Proof. Let y be any labelling. Let y' be y with label alpha on A. Let B be the nodes of A whose label in y is not alpha.
From y to y' the energy falls by

- sum_B u_i(y_i) - u_i(alpha), in the unary terms;
- C^(alpha) - [y_i = y_j] C^(y_i), in the pairs within B;
- C^(alpha), in the pairs between B and the rest of A;
- at least -[y_i = y_j] C^(y_i), in the pairs between B and nodes outside A.

Compare the two-class energy when B goes from 'other' to alpha, while the rest of A is alpha and all other nodes are
'other'. Each of its terms falls by no more than the term above. Its total fall is not negative, because A is a minimum.
So E(y') <= E(y).

With one shared covariance, M = C. Class-specific covariances need no extra condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.field.couplings import couple
from coxfield.field.cuts.crossing import row_sums
from coxfield.field.cuts.mincut import TwoClasses, minimise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field.cuts.mincut import Solution
    from coxfield.field.graph import Pairs
    from coxfield.field.potts import LabelField


@dataclass(frozen=True)
class Persistency:
    """Labels that all belong to one optimal labelling."""

    labels: NDArray
    """-1 where nothing is proven."""
    slack: float
    """The sum of the gaps of the cuts: the labels belong to a labelling at most this much above the minimum."""
    edges: int
    cuts: int


def persistent_labels(field: LabelField, pairs: Pairs, *, tolerance: float, **solver) -> Persistency:
    """Prove labels, class by class. Labels proven for one class are given labels for the next."""
    known, slack, edges, cuts = np.full(len(field), -1), 0.0, 0, 0
    left, rest = field, np.arange(len(field))
    for alpha in range(field.n_classes):
        if not len(rest):
            break
        found = _alpha_against_others(left, pairs.among(rest), alpha, tolerance=tolerance, **solver)
        edges, cuts = max(edges, len(found.edges)), cuts + found.rounds
        if found.gap <= tolerance * found.cost:
            known[rest[found.x]] = alpha
            slack += found.gap
            left, rest = left.condition(np.where(found.x, alpha, -1)), rest[~found.x]
    return Persistency(known, slack, edges, cuts)


def _alpha_against_others(field: LabelField, pairs: Pairs, alpha: int, **solver) -> Solution:
    """Minimise the two-class energy of a class against the best of the other classes."""
    others = [c for c in range(field.n_classes) if c != alpha]
    coupling = couple(field, alpha, others)
    pull = field.relative_unary[:, others].min(axis=1) - field.relative_unary[:, alpha]
    if not field.shared:  # (sum_j C1 - C0) / 2, where w = (C1 + C0) / 2
        pull = pull + field.totals[:, alpha] - row_sums(coupling)
    return minimise(TwoClasses(pull, coupling), coupling.edges(pairs), **solver)

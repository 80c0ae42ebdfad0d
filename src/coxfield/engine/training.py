"""Training rows beside the store that sums over them: rows come and go in both at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from coxfield.engine.store import Store, store_bound, store_distributions, store_labels
from coxfield.engine.training_rows import GONE
from coxfield.kernels.distances import is_view
from coxfield.kernels.mixture import Mixture
from coxfield.kernels.mixture_forgetting import forget
from coxfield.kernels.mixture_points import MixturePoints
from coxfield.kernels.radial import Radial

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.store import Part
    from coxfield.engine.training_rows import TrainingRows
    from coxfield.kernels.per_class import PerClass
    from coxfield.kernels.protocol import Covariance

SPARE = 1024  # numbers of rows that have left, before rows are numbered anew


@dataclass(frozen=True)
class Training:
    """Rows as they were given, and the same rows arranged for class sums."""

    rows: TrainingRows
    store: Store

    @classmethod
    def of(cls, rows: TrainingRows, covariances: PerClass[Covariance], *, learned: bool) -> Training:
        """Arrange rows; `learned` says whether the covariance is a mixture whose reference points are among them."""
        if learned:
            return cls(rows, _store_learned(rows, covariances))
        radial = all(isinstance(covariance, Radial) for covariance in covariances.distinct)
        if radial and not sparse.issparse(rows.like):
            rows = rows.owned()  # so that a row can be overwritten when it leaves
        X, y, weights = rows.X, rows.y, rows.weights
        if weights is not None and weights.ndim == 2:
            return cls(rows, store_distributions(X, weights, covariances))
        return cls(rows, store_labels(X, y, covariances, weights))

    def appended(self, X, y: NDArray, weights: NDArray | None) -> Training:
        """More rows with one label each. Nobody else may hold X."""
        store = self.store.append(X, _distributions(y, weights, self.store.n_classes))
        if self.learned_from_rows:
            learned = np.arange(self.store.n_rows) if store.learned is None else store.learned
            store = replace(store, learned=np.concatenate([learned, np.full(len(y), -1)]))
        rows = self.rows.appended(X, y, weights, self.store.n_rows)
        # The first block stays as it is: it is large, and a covariance may know its densities.
        count = min(rows.to_join(), len(rows.blocks) - 1)
        return Training(rows, store) if count < 2 else Training(rows, store)._joined(count)

    def _joined(self, count: int) -> Training:
        """The last blocks as one, here and in the store."""
        rows = self.rows.joined(count)
        block = rows.blocks[-1]
        last = slice(len(rows) - len(block.numbers), None)
        weights = None if rows.weights is None else rows.weights[last]
        distributions = _distributions(rows.y[last], weights, self.store.n_classes)
        return Training(rows, self.store.without(block.numbers).append(block.X, distributions, block.numbers))

    def without(self, places: NDArray) -> Training:
        """The rows without those at some places. This object must not be used any more: rows are overwritten."""
        numbers, mixture = self.rows.numbers[places], self._learned_mixture
        if mixture is None:
            overwrite = self.rows.can_be_overwritten
            store = self.store.without(numbers, overwrite=overwrite)
            return Training(self.rows.without(places, numbers, overwrite=overwrite), store)._with_few_numbers()
        rows = self.rows.without(places, numbers, overwrite=False)  # somebody may hold the mixture as it was
        return Training(rows, _without_reference(self.store, mixture, numbers, rows))._with_few_numbers()

    def _with_few_numbers(self) -> Training:
        """The same rows, numbered anew if most numbers are those of rows that have left."""
        if self.store.n_rows <= SPARE + 2 * len(self.rows):
            return self
        numbers = self.rows.numbers
        new = np.full(self.store.n_rows + 1, GONE)  # the last entry is for rows that were overwritten
        new[numbers] = np.arange(len(numbers))
        return Training(self.rows.renumbered(new), self.store.renumbered(new, numbers))

    @property
    def learned_from_rows(self) -> bool:
        """Whether the covariance needs the rows that it was chosen from."""
        return self._learned_mixture is not None

    @property
    def _learned_mixture(self) -> Mixture | None:
        """The mixture of all classes, if it has learned from the rows."""
        group = self.store.groups[0]
        known = any(isinstance(part.points, MixturePoints) and part.points.learned for part in group.parts)
        return group.covariance if known and isinstance(group.covariance, Mixture) else None

    def with_classes(self, new: NDArray, covariances: PerClass[Covariance]) -> Training:
        """The same rows with other class numbers: `new` has one for each old one, -1 for a class without rows."""
        return Training(self.rows.with_classes(new), self.store.with_classes(new, covariances))


def _distributions(y: NDArray, weights: NDArray | None, n_classes: int) -> NDArray:
    """One weight per row and class."""
    matrix = np.zeros((len(y), n_classes))
    matrix[np.arange(len(y)), y] = 1 if weights is None else weights
    return matrix


def _store_learned(rows: TrainingRows, covariances: PerClass[Covariance]) -> Store:
    """The reference points of the mixture with their densities, and the other rows."""
    mixture, chosen, weights = covariances[0], rows.chosen_from, rows.weights
    assert isinstance(mixture, Mixture)
    own = None if weights is None else weights[chosen]
    store = store_bound([mixture.bind_reference()], rows.y[chosen], covariances, own)
    if chosen.all():
        return store
    (group,), numbers, others = store.groups, rows.numbers, ~chosen
    (part,) = group.parts
    part = replace(part, rows=numbers[chosen][part.rows])
    learned = np.full(numbers.max() + 1, -1)
    learned[numbers[chosen]] = np.arange(np.count_nonzero(chosen))
    store = replace(store, groups=(replace(group, parts=(part,)),), n_rows=len(learned), learned=learned)
    weights = None if weights is None else weights[others]
    return store.append(rows.X[others], _distributions(rows.y[others], weights, store.n_classes), numbers[others])


def _without_reference(store: Store, mixture: Mixture, numbers: NDArray, rows: TrainingRows) -> Store:
    """The store without some rows, under the mixture that has forgotten those among them that it learned from."""
    (group,) = store.groups
    home, points = next((part, mixed) for part, mixed in _mixed(group.parts) if mixed.rows is not None)
    columns = np.flatnonzero(np.isin(home.rows, numbers))
    left = store.without(numbers)
    if not len(columns) and not is_view(mixture.X):
        return left
    gone, parts = points[columns], left.groups[0].parts
    assert gone.rows is not None
    places = gone.rows
    new, bound = forget(mixture, gone, places, [mixed for _, mixed in _mixed(parts)], _chosen_points(rows))
    moved = tuple(replace(part, points=points) for part, points in zip(parts, bound, strict=True))
    learned = np.arange(store.n_rows) if store.learned is None else store.learned
    return replace(
        left,
        groups=(replace(group, covariance=new, parts=moved),),
        learned=_renumbered(learned, places, mixture.n_reference),
    )


def _mixed(parts: tuple[Part, ...]) -> list[tuple[Part, MixturePoints]]:
    """Parts with their points, which are bound to a mixture."""
    return [(part, part.points) for part in parts if isinstance(part.points, MixturePoints)]


def _chosen_points(rows: TrainingRows) -> Any:
    """The points that the covariance was chosen from; the array of the first block itself if it has no others."""
    first = rows.blocks[0].numbers
    count = np.count_nonzero(rows.chosen_from)
    return rows.blocks[0].X if count == len(first) and rows.chosen_from[:count].all() else rows.X[rows.chosen_from]


def _renumbered(learned: NDArray, places: NDArray, n_reference: int) -> NDArray:
    """The place of each row among the reference points that are left, -1 for rows that are none of them."""
    new = np.full(n_reference + 1, -1)  # the last entry is for -1
    kept = np.setdiff1d(np.arange(n_reference), places)
    new[kept] = np.arange(len(kept))
    return new[learned]

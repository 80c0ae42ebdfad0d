"""Representations that were learned from labels, so that leave-one-out stays honest: rows see what others have taught.

A transformer that uses labels has seen the label of every training row. In its coordinates a row is too close to its
own class, and leave-one-out takes this for evidence. So the rows are divided into folds. The rows of a fold see the
transformer that was fitted without the fold, in class sums and in densities. New points see the one of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import get_tags

from coxfield.kernels.mixture import Ladder
from coxfield.selection.mixture.loo_members import MemberSums, member_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled

FOLDS, FEWER, MANY = 5, 3, 400  # folds; with more than `MANY` rows fewer do


@dataclass(frozen=True, eq=False)
class CrossFitted(Ladder):
    """A ladder on a representation that was learned from labels, before its weights are known."""

    transforms: tuple[Any, ...] = ()
    """The transformer that was fitted without each fold."""
    fold: NDArray | None = None
    """The fold of each labelled point."""
    relevance: NDArray | None = None
    """What each column is worth, if the representation is about that."""

    @property
    def plain(self) -> Ladder:
        """The ladder that new points see."""
        return Ladder(**{part.name: getattr(self, part.name) for part in fields(Ladder)})

    def parts(self, rows: NDArray) -> list[tuple[NDArray, Ladder]]:
        """The places among some labelled points that belong to each fold, and the ladder that they see."""
        assert self.fold is not None
        plain, fold = self.plain, self.fold[rows]
        seen = [(np.flatnonzero(fold == k), replace(plain, transform=each)) for k, each in enumerate(self.transforms)]
        return [(places, ladder) for places, ladder in seen if len(places)]


def seen_by(ladder: Ladder, rows: NDArray) -> list[tuple[NDArray, Ladder]]:
    """For each group of rows, their places, and the ladder that they see when they are left out."""
    return ladder.parts(rows) if isinstance(ladder, CrossFitted) else [(np.arange(len(rows)), ladder)]


def number_of_folds(n: int) -> int:
    """How many folds n rows are divided into."""
    return FOLDS if n <= MANY else FEWER


def folds_of(y: NDArray, n_folds: int = FOLDS) -> NDArray:
    """The fold of each row, at random. Classes of equal size were made so, and then have equal shares in every fold.

    If a chance made one class larger, folds that all had its share would promise that the next rows have it too.
    """
    fold, chance = np.empty(len(y), int), np.random.default_rng(0).random(len(y))
    sizes = np.bincount(y)
    by_design = np.ptp(sizes[sizes > 0]) <= 1
    fold[np.lexsort((chance, y)) if by_design else np.argsort(chance)] = np.arange(len(y)) % n_folds
    return fold


def uses_labels(transformer: Any) -> bool:
    """Whether a transformer of scikit-learn, or a step of a pipeline, says that it needs labels.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> uses_labels(PCA()), uses_labels(LinearDiscriminantAnalysis())
    (False, True)
    """
    steps = getattr(transformer, "steps", None)
    if steps:
        return any(uses_labels(step) for _, step in steps)
    try:
        return bool(get_tags(transformer).target_tags.required)
    except (AttributeError, TypeError):  # it only looks like a transformer of scikit-learn
        return False


def fitted_without(fit: Callable[[Labelled], Any], labelled: Labelled) -> tuple[tuple[Any, ...], NDArray]:
    """What a function learns without each fold, and the fold of each row."""
    fold = folds_of(labelled.y, number_of_folds(len(labelled)))
    return tuple(fit(labelled[fold != k]) for k in range(fold.max() + 1)), fold


def sums_of(
    labelled: Labelled,
    bank: Sequence[Ladder],
    rows: NDArray,
    done=None,
    known: Sequence[NDArray] | None = None,
    fold: NDArray | None = None,
) -> MemberSums:
    """`member_sums` of a bank in which some ladders may be cross-fitted; the bank may be empty."""
    if not bank:
        return MemberSums.of_none(labelled.y[rows], labelled.n_classes, 0 if fold is None else fold.max() + 1)
    if known is not None or not any(isinstance(ladder, CrossFitted) for ladder in bank):
        return member_sums(labelled, bank, rows, done, known, fold)
    found = [_one(labelled, ladder, rows, done, fold) for ladder in bank]
    first = found[0]
    assert first.contenders is None
    return MemberSums(
        first.y,
        np.concatenate([each.sums for each in found]),
        tuple(each.log_densities[0] for each in found),
        np.concatenate([each.at_copies for each in found], axis=1),
        np.concatenate([each.to_copies for each in found], axis=1),
        np.concatenate([each.by_fold for each in found]),
    )


def _one(labelled: Labelled, ladder: Ladder, rows: NDArray, done, fold: NDArray | None) -> MemberSums:
    """`member_sums` of one ladder; the densities are those of the representation that new points see."""
    if not isinstance(ladder, CrossFitted):
        return member_sums(labelled, [ladder], rows, done, None, fold)
    parts = ladder.parts(rows)
    whole = member_sums(labelled, [ladder.plain], rows[:1], None, None, fold)
    found = [member_sums(labelled, [each], rows[places], None, None, fold) for places, each in parts]
    place = np.argsort(np.concatenate([places for places, _ in parts]), kind="stable")
    if done is not None:
        done(len(labelled) + len(rows))
    copies = np.stack([each.at_copies for each in found])
    return MemberSums(
        np.concatenate([each.y for each in found])[place],
        np.concatenate([each.sums for each in found], axis=1)[:, place],
        whole.log_densities,
        np.stack([copies[:, 0].max(axis=0), copies[:, 1].min(axis=0)]),
        np.concatenate([each.to_copies for each in found], axis=2)[:, :, place],
        np.concatenate([each.by_fold for each in found], axis=1)[:, place],
    )

"""How far apart the training points are, from moments that add over shards."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.dask.plan import computed
from coxfield.dask.shards import Shards, read
from coxfield.kernels.sklearn_tree import length_unit
from coxfield.kernels.units import in_units
from coxfield.selection.grid import Moments, moments
from coxfield.utils.powers_of_two import units_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.dask.checks import Form
    from coxfield.kernels.per_class import PerClass


def class_distance(shards: Shards, kernels: PerClass, verbose: int = 0) -> float:
    """The typical distance of the points of a kernel's classes in units of its length scales, the largest of all."""
    survey, plan = shards.known, shards.plan()
    units = units_of(survey.sizes, shards.form.precision)
    origin = in_units(survey.first, units)
    form = plan.value("form", (shards.form, shards.classes, units, origin))
    keys = [plan.add("moments", shard_moments, form, kernels.owner, *parts) for parts in shards.references]
    (found,) = computed(plan.delayed([plan.tree("moments-join", joined_moments, keys)]), verbose)
    distinct = enumerate(kernels.distinct)
    return max(found[k].distance(length_unit(kernel)) for k, kernel in distinct if found[k].total)


def shard_moments(how: tuple[Form, NDArray, NDArray, Any], owner: NDArray, number: int, X, y, weights) -> list:
    """Moments of the points of each kernel in one shard."""
    form, classes, units, origin = how
    labelled = read(form, classes, number, X, y, weights).labelled
    found = []
    for k in range(int(owner.max()) + 1):
        rows = np.flatnonzero(owner[labelled.y] == k)
        some = labelled if len(rows) == len(labelled) else labelled[rows]
        found.append(moments(some.X, units, origin, some.weights))
    return found


def joined_moments(parts: Sequence[list[Moments]]) -> list[Moments]:
    """Moments over several sets of shards."""
    return [reduce(add, of_kernel) for of_kernel in zip(*parts, strict=True)]

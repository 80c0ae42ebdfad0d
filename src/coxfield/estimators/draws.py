"""Draws of label distributions for `SLGCPClassifier`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coxfield.field import PerturbAndMap, SwendsenWang, sample
from coxfield.field.chains import FEWEST
from coxfield.progress import progress

if TYPE_CHECKING:
    from coxfield.field import LabelField, Samples

CHAINS = 4  # chains of Swendsen-Wang: enough to see whether they agree
DRAWS = {"marginals": 800, "perturb_and_map": 100}


def check_draws(n_draws, inference: str) -> None:
    """Refuse a number of draws that is not an integer, or too small for standard errors."""
    fewest = FEWEST * (CHAINS if inference == "marginals" else 1)
    if n_draws is not None and (not isinstance(n_draws, int | np.integer) or n_draws < fewest):
        raise ValueError(f"n_draws must be None or an integer of at least {fewest}, got {n_draws!r}")


def draw(field: LabelField, inference: str, n_draws: int | None, rng: np.random.Generator, verbose: int) -> Samples:
    """Draws from the field by Swendsen-Wang ("marginals"), or approximate draws ("perturb_and_map")."""
    draws = DRAWS[inference] if n_draws is None else n_draws
    sampler: PerturbAndMap | SwendsenWang = SwendsenWang(field)
    size = {"n_samples": -(-draws // CHAINS), "n_chains": CHAINS}
    if inference == "perturb_and_map":  # draws are independent, so there is no burn-in
        sampler, size = PerturbAndMap(field), {"n_samples": draws, "n_chains": 1, "burn_in": 0}
    total = size["n_samples"] + size.setdefault("burn_in", max(10, size["n_samples"] // 10))
    with progress("draws", total, verbose, "fewer n_draws take less time") as done:
        return sample(sampler, **size, keep_labels=False, random_state=rng, done=done)

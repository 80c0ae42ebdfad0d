"""Everything that draws from a label field takes a random_state as scikit-learn does."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.field import (
    Gibbs,
    LabelField,
    PerturbAndMap,
    RandomisedCut,
    SwendsenWang,
    log_joint_predictive,
    log_partition,
    log_predictive_density,
    sample,
)

FIELD = LabelField.from_points(np.linspace(0, 3, 6)[:, None], 0.3 * RBF(0.5), labels=[-1] * 6)
ENDS = LabelField.from_points(np.linspace(0, 3, 8)[:, None], RBF(0.5), labels=[0, *[-1] * 6, 1])
QUICK = {"method": "annealing", "n_particles": 8, "n_temperatures": 4}
DRAWS = {
    "Gibbs": lambda seed: sample(Gibbs(FIELD), 20, random_state=seed).labels,
    "Swendsen-Wang": lambda seed: sample(SwendsenWang(FIELD), 20, random_state=seed).labels,
    "perturb-and-MAP": lambda seed: sample(PerturbAndMap(FIELD), 20, burn_in=0, random_state=seed).labels,
    "randomised cuts": lambda seed: sample(RandomisedCut(ENDS), 20, random_state=seed).labels,
    "annealing": lambda seed: log_partition(FIELD, random_state=seed, **QUICK).log_z,
    "subgraphs": lambda seed: log_partition(FIELD, random_state=seed, **{**QUICK, "method": "subgraphs"}).log_z,
    "joint predictive": lambda seed: log_joint_predictive(FIELD, [0, 1, *[-1] * 4], random_state=seed, **QUICK).value,
    "predictive density": lambda seed: log_predictive_density(FIELD, [1], random_state=seed, **QUICK).value,
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_int_generator_random_state_and_none(draw):
    first = draw(5)
    for same in (5, np.int64(5), np.random.default_rng(5)):
        np.testing.assert_array_equal(draw(same), first)
    assert not np.array_equal(draw(6), first)
    legacy = np.random.RandomState(5)
    second, third = draw(legacy), draw(legacy)
    np.testing.assert_array_equal(draw(np.random.RandomState(5)), second)
    assert not np.array_equal(second, third)
    assert not np.array_equal(draw(None), draw(None))


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize(
    ("wrong", "words"), [("dice", "random_state='dice' must be"), (-1, "random_state=-1 is negative")]
)
def test_anything_else_is_refused(draw, wrong, words):
    with pytest.raises(ValueError, match=words):
        draw(wrong)

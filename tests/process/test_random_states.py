"""Everything that draws takes a random_state as scikit-learn does."""

from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.process import (
    LogGaussianCoxProcess,
    Pattern,
    poisson_process,
    sample_gaussian_field,
    thin,
    thinned_label_distribution,
)

PROCESS = LogGaussianCoxProcess(RBF(1.0), mean=2.0)
CROWD = Pattern(np.linspace(0, 1, 1000)[:, None], (0, 1))
DRAWS = {
    "field": partial(sample_gaussian_field, RBF(1.0), (0, 4), resolution=16),
    "poisson": lambda **how: poisson_process(50.0, (0, 1), **how).points,
    "thin": lambda **how: thin(CROWD, 0.5, **how).points,
    "lgcp": lambda **how: PROCESS.sample((0, 4), resolution=16, **how).points,
    "labels": lambda **how: (
        thinned_label_distribution(
            [PROCESS, LogGaussianCoxProcess(RBF(0.5))], [[1.0]], (0, 4), 0.5, n_samples=100, resolution=16, **how
        ).probabilities
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_int_generator_random_state_and_none(name):
    draw = DRAWS[name]
    first = draw(random_state=5)
    np.testing.assert_array_equal(draw(random_state=np.random.default_rng(5)), first)
    legacy = np.random.RandomState(5)
    second, third = draw(random_state=legacy), draw(random_state=legacy)
    np.testing.assert_array_equal(draw(random_state=np.random.RandomState(5)), second)
    assert not np.array_equal(second, third)
    assert not np.array_equal(draw(random_state=None), draw(random_state=None))
    with pytest.raises(ValueError, match="random_state='dice' must be"):
        draw(random_state="dice")

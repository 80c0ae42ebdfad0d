import numpy as np
import pytest
from scipy.special import softmax
from sklearn.gaussian_process.kernels import RBF

from coxfield.estimators.label_fields import CHAINS, DRAWS, check_draws, draw
from coxfield.field import LabelField

X = np.random.default_rng(0).normal(size=(8, 2))
FIELD = LabelField.from_points(X, 0.8 * RBF(1.0), [0, 1, *[-1] * 6])
APART = LabelField.from_points(100.0 * np.arange(3)[:, None], RBF(1.0), [-1] * 3, mean=[0.0, 0.5])


def exact_marginals(field):
    labels, energies = field.enumerate()
    return np.stack([softmax(-energies) @ (labels == c) for c in range(field.n_classes)], axis=1)


@pytest.mark.parametrize("inference", DRAWS)
def test_a_number_of_draws_is_none_or_large_enough(inference):
    fewest = 16 if inference == "marginals" else 4
    for enough in (None, fewest, np.int64(fewest)):
        check_draws(enough, inference)
    for wrong in (fewest - 1, 0, -3, 100.0, "many"):
        with pytest.raises(ValueError, match=f"n_draws must be None or an integer of at least {fewest}, got "):
            check_draws(wrong, inference)


@pytest.mark.parametrize(("n_draws", "made"), [(16, 16), (18, 20), (None, DRAWS["marginals"])])
def test_chains_share_the_draws_and_none_draws_less(n_draws, made):
    samples = draw(FIELD, "marginals", n_draws, np.random.default_rng(0), 0)
    assert samples.n_draws == made
    assert samples.series.shape[0] == CHAINS
    assert samples.labels is None


@pytest.mark.parametrize(("n_draws", "made"), [(5, 5), (None, DRAWS["perturb_and_map"])])
def test_independent_draws_are_as_many_as_asked_for(n_draws, made):
    samples = draw(FIELD, "perturb_and_map", n_draws, np.random.default_rng(0), 0)
    assert samples.n_draws == made
    assert samples.series.shape[0] == 1


@pytest.mark.parametrize(("inference", "field"), [("marginals", FIELD), ("perturb_and_map", APART)])
def test_marginals_are_those_of_enumeration(inference, field):
    """Perturb-and-MAP is exact only where no node feels another."""
    samples = draw(field, inference, 400, np.random.default_rng(0), 0)
    assert (np.abs(samples.marginals - exact_marginals(field)) < 4.5 * samples.standard_errors).all()


@pytest.mark.parametrize("inference", DRAWS)
def test_the_generator_makes_draws_repeatable_and_moves_on(inference):
    rng = np.random.default_rng(1)
    first, second = (draw(FIELD, inference, 16, rng, 0).series for _ in range(2))
    np.testing.assert_array_equal(draw(FIELD, inference, 16, np.random.default_rng(1), 0).series, first)
    assert not np.array_equal(first, second)


def test_progress_is_told(capsys):
    draw(FIELD, "marginals", 16, np.random.default_rng(0), verbose=1)
    assert "draws" in capsys.readouterr().err

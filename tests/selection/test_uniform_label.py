import numpy as np
from scipy.optimize import minimize_scalar

from coxfield.selection import loo
from tolerances import assert_close


def test_the_uniform_label_counts_as_one_point():
    assert loo.share(4.0) == 1 / 5


def test_the_mixture_is_the_expected_value_under_mixed_labels():
    values, y = np.random.default_rng(0).normal(size=(2, 5, 3)), np.array([0, 1, 2, 2, 0])
    share = loo.share(5.0)
    expected = [[(1 - share) * row[c] + share * row.mean() for row, c in zip(one, y, strict=True)] for one in values]
    assert_close(loo.mixed(values, y, 5.0), expected, terms=4, scale=np.abs(values).max())


def test_when_all_labels_are_right_the_best_odds_are_finite():
    y = np.zeros(20, int)

    def loss(log_odds):
        log_p = np.tile([-np.log1p(np.exp(-log_odds)), -np.log1p(np.exp(log_odds))], (20, 1))
        return -loo.mixed(log_p, y, 20.0).mean()

    # One label of 21 is uniform: the right class has probability 20.5 / 21.
    assert abs(minimize_scalar(loss, bounds=(0, 20)).x - np.log(41)) < 1e-3

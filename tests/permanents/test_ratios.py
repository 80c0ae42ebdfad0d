import numpy as np
import pytest

from coxfield.permanents.ratios import excess_sums
from tolerances import assert_close


def test_the_excess_may_be_negative_as_long_as_the_ratio_is_positive():
    prior = np.log([[2.0, 2.0]])
    sums = excess_sums(prior, np.array([[1.0, -1.0]]), np.log([[3.0, 0.5]]))
    np.testing.assert_allclose(np.exp(prior + sums.values), [[5.0, 1.5]])
    assert_close(sums.logs, [[np.log(3.0), -np.inf]])


def test_a_ratio_that_is_not_positive_gets_a_sentence():
    with pytest.raises(ValueError, match="no permanental process for this alpha and covariance"):
        excess_sums(np.zeros((1, 1)), -np.ones((1, 1)), np.zeros((1, 1)))

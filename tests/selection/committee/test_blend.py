import numpy as np
from scipy.special import softmax

from coxfield.selection.committee.blend import Blend, blend
from coxfield.selection.committee.sums import Given, MemberSums
from tolerances import assert_close

MEAN = np.array([0.1, 0.0, -0.2])


def test_a_blend_is_the_softmax_of_a_weighted_sum():
    sums = list(np.random.default_rng(0).normal(size=(4, 9, 3)))
    weights = np.array([0.5, 0.0, 2.0, 1.0])
    expected = softmax(MEAN + sum(w * s for w, s in zip(weights, sums, strict=True)), axis=1)
    assert_close(Blend(weights, MEAN).probabilities(sums), expected, terms=8, condition=20)


def test_a_member_that_knows_the_labels_has_the_weight():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 6)
    given = Given(np.arange(18), y, 3)
    right = np.eye(3)[y] + 0.1 * rng.normal(size=(18, 3))
    sums = [MemberSums(one, one, np.empty((0, 3))) for one in (rng.normal(size=(18, 3)), right)]
    found = blend(sums, given, np.zeros(3))
    assert (found.weights >= 0).all()
    assert found.weights[1] > 10 * found.weights[0]
    assert (found.probabilities([one.whole for one in sums]).argmax(axis=1) == y).all()


def test_labels_without_company_do_not_count():
    rng = np.random.default_rng(0)
    y = np.array([0, 0, 1, 1, 2])
    left_out = rng.normal(size=(2, 5, 3)) + np.eye(3)[y]
    changed = left_out.copy()
    changed[:, 4] = rng.normal(size=(2, 3)) * 100
    weights = [
        blend([MemberSums(one, one, np.empty((0, 3))) for one in sums], Given(np.arange(5), y, 3), MEAN).weights
        for sums in (left_out, changed)
    ]
    np.testing.assert_array_equal(*weights)

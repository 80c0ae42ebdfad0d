"""Members of a bank."""

import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.kernels.mixture_ladder import ALPHAS, Member


def test_a_member_is_squared_exponentials_on_the_features_by_default():
    member = Member()
    assert member.kernel is None
    assert (member.transform, member.alphas) == ("raw", ALPHAS)


def test_members_do_not_change():
    with pytest.raises(AttributeError):
        Member(RBF(1.0)).kernel = RBF(2.0)

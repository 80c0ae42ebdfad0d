import numpy as np
import pytest
from scipy import sparse

from coxfield.graphs.heat import effective_rank
from coxfield.graphs.linear import Axes
from coxfield.graphs.modes import Modes, lowest_modes
from coxfield.graphs.shape import shape_of_points
from coxfield.selection.committee.bank import SHRINKAGES, TIES, graph_members, linear_members, n_modes

POINTS = np.random.default_rng(0).normal(size=(120, 3))


def test_members_have_unit_features_with_and_without_mode_0():
    modes = shape_of_points(POINTS, TIES[:1], 120).modes[0]
    found = list(graph_members(0, modes, 3))
    assert {member.means for member, _ in found} == {False, True}
    for member, features in found:
        np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=1e-9)
        assert member.rank <= 120 / 4
        assert effective_rank(modes.values, member.parameter) == pytest.approx(member.rank, rel=1e-6)


def test_ranks_begin_at_the_number_of_classes_and_stay_below_what_the_modes_resolve():
    modes = shape_of_points(POINTS, TIES[:1], 20).modes[0]
    ranks = [member.rank for member, _ in graph_members(0, modes, 5)]
    assert min(ranks) == pytest.approx(1.2 * 4)
    assert max(ranks) <= 0.6 * 20
    assert list(graph_members(0, modes, 50))  # more classes than modes: one member still


def test_a_graph_that_falls_apart_has_no_member_twice():
    block = np.ones((5, 5)) - np.eye(5)
    modes = lowest_modes(sparse.csr_array(np.kron(np.eye(20), block)), 100)
    times = [member.parameter for member, _ in graph_members(0, modes, 2) if member.means]
    assert len(times) == len(set(times))


def test_one_mode_has_no_members():
    assert list(graph_members(0, Modes(np.zeros(1), np.ones((1, 1))), 2)) == []


def test_linear_members_have_all_shrinkages_unless_points_are_equal():
    axes = Axes.of(POINTS)
    found = list(linear_members(axes, axes.coordinates(POINTS)))
    assert [member.parameter for member, _ in found] == list(SHRINKAGES)
    assert all(member.means and member.source == -1 and 1 <= member.rank <= 3 for member, _ in found)
    same = Axes.of(np.ones((5, 2)))
    assert list(linear_members(same, same.coordinates(np.ones((5, 2))))) == []


def test_number_of_modes():
    assert n_modes(40, 3) == 40
    assert n_modes(1000, 3) == 64
    assert n_modes(1000, 26) == 150

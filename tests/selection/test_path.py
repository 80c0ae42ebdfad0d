import numpy as np

from coxfield.selection.loo import SelectionPath


def path(criteria, **columns):
    return SelectionPath({name: np.asarray(column) for name, column in columns.items()}, criteria)


def test_the_first_criterion_decides_and_the_next_breaks_ties():
    tried = {"factor": [4.0, 3.0, 2.0, 1.0], "error": [0.3, 0.1, 0.1 + 1e-15, 0.1], "loss": [0.1, 0.5, 0.4, 0.6]}
    assert path(("error", "loss"), **tried).best == 2
    assert path(("loss",), **tried).best == 0


def test_the_longest_length_scale_wins_the_remaining_ties():
    assert path(("error",), factor=[8.0, 4.0, 2.0, 1.0, 0.5], error=[0.5, 0.2, 0.1, 0.0, 0.0]).best == 3


def test_nan_never_wins():
    untried = [np.nan, np.nan, 0.2, 0.3, 0.2]
    assert path(("error",), factor=[8.0, 4.0, 2.0, 1.0, 0.5], error=untried).best == 2


def test_truth_values_are_criteria_too():
    tried = {"factor": [2.0, 1.0], "trivial": [True, False], "loss": [0.1, 0.6]}
    assert path(("trivial", "loss"), **tried).best == 1
    assert path(("trivial", "loss"), factor=[2.0], trivial=[True], loss=[0.1]).best == 0


def test_paths_are_joined_in_order_of_length():
    one = SelectionPath.of([{"factor": 1.0, "error": 0.1}, {"factor": 4.0, "error": 0.2}], ("error",))
    two = SelectionPath.of([{"factor": 2.0, "error": 0.0}], ("error",))
    joined = one.joined(two)
    assert joined["factor"].tolist() == [4.0, 2.0, 1.0]
    assert joined["error"].tolist() == [0.2, 0.0, 0.1]
    assert joined.chosen("factor") == 2.0
    assert len(joined) == 3


def test_users_see_length_scales_and_the_choice():
    table = path(("error",), factor=[4.0, 2.0], error=[0.2, 0.1]).table(0.5)
    assert list(table) == ["length_scale", "error", "chosen"]
    assert table["length_scale"].tolist() == [2.0, 1.0]
    assert table["chosen"].tolist() == [False, True]


def test_an_empty_path_has_length_zero():
    assert len(SelectionPath.of([], ("error",))) == 0

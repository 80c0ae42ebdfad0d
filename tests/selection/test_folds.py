import numpy as np
import pytest

from coxfield.selection.grid import check_folds, folds, hide


def test_folds_partition_the_labelled_rows_and_share_out_the_classes():
    codes = np.array([0, 1, -1, 0, 0, 1, -1, 1, 0, 1, 2, 2])
    hidden = folds(codes, 2)
    assert sorted(np.concatenate(hidden)) == [0, 1, 3, 4, 5, 7, 8, 9, 10, 11]
    for rows in hidden:
        assert np.bincount(codes[rows]).tolist() == [2, 2, 1]
    assert [len(rows) for rows in folds(codes, 50)] == [1] * 10


def test_hiding_does_not_change_the_given_labels():
    codes = np.array([0, 1, -1])
    assert hide(codes, np.array([0])).tolist() == [-1, 1, -1]
    assert codes.tolist() == [0, 1, -1]


@pytest.mark.parametrize("n_folds", [1, 2.0, "ten", None])
def test_wrong_numbers_of_folds_are_refused(n_folds):
    with pytest.raises(ValueError, match="n_folds must be an integer of at least 2, got"):
        check_folds(n_folds)

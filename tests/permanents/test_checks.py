"""What the functions on alpha-permanents take and refuse."""

import numpy as np
import pytest

from coxfield.permanents.exact import check_alpha, check_covariances, check_square


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (np.ones((2, 3)), r"square matrix, got shape \(2, 3\): give"),
        (np.ones((0, 3)), r"square matrix, got shape \(0, 3\): give"),
        ([[1.0, np.nan], [0.0, 1.0]], "A contains NaN"),
        ([1.0, 2.0], "2D array"),
    ],
)
def test_what_is_no_square_matrix_is_refused(A, message):
    with pytest.raises(ValueError, match=message):
        check_square(A)


def test_a_matrix_may_have_no_rows():
    assert check_square([]).shape == (0, 0)
    assert check_square(np.empty((0, 0))).shape == (0, 0)
    assert check_square([[1, 2], [3, 4]]).dtype == float


@pytest.mark.parametrize(
    ("A", "message"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], "must be symmetric.*: give"),
        ([[1.0, -0.5], [-0.5, 1.0]], "negative entries, got -0.5: use alpha_permanent"),
        ([[1.0, 0.0], [0.0, 0.0]], "diagonal of A must be positive, got 0: leave out"),
    ],
)
def test_what_is_no_matrix_of_covariances_is_refused(A, message):
    with pytest.raises(ValueError, match=message):
        check_covariances(A)


def test_rounding_does_not_spoil_symmetry():
    A = np.array([[1.0, 0.5], [0.5 * (1 + 4e-16), 1.0]])
    np.testing.assert_array_equal(check_covariances(A), A)


def test_alpha_is_finite_and_positive_if_it_must_be():
    assert check_alpha(-1, positive=False) == -1.0
    assert check_alpha(np.float32(0.5), positive=True) == 0.5
    with pytest.raises(ValueError, match=r"alpha must be a positive finite number, got -1"):
        check_alpha(-1, positive=True)
    with pytest.raises(ValueError, match=r"alpha must be a finite number, got inf"):
        check_alpha(np.inf, positive=False)

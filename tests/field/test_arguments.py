import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from covariance_doubles import RowCovariance
from coxfield.field.arguments import check_labels, field_covariances
from coxfield.kernels.per_class import PerClass

X = np.zeros((4, 2))


@pytest.mark.parametrize("labels", [[0, 1, -1, 2], (0, 1, -1, 2), np.array([0, 1, -1, 2], np.int8)])
def test_class_numbers_become_integers(labels):
    found = check_labels(labels, X, 3)
    assert found.tolist() == [0, 1, -1, 2]
    assert found.dtype == int


def test_no_points_have_no_labels():
    assert check_labels([], np.zeros((0, 2)), None).shape == (0,)


@pytest.mark.parametrize(
    ("labels", "n_classes", "words"),
    [
        ([0, 1, -1], None, "inconsistent numbers of samples"),
        ([0.0, 1.0, -1.0, 0.0], None, "labels must be class numbers, -1 for the unknown, got an array of float64"),
        (["a", "b", "a", "b"], None, "labels must be class numbers"),
        ([True, False, True, False], None, "labels must be class numbers, .* got an array of bool"),
        ([[0], [1], [0], [1]], None, "labels must be class numbers"),
        ([0, 1, -2, 0], None, "labels must lie between -1 and n_classes - 1, got -2 to 1"),
        ([0, 1, 2, 0], 2, "labels must lie between -1 and n_classes - 1, got 0 to 2"),
    ],
)
def test_what_is_no_class_number_is_refused(labels, n_classes, words):
    with pytest.raises(ValueError, match=words):
        check_labels(labels, X, n_classes)


SHORT, LONG = RBF(1.0), 2.0 * Matern(3.0)


@pytest.mark.parametrize(
    "kernel",
    [[SHORT, LONG, SHORT], (SHORT, LONG, RBF(1.0)), {0: SHORT, 2: SHORT, 1: LONG}, PerClass.of([SHORT, LONG, SHORT])],
    ids=["list", "tuple", "mapping", "value"],
)
def test_kernels_per_class_share_what_is_equal(kernel):
    found = field_covariances(kernel, 3, 2)
    assert [covariance.kernel for covariance in found] == [SHORT, LONG, SHORT]
    assert found.owner.tolist() == [0, 1, 0]


def test_one_kernel_serves_all_classes():
    found = field_covariances(SHORT, 3, 2)
    assert found.shared
    assert len(found) == 3


def test_a_covariance_of_the_users_own_stays_as_it_is():
    own = RowCovariance(np.eye(3))
    assert field_covariances(own, 2, 1)[1] is own
    with pytest.raises(ValueError, match="the matrix has negative entries"):
        field_covariances(RowCovariance(-np.eye(3)), 2, 1)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ([SHORT] * 2, "got 2 kernels for 3 classes: give one, or one per class"),
        ({0: SHORT, 1: SHORT}, "kernel has no entry for the class 2"),
        ({0: SHORT, 1: SHORT, 2: SHORT, 7: SHORT}, "kernel names the class 7"),
        ([SHORT, DotProduct(), SHORT], "DotProduct.* may take negative values"),
        (RBF([1.0, 2.0, 3.0]), "3 entries but the data have 2 features"),
    ],
    ids=["too few", "missing", "stranger", "negative", "features"],
)
def test_kernels_that_make_no_field_are_refused(kernel, words):
    with pytest.raises(ValueError, match=words):
        field_covariances(kernel, 3, 2)

"""What label fields take from users, and what they refuse with a sentence."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from covariance_doubles import RowCovariance
from coxfield.field import LabelField
from coxfield.field.potts import (
    check_couplings,
    check_labels,
    check_length,
    check_table,
    field_covariances,
    number_of_classes,
    unary_costs,
)
from coxfield.kernels.protocol import PerClass

X = np.zeros((4, 2))


@pytest.mark.parametrize("labels", [[0, 1, -1, 2], (0, 1, -1, 2), np.array([0, 1, -1, 2], np.int8)])
def test_class_numbers_become_integers(labels):
    found = check_labels(labels, X, 3)
    assert found.tolist() == [0, 1, -1, 2]
    assert found.dtype == int


def test_labels_without_a_sign_are_all_known():
    assert check_labels(np.array([0, 1, 1, 2], np.uint8), X, None).tolist() == [0, 1, 1, 2]


def test_no_points_have_no_labels():
    assert check_labels([], np.zeros((0, 2)), None).shape == (0,)


@pytest.mark.parametrize(
    ("labels", "n_classes", "words"),
    [
        ([0, 1, -1], None, "inconsistent numbers of samples"),
        (
            [0.0, 1.0, -1.0, 0.0],
            None,
            r"labels must be class numbers, .* got an array of float64 of shape \(4,\): np.unique",
        ),
        ([0, 1j, 0, 1], None, "labels must be class numbers, -1 for the unknown, got an array of complex128"),
        ([0, None, 0, 1], None, "labels must be class numbers, -1 for the unknown, got an array of object"),
        ([0, 10**30, 0, 1], None, "labels must be class numbers, -1 for the unknown, got an array of object"),
        (
            np.array([0, 1, "NaT", 0], "m8[D]"),
            None,
            r"labels must be class numbers, .* got an array of timedelta64\[D\]",
        ),
        ({0, 1, 2, 3}, None, r"labels must be class numbers, .* got an array of object of shape \(\)"),
        (
            np.uint64([0, 1, 2**63, 0]),
            None,
            "labels must lie between -1 and n_classes - 1, got 0 to 9223372036854775808",
        ),
        ([0, 1, -1, 0], 0, "n_classes must be a whole number of at least 1, got 0"),
        ([0, 1, -1, 0], 2.5, "n_classes must be a whole number of at least 1, got 2.5"),
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


@pytest.mark.parametrize(
    ("labels", "per_class", "expected"),
    [
        ([-1, -1], (), 2),
        ([0, 3, -1], (), 4),
        ([0, 1, -1], (["kernel"] * 5,), 5),
        ([0, 999], (), 1000),
        ([0, 1999], (["kernel"] * 2000,), 2000),
        (np.arange(1500), (), 1500),
    ],
)
def test_the_number_of_classes_fits_labels_and_what_is_given_per_class(labels, per_class, expected):
    assert number_of_classes(np.array(labels), None, *per_class) == expected
    assert number_of_classes(np.array(labels), 5000, *per_class) == 5000


BUILDERS = {
    "points": lambda labels, **how: LabelField.from_points(np.arange(3.0)[:, None], RBF(1.0), labels, **how),
    "graph": lambda labels, **how: LabelField.from_graph(np.ones((3, 3)), labels, **how),
}


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
@pytest.mark.parametrize(
    ("labels", "n_classes", "words"),
    [
        (
            [0, 10**9, -1],
            None,
            r"labels must be class numbers 0, 1, 2 and so on, got 1000000000 for 3 points: number the ",
        ),
        ([0, 1000, -1], None, r"got 1000 for 3 points: number the classes by np.unique\(.*\), or give n_classes"),
        (
            [0, 10**9, -1],
            10**9 + 1,
            "1000000001 classes of 3 points would take about 432 GiB of memory: give n_classes as",
        ),
        ([0, 1, -1], 10**9, "1000000000 classes of 3 points would take about 432 GiB of memory"),
    ],
)
def test_absurd_numbers_of_classes_are_refused_before_memory_is_asked_for(build, labels, n_classes, words):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=words):
            build(labels, n_classes=n_classes)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


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


A = np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.5], [0.0, 0.5, 0.0]])


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int8, np.uint16, bool])
def test_couplings_become_sparse_numbers_in_double_precision(kind):
    found = check_couplings(A.astype(kind))
    assert isinstance(found, sparse.csr_array)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found.toarray(), A.astype(kind).astype(float))


def test_the_diagonal_zeros_and_repeated_entries_vanish():
    i, j = [0, 1, 0, 1, 2, 0, 2], [1, 0, 1, 0, 2, 2, 0]
    given = sparse.coo_array(([1.0, 1.5, 1.0, 0.5, np.nan, 0.0, 0.0], (i, j)), shape=(3, 3))
    found = check_couplings(given)
    assert found.toarray().tolist() == [[0, 2, 0], [2, 0, 0], [0, 0, 0]]
    assert found.nnz == 2
    assert found.has_canonical_format
    assert given.nnz == 7


def test_a_given_matrix_is_not_changed():
    given = sparse.csr_array(([1.0, 1.0, 5.0], [1, 0, 1], [0, 1, 3]), shape=(2, 2))
    before = given.data.copy(), given.indices.copy()
    check_couplings(given)
    np.testing.assert_array_equal(given.data, before[0])
    np.testing.assert_array_equal(given.indices, before[1])


def test_differences_by_rounding_are_symmetric():
    given = A.copy()
    given[0, 1] = np.nextafter(2.0, 3.0)
    found = check_couplings(given).toarray()
    np.testing.assert_array_equal(found, found.T)
    assert 2 <= found[0, 1] <= given[0, 1]


def changed(i, j, value, back=None):
    given = A.copy()
    given[i, j], given[j, i] = value, value if back is None else back
    return given


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.coo_array])
@pytest.mark.parametrize(
    ("couplings", "words"),
    [
        (A[:2], r"couplings must be a square matrix .* got shape \(2, 3\)"),
        (changed(0, 2, 1.0, 0.25), r"the entry \(0, 2\) is 1 and the entry \(2, 0\) is 0.25: give \(A \+ A.T\) / 2"),
        (changed(0, 2, 1.0, 0.0), r"the entry \(0, 2\) is 1 and the entry \(2, 0\) is 0: give"),
        (changed(1, 2, -0.5), "the coupling of the nodes 1 and 2 is -0.5, which is negative: minimum cuts need"),
        (changed(0, 1, np.nan), "the coupling of the nodes 0 and 1 is nan, which is not finite: give a number"),
        (changed(0, 1, np.inf), "the coupling of the nodes 0 and 1 is inf, which is not finite"),
        (A + 1j, "couplings must be real numbers, got a matrix of complex128"),
    ],
    ids=["shape", "asymmetric", "one way", "negative", "nan", "infinite", "complex"],
)
def test_couplings_that_make_no_graph_are_refused(couplings, words, form):
    with pytest.raises(ValueError, match=words):
        check_couplings(form(couplings))


@pytest.mark.parametrize(
    ("couplings", "words"),
    [([1.0, 2.0], r"got shape \(2,\)"), ([["a", "b"], ["b", "a"]], "got a matrix of <U1")],
    ids=["one row", "text"],
)
def test_arrays_that_are_no_matrix_of_numbers_are_refused(couplings, words):
    with pytest.raises(ValueError, match=words):
        check_couplings(couplings)


def test_one_label_per_node():
    check_length([0, -1, 1], 3)
    for labels in ([0, -1], [[0, -1, 1]]):
        with pytest.raises(ValueError, match=r"labels must hold one class number per node, .* couplings have 3 nodes"):
            check_length(labels, 3)


def test_costs_are_those_of_unlabelled_nodes():
    table = check_table([[1, 2], [3, 4], [5, 6]], 3)
    found = unary_costs(table, np.array([-1, 0, -1]), 2)
    assert found.tolist() == [[1, 2], [5, 6]]
    assert found.dtype == np.float64


def test_no_costs_are_zero():
    assert unary_costs(check_table(None, 3), np.array([-1, 0, -1]), 2).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("unary", "words"),
    [
        (np.zeros(3), r"unary must be a table with a row for each of the 3 nodes and a column per class, got .*\(3,\)"),
        (np.zeros((2, 2)), r"a row for each of the 3 nodes .* got shape \(2, 2\)"),
        (np.zeros((3, 3)), "unary has 3 columns for 2 classes: give one column per class"),
        ([["a", "b"]] * 3, "unary must be real numbers, got an array of <U1"),
        ([[0, 0], [0, 0], [0, np.nan]], "cost of class 1 at the node 2 is nan, which is not finite: give a large cost"),
        ([[0, 0], [0, 0], [np.inf, 0]], "cost of class 0 at the node 2 is inf"),
    ],
    ids=["one column", "rows", "columns", "text", "nan", "infinite"],
)
def test_costs_that_make_no_field_are_refused(unary, words):
    with pytest.raises(ValueError, match=words):
        LabelField.from_graph(A, [0, -1, -1], unary=unary, n_classes=2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": [0, -1]}, "labels must hold one class number per node"),
        ({"labels": [0, 2, -1], "n_classes": 2}, "between -1 and n_classes - 1, got -1 to 2"),
        ({"labels": [0, -2, -1]}, "between -1 and"),
        ({"labels": [0.0, 1.0, -1.0]}, "class numbers"),
        ({"mean": [0.0, np.inf]}, "mean must be finite"),
    ],
)
def test_other_arguments_are_checked_as_those_of_points(changes, words):
    arguments = {"labels": [0, 1, -1]} | changes
    with pytest.raises(ValueError, match=words):
        LabelField.from_graph(A, **arguments)

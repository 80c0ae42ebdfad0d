import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.estimators.validation import (
    WIDEST,
    check_labelled_points,
    check_option,
    check_points,
    check_weights,
    like,
    shown_kernel,
)
from coxfield.kernels.per_class import PerClass

X = np.zeros((4, 2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", [2, 2.0, [2, 2, 2, 2], np.full(4, 2.0, np.float32)])
def test_weights_are_numbers_of_the_precision_of_the_points(weights, dtype):
    found = check_weights(weights, X.astype(dtype))
    assert found.tolist() == [2.0] * 4
    assert found.dtype == dtype


def test_no_weights_are_none():
    assert check_weights(None, X) is None


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, 2.0, 3.0], "inconsistent numbers of samples"),
        ([1.0, -2.0, 3.0, 1.0], "sample_weight must not be negative, got -2: leave such rows out instead"),
        ([0.0] * 4, "sample_weight is zero everywhere: at least one point must count"),
        (0, "sample_weight is zero everywhere"),
        ([[1.0]] * 4, r"1D array or scalar, got an array of shape \(4, 1\)"),
        ([1.0, np.nan, 1.0, 1.0], "sample_weight contains NaN"),
        ([1.0, np.inf, 1.0, 1.0], "sample_weight contains infinity"),
    ],
)
def test_what_is_no_weight_is_refused(weights, words):
    with pytest.raises(ValueError, match=words):
        check_weights(weights, X)


@pytest.mark.parametrize("thin", [False, True])
def test_points_become_as_sparse_or_as_dense_as_those_of_training(thin):
    data = np.array([[0.0, 1.0], [2.0, 0.0]])
    training = sparse.csr_array(X) if thin else X
    for given in (data, sparse.csr_array(data)):
        found = like(given, training)
        assert sparse.issparse(found) == thin
        np.testing.assert_array_equal(found.toarray() if thin else found, data)
        assert (found is given) == (sparse.issparse(given) == thin)


def test_kernels_are_shown_as_they_were_given():
    kernels, classes = PerClass.of([RBF(1.0), Matern(2.0)]), np.array(["a", "b"])
    assert shown_kernel(kernels, {"a": RBF(), "b": Matern()}, classes) == {"a": RBF(1.0), "b": Matern(2.0)}
    assert shown_kernel(PerClass.shared_by(RBF(3.0), 2), RBF(1.0), classes) == RBF(3.0)
    assert shown_kernel(PerClass.shared_by(RBF(3.0), 2), None, classes) == RBF(3.0)


def test_options_are_one_of_those_allowed():
    check_option("method", None, ("fast", None))
    with pytest.raises(ValueError, match="method must be one of 'fast', None; got 'slow'"):
        check_option("method", "slow", ("fast", None))


def wide(columns):
    """Four rows of a sparse matrix; each has one entry."""
    return sparse.csr_array((np.ones(4), np.array([0, 1, 2, columns - 1]), np.arange(5)), shape=(4, columns))


@pytest.mark.parametrize(
    "estimator",
    [LGCPClassifier(), LGCPClassifier(RBF(), selection=None), SLGCPClassifier(), SLGCPClassifier(inference="map")],
    ids=str,
)
def test_sparse_matrices_of_too_many_columns_are_refused_before_memory_is_asked_for(estimator):
    words = (
        "X has 5000000000 columns, and a fit holds many vectors of one number per column, of 37 GiB each: hash the "
        f"features into at most {WIDEST} columns, or leave out the empty ones (np.unique(X.indices, "
    )
    with pytest.raises(ValueError, match=re.escape(words)):
        estimator.fit(wide(5 * 10**9), [0, 1, 0, -1] if isinstance(estimator, SLGCPClassifier) else [0, 1, 0, 1])


def test_the_remedy_for_too_many_columns_works():
    X = wide(5 * 10**9)
    columns, indices = np.unique(X.indices, return_inverse=True)
    fewer = sparse.csr_array((X.data, indices, X.indptr), shape=(4, len(columns)))
    np.testing.assert_array_equal(check_points(LGCPClassifier(), fewer, accept_sparse="csr").toarray(), np.eye(4))


def test_the_largest_number_of_columns_is_taken():
    assert check_points(LGCPClassifier(), wide(WIDEST), accept_sparse="csr").shape == (4, WIDEST)


def test_a_graph_has_as_many_columns_as_points():
    """Of a graph, columns are no features. It is refused for another reason here: it is not square."""
    with pytest.raises(ValueError, match="precomputed affinities must be a square matrix"):
        SLGCPClassifier("precomputed").fit(wide(WIDEST + 1), [0, 1, 0, -1])


def test_points_come_with_their_labels():
    found, y = check_labelled_points(LGCPClassifier(), [[0, 1]] * 3, ["a", "b", "a"], dtype=np.float64)
    assert found.dtype == np.float64
    assert y.tolist() == ["a", "b", "a"]
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        check_labelled_points(LGCPClassifier(), [[0, 1]] * 3, ["a", "b"])


def test_new_points_are_compared_with_those_of_the_fit():
    estimator = LGCPClassifier()
    check_points(estimator, np.zeros((3, 2)))
    with pytest.raises(ValueError, match="X has 5 features, but LGCPClassifier is expecting 2 features as input"):
        check_points(estimator, np.zeros((3, 5)), reset=False)

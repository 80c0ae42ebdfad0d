import numpy as np
import pytest
from scipy import sparse

from coxfield.dask.chunks import Form, Recipe, checked_labels, checked_weights

X = np.arange(6.0).reshape(3, 2)
FORM = Form(np.dtype(float), 2)


def test_points_in_the_right_precision_and_form():
    found = Form(np.dtype("f4"), 2).points(X, 0)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, X)
    made_sparse = Form(np.dtype(float), 2, sparse=True).points(X, 0)
    np.testing.assert_array_equal(made_sparse.toarray(), X)
    np.testing.assert_array_equal(Form(np.dtype(float), 2, sparse=False).points(sparse.coo_array(X), 0), X)


def test_a_recipe_is_made():
    np.testing.assert_array_equal(FORM.points(Recipe({"x": (np.multiply, X, 2)}, "x"), 0), 2 * X)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_what_is_not_finite_is_named(make, value, word):
    wrong = X.copy()
    wrong[2, 1] = value
    with pytest.raises(ValueError, match=f"Input X contains {word}: column 1 in row 2 of chunk 7, where"):
        FORM.points(make(wrong), 7)
    with pytest.raises(ValueError, match=f"contains {word}: column 'b' in row 2"):
        Form(np.dtype(float), 2, ("a", "b")).points(make(wrong), 7)


def test_large_numbers_are_finite():
    large = np.full((3, 2), 1e308)
    np.testing.assert_array_equal(FORM.points(large, 0), large)


def test_text_is_named():
    wrong = np.array([[1.0, "x"], [2.0, "y"]], dtype=object)
    with pytest.raises(ValueError, match="column 1 of X holds no numbers in chunk 4, such as 'x'"):
        FORM.points(wrong, 4)


def test_a_chunk_of_another_width():
    with pytest.raises(ValueError, match=r"chunk 4 of X has the shape \(3, 1\), where 2 columns were promised"):
        FORM.points(X[:, :1], 4)


def test_labels_of_another_length_or_blank():
    with pytest.raises(ValueError, match="chunk 2 of X has 3 rows, and that of y has 2"):
        checked_labels(np.zeros(2, int), X, 2, "Classifier")
    with pytest.raises(ValueError, match="chunk 2: Input y contains NaN in row 1"):
        checked_labels(np.array([0.0, np.nan, 1.0]), X, 2, "Classifier")


def test_weights():
    assert checked_weights(None, X, 0) is None
    np.testing.assert_array_equal(checked_weights(np.array([0, 1, 2]), X, 0), [0.0, 1.0, 2.0])
    for wrong in (-1.0, np.nan, 1e30, 1e-30):
        with pytest.raises(ValueError, match="in chunk 3: give 0, or numbers between"):
            checked_weights(np.array([1.0, wrong, 1.0]), X, 3)
    with pytest.raises(ValueError, match="one number per row"):
        checked_weights(np.ones(2), X, 3)


def test_chunks_of_other_libraries_stay_on_their_device():
    strict = pytest.importorskip("array_api_strict")
    there = strict.asarray(X, device=strict.Device("device1"))
    for precision, dtype in ((float, strict.float64), (np.float32, strict.float32)):
        found = Form(np.dtype(precision), 2).points(there, 0)
        assert found.device == there.device
        assert found.dtype == dtype
    with pytest.raises(ValueError, match=r"chunk 3 of X holds array_api_strict arrays on .* give all in one form"):
        Form(np.dtype(float), 2, sparse=True).points(there, 3)
    bad = X.copy()
    bad[1, 0] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN: column 0 in row 1 of chunk 2, where"):
        FORM.points(strict.asarray(bad, device=strict.Device("device1")), 2)
    assert checked_labels(strict.asarray([0, 1, 1]), X, 0, "Classifier").tolist() == [0, 1, 1]
    assert checked_weights(strict.asarray([0.0, 1.0, 2.0]), X, 0).tolist() == [0, 1, 2]

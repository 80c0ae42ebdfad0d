import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from coxfield.dask import chunks
from dask import dataframe as dd

X = np.arange(24.0).reshape(12, 2)


def test_columns_become_one_chunk_and_rows_keep_theirs():
    given = chunks.points(da.from_array(X, chunks=(5, 1)))
    assert given.X.chunks == ((5, 5, 2), (2,))
    np.testing.assert_array_equal(given.X.compute(), X)
    assert not given.here


@pytest.mark.parametrize(("dtype", "precision"), [("f4", "f4"), ("f8", "f8"), ("i4", "f8"), ("f2", "f8")])
def test_only_float32_stays(dtype, precision):
    assert chunks.points(da.from_array(X.astype(dtype), chunks=(5, 2))).precision == np.dtype(precision)


def test_a_numpy_array_is_cut():
    given = chunks.points(np.zeros((chunks.ROWS + 1, 2)))
    assert given.here
    assert given.lengths == (chunks.ROWS, 1)


@pytest.mark.parametrize("wrong", [sparse.csr_array(X), pd.DataFrame(X), X.tolist(), None])
def test_what_is_no_dask_collection_is_refused(wrong):
    with pytest.raises(TypeError, match="X must be a Dask array or data frame, or a NumPy array"):
        chunks.points(wrong)


def test_a_frame_in_memory_is_told_how_to_become_one_of_dask():
    with pytest.raises(TypeError, match=r"got DataFrame: give dask.dataframe.from_pandas\(X, npartitions=1\), or"):
        chunks.points(pd.DataFrame(X))


def test_wrong_dimensions():
    with pytest.raises(ValueError, match="X must have two dimensions, got 1"):
        chunks.points(da.zeros(3))
    with pytest.raises(ValueError, match="y must have one dimension, got 2"):
        chunks.column(da.zeros((12, 2)), da.from_array(X), "y")


def test_labels_in_other_chunks_are_cut_again():
    there = da.from_array(X, chunks=(5, 2))
    for y in (da.arange(12, chunks=4), np.arange(12), list(range(12))):
        found = chunks.column(y, there, "y")
        assert found.chunks == ((5, 5, 2),)
        np.testing.assert_array_equal(found.compute(), np.arange(12))


def test_another_number_of_rows():
    with pytest.raises(ValueError, match="X has 12 rows, and y has 11: give one value per row"):
        chunks.column(da.arange(11), da.from_array(X), "y")


def frame(parts):
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1].astype("f4"), "text": list("abcdefghijkl")})
    return dd.from_pandas(table, npartitions=parts)


def test_frames_have_names_and_unknown_lengths():
    given = chunks.points(frame(3)[["a", "b"]])
    assert given.names == ("a", "b")
    assert np.isnan(given.lengths).all()
    np.testing.assert_array_equal(given.X.compute(), X)
    y = chunks.column(frame(3)["text"], given.X, "y")
    assert y.compute().tolist() == list("abcdefghijkl")


def test_blanks_of_a_frame_are_nan():
    table = pd.DataFrame({"a": pd.array([1.0, None], dtype="Float64")})
    found = chunks.points(dd.from_pandas(table, npartitions=1)).X.compute()
    np.testing.assert_array_equal(found.astype(float), [[1.0], [np.nan]])


def test_chunks_of_unknown_lengths_must_be_as_many():
    unknown = chunks.points(frame(3)[["a", "b"]]).X
    with pytest.raises(ValueError, match="X has 3 chunks, and y has 2, of unknown lengths"):
        chunks.column(da.arange(12, chunks=6), unknown, "y")
    with pytest.raises(ValueError, match="unknown lengths, and y is a"):
        chunks.column(np.arange(12), unknown, "y")

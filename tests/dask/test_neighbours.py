import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.preprocessing import normalize

from coxfield import SLGCPClassifier
from coxfield.dask import neighbour_distances
from coxfield.dask.neighbours import Nearest, joined_bounds, joined_nearest
from coxfield.datasets import make_circles
from dask import dataframe as dd
from shard_cases import chunked
from tolerances import assert_close

X = np.random.default_rng(0).normal(size=(70, 3))


def expected(points, count):
    """Distances of each point to its nearest neighbours, by all pairs."""
    distances = cdist(points, points)
    np.fill_diagonal(distances, np.inf)
    columns = np.argsort(distances, axis=1)[:, :count]
    found = np.zeros_like(distances)
    np.put_along_axis(found, columns, np.take_along_axis(distances, columns, axis=1), axis=1)
    return found


@pytest.mark.parametrize("size", [7, 25, 70])
@pytest.mark.parametrize("count", [1, 12])
def test_neighbours_over_chunks_are_those_of_all_pairs(size, count):
    found = neighbour_distances(chunked(X, size), count)
    assert found.nnz == 70 * count
    assert_close(found.toarray(), expected(X, count), condition=100)  # squares of distances by products


@pytest.mark.parametrize("unit", [2.0**-600, 2.0**600])
def test_data_of_any_size(unit):
    found = neighbour_distances(chunked(unit * X, 25), 5).toarray()
    assert_close(found / unit, expected(X, 5), condition=100)


def test_points_far_from_the_origin_and_in_single_precision():
    far = (X + 1000).astype(np.float32)
    found = neighbour_distances(chunked(far, 25), 5).toarray()
    assert_close(found, expected(far.astype(float), 5), condition=100, scale=1.0, dtype=np.float32)


def test_sparse_rows_are_compared_by_their_angle():
    rows = sparse.csr_array(np.where(X > 0, X, 0) + np.eye(70, 3))
    found = neighbour_distances(chunked(rows, 25), 5)
    squares = np.square(expected(normalize(rows).toarray(), 69))
    nearest = np.sort(squares + 9 * np.eye(70), axis=1)[:, :5]
    # Many rows have one angle, so neighbours are not unique. Distances of 0 have squares that are rounding.
    assert_close(np.square(found.data.reshape(70, 5)), nearest, condition=8, scale=1.0)


def test_points_at_the_same_place_are_neighbours_and_not_of_themselves():
    twins = np.repeat([[0.0, 0.0], [5.0, 5.0]], 6, axis=0)
    found = neighbour_distances(chunked(twins, 5), 3)
    rows = np.repeat(np.arange(12), 3)
    assert (found.data == 0).all()
    assert (rows != found.indices).all()
    assert (rows // 6 == found.indices // 6).all()
    assert all(len(set(found.indices[3 * k : 3 * k + 3])) == 3 for k in range(12))


def test_few_labels_on_a_cluster_are_those_of_the_same_distances_in_memory():
    points, truth = make_circles(2, random_state=0)
    y = np.where(np.arange(len(points)) % 30 == 0, truth, -1)
    here = SLGCPClassifier(kernel="precomputed_distances").fit(sparse.csr_array(expected(points, 40)), y)
    there = SLGCPClassifier(kernel="precomputed_distances").fit(neighbour_distances(chunked(points, 80)), y)
    np.testing.assert_allclose(there.label_distributions_, here.label_distributions_, atol=1e-6)
    np.testing.assert_array_equal(there.transduction_, truth)


def test_chunks_of_unknown_length_and_empty_chunks():
    parts = chunked(X, 25)
    unknown = parts[da.from_array(np.arange(70) >= 25, chunks=25)]
    assert np.isnan(unknown.shape[0])
    assert_close(neighbour_distances(unknown, 4).toarray(), expected(X[25:], 4), condition=100)


def test_too_many_neighbours_and_bad_values_are_refused():
    with pytest.raises(ValueError, match="n_neighbors=70, but there are 70 points: give at most 69"):
        neighbour_distances(chunked(X, 25), 70)
    with pytest.raises(ValueError, match="n_neighbors"):
        neighbour_distances(chunked(X, 25), 0)
    wrong = X.copy()
    wrong[30, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN: column 1 in row 5 of chunk 1"):
        neighbour_distances(chunked(wrong, 25), 3)


def test_columns_that_are_no_numbers_are_refused():
    table = pd.DataFrame({"a": X[:, 0], "day": pd.Timestamp("2020-01-01"), "word": "x"})
    with pytest.raises(ValueError, match="Column 'day' of X is of type datetime64"):
        neighbour_distances(dd.from_pandas(table, npartitions=2), 3)
    with pytest.raises(ValueError, match=r"column 'word' of X holds no numbers in chunk [01], such as 'x'"):
        neighbour_distances(dd.from_pandas(table[["a", "word"]], npartitions=2), 3)


def test_joining():
    near = Nearest(np.array([[0, 0]]), np.array([[3, 1]]), np.array([[1.0, 4.0]]))
    far = Nearest(np.array([[2, 2]]), np.array([[7, 5]]), np.array([[2.0, 3.0]]))
    found = joined_nearest(3, [near, far])
    assert found.shards.tolist() == [[0, 2, 2]]
    assert found.rows.tolist() == [[3, 7, 5]]
    assert found.distances.tolist() == [[1.0, 2.0, 3.0]]
    assert joined_bounds([None, None]) is None
    low, high = joined_bounds([(np.array([1.0]), np.array([2.0])), None, (np.array([0.0]), np.array([1.0]))])
    assert (low.tolist(), high.tolist()) == ([0.0], [2.0])

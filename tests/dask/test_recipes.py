import dask.array as da
import numpy as np

from coxfield.dask.chunks import LIGHT, Recipe, keys_of, made, references


def test_a_chunk_that_is_computed_has_a_recipe():
    there = da.ones((10, 2), chunks=(4, 2)) * da.arange(10, chunks=4)[:, None]
    found = references(there)
    assert all(isinstance(each, Recipe) for each in found)
    np.testing.assert_array_equal(np.concatenate([made(each) for each in found]), there.compute())


def test_a_chunk_in_memory_is_held_and_not_carried_by_tasks():
    rows = LIGHT // 8
    there = da.from_array(np.zeros((2 * rows + 2, 1)), chunks=(rows + 1, 1))
    assert references(there) == keys_of(there) == [key for (key,) in there.__dask_keys__()]
    assert references(there.persist()) == keys_of(there)


READS = []


class File:
    """Like an array on disk."""

    shape, dtype, ndim = (6, 2), np.dtype(float), 2

    def __getitem__(self, key):
        READS.append(key)
        return np.arange(12.0).reshape(6, 2)[key]


def test_a_part_of_a_file_is_read_each_time():
    there = da.from_array(File(), chunks=(3, 2), name="file", meta=np.empty((0, 0)))
    first, second = references(there)
    before = len(READS)
    np.testing.assert_array_equal(made(second), [[6.0, 7.0], [8.0, 9.0], [10.0, 11.0]])
    made(first)
    made(first)
    assert len(READS) == before + 3


def test_keys_of_labels():
    assert len(keys_of(da.arange(10, chunks=4))) == 3


def test_what_is_no_recipe_is_itself():
    X = np.zeros(3)
    assert made(X) is X

import numpy as np
import pytest

from coxfield_paper.studies.partitions import partition


@pytest.mark.parametrize(("data", "sizes"), [("Synth", (250, 1000)), ("Diabetes", (200, 332)), ("Banana", (400, 4900))])
def test_the_parts_have_the_sizes_of_the_paper(data, sizes):
    X_train, y_train, X_test, y_test = partition(data)
    assert (len(y_train), len(y_test)) == (len(X_train), len(X_test)) == sizes


def test_a_seed_always_means_the_same_partition_and_another_seed_another():
    first, again, other = (partition("Banana", seed)[0] for seed in (2, 2, 3))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_training_and_test_points_are_the_whole_set():
    X_train, _, X_test, _ = partition("Banana", 1)
    whole, parts = partition("Banana", 0), np.concatenate([X_train, X_test])
    assert sorted(map(tuple, parts)) == sorted(map(tuple, np.concatenate([whole[0], whole[2]])))

"""Every kind of `random_state` gives a generator, and an integer gives the one that it always gave."""

import numpy as np
import pytest

from coxfield.utils.numbers import generator


@pytest.mark.parametrize("seed", [0, 7, np.int64(7), 2**70])
def test_an_integer_is_the_seed_of_default_rng(seed):
    np.testing.assert_array_equal(generator(seed).random(5), np.random.default_rng(seed).random(5))


def test_a_generator_is_used_as_it_is():
    rng = np.random.default_rng(0)
    assert generator(rng) is rng


def test_none_differs_every_time():
    assert generator().random() != generator(None).random()


def test_a_random_state_is_drawn_from():
    legacy = np.random.RandomState(3)
    first, second = generator(legacy).random(), generator(legacy).random()
    assert first != second
    assert generator(np.random.RandomState(3)).random() == first


def test_the_module_stands_for_the_global_random_state():
    before = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(5)  # noqa: NPY002
        first = generator(np.random).random()
        np.random.seed(5)  # noqa: NPY002
        assert generator(np.random).random() == first
    finally:
        np.random.set_state(before)  # noqa: NPY002


@pytest.mark.parametrize("wrong", ["seed", 1.5, True, [1, 2]])
def test_anything_else_is_refused(wrong):
    with pytest.raises(ValueError, match=r"must be None, an integer, a RandomState or a numpy\.random\.Generator"):
        generator(wrong)


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match=r"random_state=-1 is negative; pass a seed of at least 0\."):
        generator(-1)

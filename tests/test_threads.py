import joblib
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from coxfield import threads


@pytest.mark.parametrize("wanted", [1, 3])
def test_the_innermost_context_decides(wanted):
    with threads.use(5), threads.use(wanted):
        assert threads.count() == wanted


def test_none_follows_the_context_around_it():
    with threads.use(3), threads.use(None):
        assert threads.count() == 3


def test_none_follows_joblib():
    with joblib.parallel_config(backend="threading", n_jobs=1), threads.use(None):
        assert threads.count() == 1
    with joblib.parallel_config(backend="threading", n_jobs=3), threads.use(None):
        assert threads.count() == 3


def test_outside_of_everything_none_is_what_a_matrix_product_takes():
    with threadpool_limits(1, user_api="blas"), threads.use(None):
        assert threads.count() == 1


def test_none_is_settled_when_the_context_begins():
    with threads.use(None):
        before = threads.count()
        with threadpool_limits(1, user_api="blas"):
            assert threads.count() == before


def test_the_context_ends():
    before = threads.count()
    with threads.use(before + 4):
        pass
    assert threads.count() == before


def test_small_steps_are_done_alone():
    with threads.use(3), threads.alone():
        assert threads.count() == 1
        assert all(pool["num_threads"] == 1 for pool in threadpool_info() if pool["user_api"] == "blas")


def test_all_processors():
    with threads.use(-1):
        assert threads.count() == joblib.cpu_count()

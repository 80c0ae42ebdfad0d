from concurrent.futures import ThreadPoolExecutor

import joblib
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from coxfield import LGCPClassifier, threads
from coxfield.datasets import load_synth


def of_the_blas():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


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
    with threads.use(3), threads.small_steps():
        assert threads.count() == 1
        assert set(of_the_blas()) <= {1}


def test_a_limit_that_ends_within_another_leaves_it_in_place():
    with threadpool_limits(2, user_api="blas"):
        before = of_the_blas() or [1]
        first, second = threads.one_each(), threads.one_each()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(of_the_blas()) <= {1}
        with threads.use(None):
            assert threads.count() == max(before)  # not what the limit allows one product, but what there is
        second.__exit__(None, None, None)
        assert set(of_the_blas()) <= {2}


def test_fits_at_the_same_time_leave_the_threads_of_others_as_they_were():
    X, y, _, _ = load_synth(return_X_y=True)
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda k: LGCPClassifier().fit(X[k:], y[k:]), range(6)))
        assert set(of_the_blas()) <= {2}


def test_more_steps_at_once_when_asked():
    with threads.use(3), threads.small_steps(None):
        assert threads.count() == 3
        assert set(of_the_blas()) <= {1}


def test_all_processors():
    with threads.use(-1):
        assert threads.count() == joblib.cpu_count()

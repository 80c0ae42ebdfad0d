import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import joblib
import numpy as np
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


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("n", "step"), [(0, 5), (1, 5), (5, 5), (23, 5), (23, 1), (23, 100)])
def test_every_row_is_worked_on_once(n, step, count):
    visits, heard = np.zeros(n, int), []

    def work(rows):
        assert rows.stop - rows.start <= step
        visits[rows] += 1

    with threads.use(count):
        threads.over_rows(work, n, step, heard.append)
    np.testing.assert_array_equal(visits, 1)
    assert sum(heard) == n


def test_inside_threads_the_blas_takes_one():
    inside = []

    with threadpool_limits(2, user_api="blas"), threads.use(2):
        before = of_the_blas()
        threads.over_rows(lambda _: inside.extend(of_the_blas()), 4, 1)
        assert of_the_blas() == before
    assert set(inside) <= {1}


@pytest.mark.parametrize("count", [1, 3])
def test_what_goes_wrong_in_a_thread_is_heard(count):
    def work(rows):
        if rows.start == 6:
            raise ZeroDivisionError("row six")

    with threads.use(count), pytest.raises(ZeroDivisionError, match="row six"):
        threads.over_rows(work, 10, 2)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_as_many_threads_work_as_may(count):
    meeting = threading.Barrier(count, timeout=10)
    with threads.use(count):
        threads.over_rows(lambda rows: meeting.wait(), 3 * count, 3)  # each slice waits until all threads are there


def test_the_threads_of_a_matrix_product_are_counted_before_the_blas_is_limited(monkeypatch):
    info = {"num_threads": 2}
    monkeypatch.setattr(threads, "_controller", lambda api: Counter(info))
    meeting = threading.Barrier(2, timeout=10)
    threads.over_rows(lambda rows: meeting.wait(), 2, 1)


class Counter:
    """A BLAS of two threads that can be limited."""

    def __init__(self, info):
        self._info = info

    def info(self):
        return [self._info]

    @contextmanager
    def limit(self, limits):
        before, self._info["num_threads"] = self._info["num_threads"], limits
        yield
        self._info["num_threads"] = before

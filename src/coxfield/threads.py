"""How many threads the work may use. The public function sets it once, and everything below reads it.

An estimator or function with an `n_jobs` opens `use(n_jobs)`. Everything called inside reads `count()`. No other
function takes a number of threads.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from numbers import Integral
from threading import Lock
from typing import TYPE_CHECKING

import joblib
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CHOSEN: ContextVar[int | None] = ContextVar("coxfield_threads", default=None)


@contextmanager
def use(n_jobs: int | None) -> Iterator[None]:
    """A context in which work uses `n_jobs` threads.

    Parameters
    ----------
    n_jobs : int or None
        As in scikit-learn's glossary: -1 for all processors. None follows the context around this one, either another
        `use` or a `joblib.parallel_config`. Outside of both, None means as many threads as the BLAS uses for a matrix
        product.

    Examples
    --------
    >>> with use(3):
    ...     with use(None):
    ...         count()
    3
    """
    if n_jobs == 0 or not (n_jobs is None or isinstance(n_jobs, Integral)):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}")
    # Settled at once: inside, limits on the BLAS would change what None means.
    token = _CHOSEN.set(count() if n_jobs is None else _here(n_jobs))
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def count() -> int:
    """Threads that work may use here."""
    chosen = _CHOSEN.get()
    if chosen is not None:
        return chosen
    if get_active_backend()[1] is not None and not elsewhere():  # inside a `joblib.parallel_config`
        return joblib.effective_n_jobs(None)
    return one_each.before or _of_a_product()


def elsewhere() -> bool:
    """Whether jobs of joblib go to a cluster here: inside a `joblib.parallel_config(backend="dask")`."""
    return type(get_active_backend()[0]).__name__ == "DaskDistributedBackend"


def _here(n_jobs: int) -> int:
    """The number of threads of this machine that `n_jobs` means; the processors of a cluster are not counted."""
    if not elsewhere():
        return joblib.effective_n_jobs(n_jobs)
    return n_jobs if n_jobs > 0 else max(1, joblib.cpu_count() + 1 + n_jobs)


@contextmanager
def small_steps(n_jobs: int | None = 1) -> Iterator[None]:
    """A context for work in many small steps: `n_jobs` threads at once, and one for each matrix product.

    Between two small products, threads of the BLAS wait in a loop, which takes the processors from everybody else.
    """
    with use(n_jobs), one_each():
        yield


class _OneEach:
    """A context in which a matrix product uses one thread; callers in several threads may overlap.

    A limit on the BLAS is the process's. If each caller set it and took it away, one that began inside another's limit
    would put that limit back for good. So the first to begin sets it, and the last to end takes it away.
    """

    def __init__(self):
        self._lock, self._depth, self._limit = Lock(), 0, ExitStack()
        self.before: int | None = None  # the threads of a product outside of the limit, while there is one

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._depth == 0:
                self.before = _of_a_product()
                self._limit.enter_context(limit(1))
            self._depth += 1
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                if self._depth == 0:
                    self._limit.close()
                    self.before = None


one_each = _OneEach()


def over_rows(work: Callable[[slice], None], n_rows: int, step: int, done=None, *, serial: bool = False) -> None:
    """Call `work` on slices of rows, in several threads; after each slice call `done` with its number of rows.

    `serial` says that the work has its own threads, such as that of another array library.
    """
    slices = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]

    def run(part: slice) -> None:
        work(part)
        if done is not None:
            done(part.stop - part.start)

    workers = count()  # before the limit on the BLAS, which may be what it goes by
    if len(slices) <= 1 or workers == 1 or serial:
        for part in slices:
            run(part)
        return
    with one_each(), ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(run, slices):
            pass


def limit(threads: int, user_api: str = "blas"):
    """A context in which a library, "blas" or "openmp", uses at most this many threads."""
    return _controller(user_api).limit(limits=threads)


def _of_a_product() -> int:
    """Threads that the BLAS uses for a matrix product now."""
    return max([library["num_threads"] for library in _controller("blas").info()] or [1])


@cache
def _controller(user_api: str) -> ThreadpoolController:
    """The loaded libraries. Finding them takes milliseconds, so it is done once, at first use."""
    return ThreadpoolController().select(user_api=user_api)

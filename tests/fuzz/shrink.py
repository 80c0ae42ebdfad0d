"""Make a failing case small: fewer rows, columns, options and digits, as long as it fails in the same way."""

import time
from dataclasses import replace

import numpy as np

SECONDS = 15.0  # for one bug: the first steps shrink most


def shrunk(case, key, check, simpler):
    """The smallest case found that a check fails in the same way; `simpler` proposes cases."""
    until = time.perf_counter() + SECONDS
    changed = True
    while changed and time.perf_counter() < until:
        changed = False
        for smaller in simpler(case):
            if time.perf_counter() > until:
                break
            if smaller.size < case.size and check(smaller).key == key:
                case, changed = smaller, True
                break
    return case


def simpler_case(case):
    """Cases of an estimator that are simpler in one respect, the largest steps first."""
    yield from (replace(case, queries=queries) for queries in _fewer(case.queries))
    yield from _fewer_rows(case)
    if case.weights is not None:
        yield replace(case, weights=None)
        yield replace(case, weights=tuple(float(np.format_float_scientific(w, 0)) for w in case.weights))
    for name in case.options:
        yield replace(case, options={key: value for key, value in case.options.items() if key != name})
    d = case.X.values.shape[1]
    if d > 1 and not case.is_graph:
        yield from (_without_column(case, [c for c in range(d) if c != column]) for column in range(d))
    yield replace(
        case, X=replace(case.X, kind="float64"), queries=tuple(replace(q, kind="float64") for q in case.queries)
    )
    yield replace(case, y=replace(case.y, wrapper="array"))
    for digits in (0, 2):
        yield replace(case, X=replace(case.X, values=_rounded(case.X.values, digits)))
        yield replace(case, queries=tuple(replace(q, values=_rounded(q.values, digits)) for q in case.queries))


def _fewer(queries):
    if queries:
        yield ()
    if len(queries) > 1:
        yield from ((query,) for query in queries)
    if len(queries) == 1 and len(queries[0].values) > 1:
        yield from ((queries[0].take([row]),) for row in range(len(queries[0].values)))


def _fewer_rows(case):
    n = len(case.X.values)
    step = n // 2
    while step:
        for start in range(0, n, step):
            rows = [row for row in range(n) if not start <= row < start + step]
            if rows:
                yield case.take(rows)
        step //= 2


def _without_column(case, columns):
    queries = tuple(query.columns(columns) for query in case.queries if query.values.shape[1] > max(columns))
    return replace(case, X=case.X.columns(columns), queries=queries)


def _rounded(values, digits):
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(values)
        return np.ldexp(np.round(mantissa * 8, digits) / 8, exponent)

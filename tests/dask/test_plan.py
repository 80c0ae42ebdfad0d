import io
from contextlib import redirect_stdout

import dask.array as da
import numpy as np
import pytest

import dask
from coxfield.dask.plan import JOINED, Plan, computed, persisted


@pytest.mark.parametrize("count", [1, 2, JOINED, JOINED + 1, 70])
def test_a_tree_joins_all_results_in_order(count):
    plan = Plan()
    keys = [plan.add("leaf", lambda k: [k], k) for k in range(count)]
    last = plan.tree("join", lambda parts: [k for part in parts for k in part], keys)
    assert computed(plan.delayed([last]))[0] == list(range(count))
    assert all(2 <= len(task[1]) <= JOINED for key, task in plan.tasks.items() if "join" in key[0])


def test_keys_of_inputs_are_arguments():
    there = da.arange(6, chunks=3)
    plan = Plan(there)
    keys = [plan.add("square", np.square, key) for key in there.__dask_keys__()]
    array = plan.array("out", lambda x: x + 1, keys, there.chunks[0], dtype=int)
    assert array.chunks == ((3, 3),)
    np.testing.assert_array_equal(array.compute(), np.arange(6) ** 2 + 1)


def test_values_are_not_searched_for_keys():
    plan = Plan()
    leaf = plan.add("leaf", int, 1)
    value = plan.value("value", [leaf, ("x", 1)])
    assert computed(plan.delayed([value]))[0] == [leaf, ("x", 1)]


def test_names_are_readable():
    plan = Plan()
    plan.add("sums", int, 1)
    ((name, number),) = plan.tasks
    assert dask.utils.key_split((name, number)) == "lgcp-sums"


def test_progress_without_a_client():
    plan = Plan()
    key = plan.add("one", int, 1)
    said = io.StringIO()
    with redirect_stdout(said):
        assert computed(plan.delayed([key]), verbose=1) == [1]
    assert "Completed" in said.getvalue()
    assert dask.compute(*persisted(plan.delayed([key]))) == (1,)

"""A short soak: predictions and fits leave nothing behind."""

import gc
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from fuzz import soak
from fuzz.soak import Record, comings_and_goings, counted, draw, faults, fit, main, predictions, watched

ARRAYS = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
BYTES, OBJECTS = 4096, 50  # that may be left: one small cache. A leak leaves something at every call.


def kept():
    """Bytes of the data of all arrays, and the number of all containers."""
    gc.collect()
    traces = tracemalloc.take_snapshot().filter_traces([ARRAYS]).traces
    return np.array([sum(trace.size for trace in traces), len(gc.get_objects())])


def growth(call, warm_up, calls):
    """Bytes and containers that are left by calls after a warm-up, which fills caches."""
    tracemalloc.start()
    try:
        for number in range(warm_up):
            call(number)
        before = kept()
        for number in range(warm_up, warm_up + calls):
            call(number)
        return (kept() - before).tolist()
    finally:
        tracemalloc.stop()


def assert_nothing_left(call, warm_up, calls):
    threads_and_files = counted()
    in_arrays, containers = growth(call, warm_up, calls)
    assert in_arrays < BYTES
    assert containers < OBJECTS
    assert counted()[0] <= threads_and_files[0]
    assert counted()[1] <= threads_and_files[1]


def test_predictions_leave_nothing_behind():
    assert_nothing_left(predictions(), 10, 100)


def test_rows_that_come_and_go_leave_nothing_behind():
    assert_nothing_left(comings_and_goings(), 20, 40)


def test_fits_leave_nothing_behind():
    assert_nothing_left(fit, 2, 4)


@pytest.mark.parametrize("left", [lambda: np.zeros(100), lambda: [1]])
def test_what_is_left_behind_is_seen(left):
    heap = []
    in_arrays, containers = growth(lambda _: heap.append(left()), 10, 100)
    assert in_arrays > BYTES or containers > OBJECTS


def test_growing_memory_is_a_fault(monkeypatch):
    memory = iter(range(1000))
    monkeypatch.setattr(soak, "resident", lambda: float(next(memory)))
    record = watched("calls", lambda _: None, 12)
    assert record.growth() == pytest.approx(7)
    assert faults([record], (1, 4), (1, 4)) == ["calls: memory grew by 7.0 MB over the last two thirds of the calls"]


def test_memory_that_grows_in_the_warm_up_only_is_no_fault():
    record = Record("calls", list(range(30)), [min(number, 10) for number in range(30)])
    assert faults([record], (1, 4), (1, 4)) == []


def test_threads_and_files_that_are_left_are_faults():
    found = faults([], (1, 4), (3, 5))
    assert found == ["1 threads before, 3 after", "4 open files before, 5 after"]


def test_the_program_prints_a_table_and_draws(tmp_path, capsys):
    main(["--predictions", "6", "--pairs", "6", "--fits", "3", "--output", str(tmp_path / "memory.png")])
    first = [line.split()[0] for line in capsys.readouterr().out.splitlines()[:4]]
    assert first == ["calls", "predictions", "add", "fits"]
    assert Path(tmp_path / "memory.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_has_a_panel_for_each_record(tmp_path):
    records = [Record(name, [1, 2, 3], [1.0, 2.0, 3.0]) for name in ("a", "b", "c")]
    draw(records, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text.count('id="axes_') == 3

"""Progress: silence, a line, a bar or a warning, as asked for, as the terminal allows and as the time demands."""

import math
import pickle
import re
import threading
import warnings

import pytest

from coxfield import progress as module
from coxfield.progress import SlowWarning, progress, shares, stages
from lean import run_without


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is moved."""

    class Clock:
        now = 100.0

        def move(self, seconds):
            self.now += seconds

    found = Clock()
    monkeypatch.setattr(module, "perf_counter", lambda: found.now)
    return found


def slow(steps):
    """The warnings that a function gives, as sentences."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        steps()
    assert all(warning.category is SlowWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def test_quick_work_is_silent(capsys, clock):
    def steps():
        with progress("working", 3, verbose=False) as done:
            for _ in range(3):
                clock.move(3)
                done(1)

    assert slow(steps) == []
    assert capsys.readouterr() == ("", "")


def test_slow_work_is_warned_of_once_with_an_estimate(clock, capsys):
    def steps():
        with progress("working", 100, verbose=0, advice="less is faster") as done:
            for _ in range(100):
                clock.move(0.8)
                done(1)

    expected = "working: 13 % done after 10 s, about 70 s to go; less is faster; verbose=1 shows the progress"
    assert slow(steps) == [expected]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("per_step", "expected"),
    [(20, "1 % done after 20 s, about 33 min to go"), (200, "1 % done after 3 min, about 6 h to go")],
)
def test_long_times_are_in_long_units(clock, per_step, expected):
    def steps():
        with progress("working", 100, verbose=0) as done:
            clock.move(per_step)
            done(1)

    assert slow(steps) == [f"working: {expected}; verbose=1 shows the progress"]


def test_tiny_shares_are_not_called_nothing(clock):
    def steps():
        with progress("working", 2**20, verbose=None) as done:
            done(1)
            clock.move(11)
            done(2**10)

    assert slow(steps) == ["working: 0.1 % done after 11 s, about 3 h to go"]


def test_a_small_part_after_a_long_preparation_says_nothing_of_the_rest(clock):
    def steps():
        with progress("working", 1000, verbose=None) as done:
            clock.move(14)
            done(0.01)
            for _ in range(40):
                clock.move(1)
                done(10)

    assert slow(steps) == ["working: 1 % done after 15 s, about 99 s to go"]


def test_objects_without_a_verbose_parameter_do_not_name_it(clock):
    def steps():
        with progress("working", 2, verbose=None) as done:
            clock.move(20)
            done(1)

    assert slow(steps) == ["working: 50 % done after 20 s, about 20 s to go"]


@pytest.mark.parametrize("done_by_then", [3, 2.95, 4])
def test_work_that_is_nearly_done_is_not_worth_a_warning(clock, done_by_then):
    def steps():
        with progress("working", 3, verbose=0) as done:
            clock.move(20)
            done(done_by_then)

    assert slow(steps) == []


def test_the_end_of_work_that_nobody_told_of_gives_no_warning(clock):
    def steps():
        with progress("working", None, verbose=0) as done:
            clock.move(100)
            done(1)

    assert slow(steps) == []


def test_an_unknown_number_of_steps_has_no_estimate(clock):
    def steps():
        with progress("cutting", math.inf, verbose=None) as done:
            for _ in range(7):
                clock.move(4)
                done(1)

    assert slow(steps) == ["cutting: 3 done after 12 s, nobody knows how many are left"]


def test_a_largest_number_of_steps_gives_a_largest_time(clock):
    def steps():
        with progress("learning, 10 steps at most", 10, verbose=None, at_most=True) as done:
            clock.move(20)
            done(2)

    assert slow(steps) == ["learning, 10 steps at most: 2 done after 20 s, at most 80 s to go"]


@pytest.mark.parametrize("verbose", [0, 1])
def test_a_part_of_other_work_does_not_speak(clock, verbose):
    def steps():
        with progress("whole", 2, verbose) as done:
            with progress("part", 100, verbose=0) as tell:
                clock.move(50)
                tell(1)
            done(1)

    assert [sentence.split(":")[0] for sentence in slow(steps)] == ([] if verbose else ["whole"])


def test_a_part_of_work_that_nobody_tells_of_speaks_for_it(clock):
    def steps():
        with progress("whole", None, verbose=0), progress("part", 100, verbose=0) as tell:
            clock.move(50)
            tell(1)

    assert [sentence.split(":")[0] for sentence in slow(steps)] == ["part"]


def test_pieces_of_work_that_nobody_tells_of_as_a_whole_share_their_patience(clock):
    def steps():
        with progress("whole", None, verbose=0):
            for name in ("first", "second", "third"):
                with progress(name, 8, verbose=None) as done:
                    for _ in range(8):
                        clock.move(1)
                        done(1)

    # The second piece speaks after ten seconds, and the third has until ten seconds after that.
    expected = ["second: 25 % done after 2 s, about 6 s to go", "third: 50 % done after 4 s, about 4 s to go"]
    assert slow(steps) == expected


def test_work_that_failed_is_no_longer_the_whole_of_other_work(clock):
    def steps():
        with pytest.raises(ZeroDivisionError), progress("first", 2, verbose=0):
            raise ZeroDivisionError
        with progress("second", 2, verbose=0) as done:
            clock.move(50)
            done(1)

    assert [sentence.split(":")[0] for sentence in slow(steps)] == ["second"]


def test_stages_that_show_themselves_are_silent_as_a_whole(clock, capsys):
    def steps(verbose):
        with stages("whole", 2, verbose) as done:
            clock.move(50)
            done(1)

    assert slow(lambda: steps(0)) == ["whole: 50 % done after 50 s, about 50 s to go; verbose=1 shows the progress"]
    assert slow(lambda: steps(1)) == []
    assert capsys.readouterr().err == ""


def test_threads_count_together(clock):
    counted = []

    def steps():
        with progress("working", 10_000, verbose=0) as done:
            threads = [threading.Thread(target=lambda: [done(1) for _ in range(1000)]) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            counted.append(done.done)
            clock.move(12)
            done(1000)

    assert slow(steps) == ["working: 50 % done after 12 s, about 12 s to go; verbose=1 shows the progress"]
    assert counted == [4000]


def test_shares_of_an_unknown_number_of_steps_add_up():
    for steps in (0, 3, 1000):
        told = []
        with shares(told.append, typical=10) as step:
            for _ in range(steps):
                step()
        assert sum(told) == pytest.approx(1, abs=1e-12)
        assert min(told) >= 0
        assert len(told) == steps + 1
        if steps == 3:
            assert sum(told[:3]) == pytest.approx(1 - 0.9**3)


def test_the_warning_survives_its_way_between_processes():
    copy = pickle.loads(pickle.dumps(SlowWarning("half done", "do less")))
    assert (str(copy), copy.state) == ("half done; do less", "half done")


def test_a_file_gets_lines_while_slow_work_goes_on(capsys, clock):
    with progress("working", 100, verbose=True) as done:
        for _ in range(100):
            clock.move(1)
            done(1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == [
        "working: 10 % done after 10 s, about 90 s to go",
        "working: 20 % done after 20 s, about 80 s to go",
        "working: 40 % done after 40 s, about 60 s to go",
    ]
    assert lines[3:] == ["working: 80 % done after 80 s, about 20 s to go", "working: 100.0 s"]


def test_a_file_gets_one_line_when_the_work_is_done(capsys):
    with progress("working", 3, verbose=True) as done:
        done(2)
        assert capsys.readouterr().err == ""
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"working: \d+\.\d s\n", err)


def test_work_that_fails_is_not_called_done(capsys):
    with pytest.raises(ZeroDivisionError), progress("working", 3, verbose=True):
        raise ZeroDivisionError
    assert "working" not in capsys.readouterr().err


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress("working", 4, verbose=True) as done:
        done(4)
    err = capsys.readouterr().err
    assert "working" in err
    assert "100%" in err
    assert " s\n" not in err


@pytest.mark.parametrize("total", [None, math.inf, 1])
def test_work_that_nobody_told_of_ends_with_a_full_bar(monkeypatch, capsys, total):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress("working", total, verbose=True):
        pass
    assert "100%" in capsys.readouterr().err


def test_a_terminal_without_rich_gets_one_line():
    done = run_without(
        ("rich",),
        "import sys\nsys.stderr.isatty = lambda: True\n"
        "from coxfield.progress import progress\n"
        "with progress('working', 4, True) as done:\n    done(4)\n",
    )
    assert done.returncode == 0
    assert re.fullmatch(r"working: \d+\.\d s\n", done.stderr)


def test_time_before_the_first_report_says_nothing_about_the_rest(clock):
    def steps():
        with progress("preparing and working", None, verbose=0), progress("working", 1000, verbose=0) as done:
            clock.move(9)
            done(1)
            clock.move(1)
            done(99)

    assert slow(steps) == ["working: 10 % done after 10 s, about 9 s to go; verbose=1 shows the progress"]

from collections import defaultdict

import pytest

from coxfield_paper.studies import few_labels_tables as tables
from coxfield_paper.studies.few_labels_methods import LAPLACE, METHODS, NEAREST, OURS, PAPER, SPREADING
from coxfield_paper.studies.few_labels_sets import FAMILY

DIGITS = FAMILY["digits"]


def measured(errors, seconds=1.0):
    """Results from errors by (data, labels, method)."""
    found = defaultdict(dict)
    for key, values in errors.items():
        found[key] = {seed: {"error": error, "seconds": seconds} for seed, error in enumerate(values)}
    return found


def row(table, data, labels):
    (found,) = [dict(zip(table.headings, cells, strict=True)) for cells in table.rows if cells[:2] == (data, labels)]
    return found


def test_ours_comes_first_and_methods_without_results_are_dashes():
    table = tables.errors(DIGITS, measured({("digits", 2, OURS): [7.0, 8.0, 9.0], ("digits", 2, SPREADING): [20.0]}))
    assert table.headings[:4] == ("data", "labels per class", "draws", OURS)
    found = row(table, "digits", "2")
    assert (found["draws"], found[OURS], found[NEAREST]) == ("3", "8.0 ± 0.6", "–")
    assert set(row(table, "digits", "1").values()) == {"digits", "1", "0", "–"}


def test_fewer_draws_than_those_of_the_row_are_counted_in_brackets():
    table = tables.errors(DIGITS, measured({("digits", 5, OURS): [4.0] * 3, ("digits", 5, PAPER): [6.0, 8.0]}))
    found = row(table, "digits", "5")
    assert (found[OURS], found[PAPER]) == ("4.0 ± 0.0", "7.0 ± 1.0 [2]")


@pytest.mark.parametrize(("method", "note"), [(LAPLACE, tables.GRAPH_LEARNING), (OURS, tables.ABSENT)])
def test_the_notes_say_whether_graph_learning_was_there(method, note):
    assert tables.notes(measured({("digits", 1, method): [4.0]}))[-1].text == note


def test_times_are_means_over_numbers_of_labels():
    found = measured({("digits", 1, OURS): [1.0, 1.0], ("oil", 10, OURS): [1.0]}, seconds=2.04)
    found["digits", 10, OURS] = {0: {"error": 1.0, "seconds": 20.0}}
    found["digits", 1, NEAREST] = {0: {"error": 1.0, "seconds": 0.0123}}
    table = tables.seconds(found)
    assert [cells[0] for cells in table.rows] == ["digits", "oil"]
    digits = dict(zip(table.headings, table.rows[0], strict=True))
    assert (digits[OURS], digits[NEAREST], digits[PAPER]) == ("8.0", "0.01", "–")
    assert len(table.headings) == 1 + len(METHODS)

from collections import defaultdict

import numpy as np
import pytest

from coxfield.calibration import reliability
from coxfield_paper.report.blocks import Figure, Note, Table, Verdict
from coxfield_paper.report.records import DONE, UNAVAILABLE, Record, attempt
from coxfield_paper.studies import few_labels
from coxfield_paper.studies.few_labels_methods import (
    FROM_GRAPH_LEARNING,
    LAPLACE,
    METHODS,
    NEAREST,
    OURS,
    PAPER,
    SELF_TRAINING,
    SPREADING,
)
from coxfield_paper.studies.few_labels_sets import FAMILIES, FAMILY, FILES
from coxfield_paper.studies.reliability import sums

JUDGED = sums(reliability([0, 0, 1, 1], np.array([[0.9, 0.1], [0.6, 0.4], [0.6, 0.4], [0.2, 0.8]]))) | {"ece": 0.1}


def record(data, labels, method, seed, error=5.0):
    result = {"error": error, "seconds": 1.0} | JUDGED
    return Record(few_labels.STUDY.task(data, labels, method, seed), {}, DONE, result)


def rendered(*records):
    return few_labels.render({one.task: one for one in records})


def arguments(tasks):
    return {tuple(task.arguments.values()) for task in tasks}


def test_there_is_a_task_for_each_draw_and_none_in_the_quick_run():
    tasks = few_labels.tasks(False)
    assert few_labels.tasks(True) == []
    for task in tasks[::97]:
        assert task.name == few_labels.STUDY.task(*task.arguments.values())
    ours = [task for task in tasks if task.arguments["method"] == OURS]
    assert len(ours) == 4 * 2 * 12 + 4 * 10 + 3 * 5 * 10 + 2 * 10


def test_slow_and_impossible_fits_are_left_out():
    asked = arguments(few_labels.tasks(False))
    assert sum((data, method) == ("digits", PAPER) for data, _, method, _ in asked) == 2 * len(FAMILY["digits"].labels)
    assert not any((data, labels, method) == ("digits", 1, SELF_TRAINING) for data, labels, method, _ in asked)


@pytest.mark.parametrize("installed", [True, False])
def test_a_package_that_is_not_installed_has_no_tasks(monkeypatch, installed):
    monkeypatch.setattr(few_labels, "has_graph_learning", lambda: installed)
    methods = {method for _, _, method, _ in arguments(few_labels.tasks(False))}
    assert methods == set(METHODS) - (set() if installed else set(FROM_GRAPH_LEARNING))


def test_families_without_results_are_left_out_and_named():
    blocks = rendered(record("digits", 2, OURS, 0), record("digits", 2, OURS, 1))
    assert [type(block) for block in blocks] == [*[Note] * 5, Table, Table, Figure, Table, Note]
    assert "designed while looking at errors" in blocks[0].text
    assert "digits" in blocks[5].caption
    assert "no results for digit1, USPS, g241c, BCI, oil" in blocks[-1].text
    assert "digits" not in blocks[-1].text


def test_with_all_sets_nothing_is_missing():
    found = [record(data, family.labels[0], OURS, 0) for family in FAMILIES for data in family.sets]
    blocks = rendered(*found)
    assert sum(isinstance(block, Table) for block in blocks) == len(FAMILIES) + 2
    assert not isinstance(blocks[-1], Note)


def test_draws_that_a_method_skips_are_no_results():
    skipped = Record(
        few_labels.STUDY.task("USPS", 10, SELF_TRAINING, 4), {}, DONE, {"skipped": "a class has one label"}
    )
    done = record("USPS", 10, SELF_TRAINING, 3)
    found = few_labels.results_of({one.task: one for one in (skipped, done)})
    assert list(found["USPS", 10, SELF_TRAINING]) == [3]


def test_claims_are_made_from_the_records():
    found = [record("BCI", 100, OURS, seed, error=30.0) for seed in range(3)]
    verdicts = {claim.statement: claim.verdict for claim in few_labels.claims({one.task: one for one in found})}
    assert [verdict for statement, verdict in verdicts.items() if "BCI" in statement] == [Verdict.BORNE_OUT]
    assert set(verdicts.values()) == {Verdict.BORNE_OUT, Verdict.NOT_TESTED}


@pytest.mark.parametrize("data", FILES)
def test_a_set_that_is_not_there_is_said_in_its_record(monkeypatch, tmp_path, data):
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    first = next(task for task in few_labels.tasks(False) if task.arguments["data"] == data)
    assert attempt(first).status == UNAVAILABLE


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
    table = few_labels.errors(
        DIGITS, measured({("digits", 2, OURS): [7.0, 8.0, 9.0], ("digits", 2, SPREADING): [20.0]})
    )
    assert table.headings[:4] == ("data", "labels per class", "draws", OURS)
    found = row(table, "digits", "2")
    assert (found["draws"], found[OURS], found[NEAREST]) == ("3", "8.0 ± 0.6", "–")
    assert set(row(table, "digits", "1").values()) == {"digits", "1", "0", "–"}


def test_fewer_draws_than_those_of_the_row_are_counted_in_brackets():
    table = few_labels.errors(DIGITS, measured({("digits", 5, OURS): [4.0] * 3, ("digits", 5, PAPER): [6.0, 8.0]}))
    found = row(table, "digits", "5")
    assert (found[OURS], found[PAPER]) == ("4.0 ± 0.0", "7.0 ± 1.0 [2]")


@pytest.mark.parametrize(("method", "note"), [(LAPLACE, few_labels.GRAPH_LEARNING), (OURS, few_labels.ABSENT)])
def test_the_notes_say_whether_graph_learning_was_there(method, note):
    assert few_labels.notes(measured({("digits", 1, method): [4.0]}))[-1].text == note


def test_times_are_means_over_numbers_of_labels():
    found = measured({("digits", 1, OURS): [1.0, 1.0], ("oil", 10, OURS): [1.0]}, seconds=2.04)
    found["digits", 10, OURS] = {0: {"error": 1.0, "seconds": 20.0}}
    found["digits", 1, NEAREST] = {0: {"error": 1.0, "seconds": 0.0123}}
    table = few_labels.seconds(found)
    assert [cells[0] for cells in table.rows] == ["digits", "oil"]
    digits = dict(zip(table.headings, table.rows[0], strict=True))
    assert (digits[OURS], digits[NEAREST], digits[PAPER]) == ("8.0", "0.01", "–")
    assert len(table.headings) == 1 + len(METHODS)


def result(ece, seed=0, n=60):
    """What probabilities that are right would leave in a record."""
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.5, 1, n)
    judged = reliability((rng.random(n) > share).astype(int), np.column_stack([share, 1 - share]))
    return sums(judged) | {"ece": ece, "log_loss": 0.5}


def judged_draws():
    found = defaultdict(dict)
    found["digits", 2, OURS] = {0: result(0.02), 1: result(0.04, seed=1)}
    found["digits", 5, OURS] = {0: result(0.1, seed=2)}
    found["digits", 2, SPREADING] = {0: result(0.2, seed=3)}
    return found


def test_calibration_rows_have_the_means_of_each_method():
    table = few_labels.calibration_table(judged_draws())
    first, second = (dict(zip(table.headings, cells, strict=True)) for cells in table.rows)
    assert (first["data"], first["labels"]) == ("digits", "2 labels per class")
    assert (first[f"ECE, {OURS}"], first[f"ECE, {SPREADING}"]) == ("0.030 ± 0.010", "0.200")
    assert first[f"log loss, {OURS}"] == "0.500 ± 0.000"
    assert 0 < float(first["ECE by chance"]) < 0.2
    assert (second[f"ECE, {OURS}"], second[f"ECE, {SPREADING}"]) == ("0.100", "–")


def test_without_our_probabilities_there_is_no_diagram_and_chance_is_a_dash():
    found = defaultdict(dict, {("oil", 10, SPREADING): {0: result(0.2)}})
    (table,) = few_labels.calibration(found)
    assert isinstance(table, Table)
    assert dict(zip(table.headings, table.rows[0], strict=True))["ECE by chance"] == "–"


def test_each_data_set_has_a_panel_with_both_methods():
    found = judged_draws()
    found["oil", 10, OURS] = {0: result(0.1, seed=4)}
    _, drawn = few_labels.calibration(found)
    assert isinstance(drawn, Figure)
    panels = [axes for axes in drawn.figure.axes if axes.axison]
    assert [panel.get_title() for panel in panels] == ["digits", "oil"]
    assert [len(panel.containers) for panel in panels] == [2, 1]
    (legend,) = drawn.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [OURS, SPREADING]
    assert f"digits, {OURS}: 0." in drawn.description
    assert not drawn.wide


YES, NO, NOT_TESTED = Verdict.BORNE_OUT, Verdict.NOT_BORNE_OUT, Verdict.NOT_TESTED


def claim(data, errors):
    (found,) = [one for one in few_labels.goals(measured(errors)) if f"for {data}:" in one.statement]
    return found


@pytest.mark.parametrize(("many", "verdict"), [([2.0, 2.4], YES), ([2.4, 2.8], NO), ([], NOT_TESTED)])
def test_a_goal_is_met_if_the_mean_error_is_within_it_for_every_number_of_labels(many, verdict):
    found = claim("digit1", {("digit1", 10, OURS): [5.0, 6.0], ("digit1", 100, OURS): many})
    assert found.verdict == verdict
    assert found.statement.endswith("an error of at most 6 % with 10, 2.4 % with 100 labels")
    assert ("5.50 ± 0.50 % with 10" in found.finding) == (verdict != NOT_TESTED)


@pytest.mark.parametrize(("last", "verdict"), [(4.0, YES), (4.1, NO)])
def test_the_default_may_be_one_point_behind_the_papers_method(last, verdict):
    labels = FAMILY["oil"].labels
    errors = {("oil", count, method): [3.0] for count in labels for method in (OURS, PAPER)}
    found = claim("oil", errors | {("oil", labels[-1], OURS): [last]})
    assert found.verdict == verdict
    assert f"{last - 3:+.1f} with {labels[-1]} labels" in found.finding


def test_only_draws_that_both_methods_have_are_compared():
    (labels,) = FAMILY["two rings"].labels
    errors = {("two rings", labels, OURS): [0.0, 90.0], ("two rings", labels, PAPER): [2.0]}
    found = claim("two rings", errors)
    assert found.verdict == YES
    assert "−2.0 with 5 labels per ring" in found.finding


def test_every_set_has_one_goal_and_nothing_is_tested_without_results():
    found = few_labels.goals(measured({}))
    assert len(found) == len(FAMILY)
    assert {one.verdict for one in found} == {NOT_TESTED}
    assert all(one.statement.startswith("Beyond the paper") for one in found)

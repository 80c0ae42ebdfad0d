import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from coxfield_paper.report.blocks import Figure, Note, Table, Verdict
from coxfield_paper.report.records import DONE, FAILED, Record, attempt
from coxfield_paper.studies import semi_supervised
from coxfield_paper.studies.curves import NAMES, curves_of
from coxfield_paper.studies.paper_methods import paper_slgcp

HELIX, RMNIST, OIL = semi_supervised.ITEMS
YES, NO, NOT_TESTED = Verdict.BORNE_OUT, Verdict.NOT_BORNE_OUT, Verdict.NOT_TESTED
ERRORS = {"SVM": 40.0, "GPC": 35.0, "LGCP": 30.0, "SLGCP": 8.0, "harmonic": 8.5}


@pytest.fixture
def _small(monkeypatch):
    monkeypatch.setitem(
        semi_supervised.DATA, "double helix", lambda rng: semi_supervised.make_double_helix(60, random_state=rng)
    )


def invented(item, errors=ERRORS, spread=1.0, quick=False):
    """Records of all tasks of an item: errors alternate around a mean by `spread`, in step for all methods."""
    found = {}
    for task in item.tasks(quick):
        seed, method = task.arguments["seed"], task.arguments.get("method")
        result = {"parts": [9, 1], "right": [20.0, 50.0], "trivial": None}
        if method is not None:
            result = {"error": errors[method] + spread * (-1) ** seed, "certified": 1.0, "length_scale": 0.1}
        found[task.name] = Record(task.name, task.arguments, DONE, result)
    return found


def verdicts(item, found):
    return {claim.statement.partition(": ")[2]: claim.verdict for claim in item.claims(found)}


@pytest.mark.usefixtures("_small")
def test_partitions_label_as_many_points_as_asked_and_both_classes():
    for seed in range(5):
        X, truth, y = semi_supervised.partition("double helix", 4, seed)
        known = y >= 0
        assert known.sum() == 4
        assert len(np.unique(y[known])) == 2
        np.testing.assert_array_equal(y[known], truth[known])
        assert len(X) == 120


def test_the_number_of_labels_does_not_change_the_points():
    few, many = (semi_supervised.partition("double helix", labels, 3) for labels in (10, 100))
    np.testing.assert_array_equal(few[0], many[0])


def test_tasks_are_named_once_and_quick_ones_are_among_them():
    tasks = [task for item in semi_supervised.ITEMS for task in item.tasks(False)]
    names = [task.name for task in tasks]
    assert len(set(names)) == len(names)
    assert "curve-oil/10/SLGCP/3" in names
    assert len(tasks) == 3 * (5 * 5 * 10 + 10)
    assert json.loads(json.dumps([task.arguments for task in tasks])) == [task.arguments for task in tasks]
    everything = {task.name: task for task in tasks}
    quick = [task for item in semi_supervised.ITEMS for task in item.tasks(True)]
    assert quick
    stand_in = [task for task in quick if task.name not in everything]
    assert all(task == everything[task.name] for task in quick if task not in stand_in)
    assert {task.arguments["data"] for task in stand_in} == {"small digits"}
    assert {task.arguments["data"] for task in quick} == {"double helix", "small digits"}


def test_a_stand_in_is_shown_as_one_and_tests_nothing():
    (task,) = [task for task in RMNIST.tasks(True) if task.name.endswith("10/LGCP/0")]
    found = {task.name: Record(task.name, task.arguments, DONE, task.function(**task.arguments))}
    note, *blocks = RMNIST.render(found)
    assert note.text.startswith("A stand-in: zeros and fours of scikit-learn's digits")
    assert any(isinstance(block, Figure) for block in blocks)
    assert {claim.verdict for claim in RMNIST.claims(found)} == {NOT_TESTED}


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("method", semi_supervised.METHODS)
def test_each_method_errs_on_some_share_of_the_unlabelled_points(method):
    result = semi_supervised.partition_error("double helix", 20, method, 0)
    wrong = result["error"] / 100 * 100  # of 120 points 100 are unlabelled
    assert 0 <= result["error"] <= 100
    assert wrong == pytest.approx(round(wrong))
    assert json.loads(json.dumps(result)) == result
    assert ("certified" in result) == ("length_scale" in result) == (method == "SLGCP")


@pytest.mark.usefixtures("_small")
def test_a_labelling_that_gives_all_to_one_class_is_an_error_and_no_warning(monkeypatch):
    monkeypatch.setitem(semi_supervised.TRANSDUCTIVE, "SLGCP", partial(paper_slgcp, length_scales=[1000.0]))
    _, truth, y = semi_supervised.partition("double helix", 5, 0)
    shares = 100 * np.bincount(truth[y < 0]) / np.sum(y < 0)
    error = semi_supervised.partition_error("double helix", 5, "SLGCP", 0)["error"]
    assert np.isclose(shares, error).any()


@pytest.mark.usefixtures("_small")
def test_tasks_of_the_neighbour_graph_run():
    (task, *_) = [task for task in HELIX.tasks(True) if "method" not in task.arguments]
    record = attempt(task)
    assert record.done, record.reason
    assert record.result["parts"][-1] == 1


def test_records_become_a_figure_and_tables_with_means_and_standard_errors():
    figure, errors, graphs = OIL.render(invented(OIL))
    assert isinstance(figure, Figure)
    assert isinstance(errors, Table)
    assert errors.headings == ("method", "10 labels", "20 labels", "30 labels", "50 labels", "100 labels")
    assert [row[0] for row in errors.rows] == list(NAMES.values())
    # Ten errors alternate by 1 around the mean: their standard error is sqrt(10 / 9 / 10).
    assert errors.rows[3] == ("SLGCP", *["8.00 ± 0.33"] * 5)
    assert graphs.rows == (
        ("1", "9.00 ± 0.00", "20.00 ± 0.00", "0 of 10"),
        ("2", "1.00 ± 0.00", "50.00 ± 0.00", "0 of 10"),
    )
    assert "prints no numbers" in errors.notes[0]


def test_the_figure_shows_each_mean_beside_its_number_of_labels():
    (figure, *_) = HELIX.render(invented(HELIX, quick=True))
    (axes,) = figure.figure.axes
    assert axes.get_xlabel() == "number of labelled points"
    assert axes.get_ylabel() == "test error, %"
    assert axes.get_xticks().tolist() == [10, 30, 100]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(NAMES.values())
    looks = set()
    for container, method in zip(axes.containers, ERRORS, strict=True):
        line = container.lines[0]
        # Of three partitions two are above the mean.
        np.testing.assert_allclose(line.get_ydata(orig=False), ERRORS[method] + 1 / 3)
        np.testing.assert_allclose(line.get_xdata(orig=False), [10, 30, 100], rtol=0.1)
        looks.add((line.get_color(), line.get_marker()))
    assert len(looks) == 5


def test_claims_hold_where_errors_bear_them_out():
    # In step, half a point apart in every partition: alike.
    assert list(verdicts(OIL, invented(OIL)).values()) == [YES, YES, YES]


def test_claims_fail_where_errors_contradict_them():
    worse = invented(RMNIST, {**ERRORS, "LGCP": 7.9, "harmonic": 11.0})
    beats, like, trivial = RMNIST.claims(worse)
    assert beats.verdict == NO
    assert "LGCP 7.90" in beats.finding
    assert like.verdict == NO
    assert "−3.00 ± 0.00 with 20 (apart)" in like.finding
    assert trivial.verdict == YES


@pytest.mark.parametrize(("spread", "verdict"), [(0.5, YES), (3.0, Verdict.UNDECIDED)])
def test_errors_that_differ_by_chance_are_alike_only_if_they_are_known_well_enough(spread, verdict):
    found = invented(OIL)
    for name, record in found.items():
        if "harmonic" in name:  # out of step: differences alternate around -0.5 by 1 + spread
            seed = record.arguments["seed"]
            found[name] = replace(record, result={"error": 8.5 - spread * (-1) ** seed})
    claim = OIL.claims(found)[1]
    # The interval reaches to 0.5 and 2.26 standard errors of (1 + spread) sqrt(10 / 9 / 10): 1.63 for a spread of 0.5.
    assert claim.verdict == verdict
    assert ("too uncertain" in claim.finding) == (verdict == Verdict.UNDECIDED)


def test_on_the_helix_the_fewest_labels_are_apart():
    far = invented(HELIX, {**ERRORS, "harmonic": 8.0})
    for name, record in far.items():
        if name.startswith("curve-helix/10/harmonic/"):
            far[name] = replace(record, result={"error": 1.0})
    held = verdicts(HELIX, far)
    assert held["SLGCP and harmonic functions perform alike with 20, 30, 50 and 100 labels"] == YES
    assert held["harmonic functions have a lower error than SLGCP with 10 labels"] == YES
    held = verdicts(HELIX, invented(HELIX))
    assert held["harmonic functions have a lower error than SLGCP with 10 labels"] == NO


@pytest.mark.parametrize("item", semi_supervised.ITEMS, ids=lambda item: item.name)
def test_without_records_nothing_is_claimed_and_the_command_is_named(item):
    (note,) = item.render({})
    assert isinstance(note, Note)
    assert f"coxfield reproduce {item.name}" in note.text
    assert ("COXFIELD_DATA" in note.text) == (item is not HELIX)
    assert {claim.verdict for claim in item.claims({})} == {NOT_TESTED}


def test_failures_and_missing_methods_leave_their_claims_open():
    found = {name: record for name, record in invented(OIL).items() if "/harmonic/" not in name}
    found = {
        name: replace(record, status=FAILED, result={}) if "/SVM/" in name else record for name, record in found.items()
    }
    assert curves_of(found.values()).methods == ["GPC", "LGCP", "SLGCP"]
    _, table, _ = OIL.render(found)
    assert [row[0] for row in table.rows] == ["GPC", "LGCP", "SLGCP"]
    assert list(verdicts(OIL, found).values()) == [NOT_TESTED, NOT_TESTED, YES]


def test_one_partition_decides_nothing():
    found = {name: record for name, record in invented(OIL).items() if record.arguments["seed"] == 0}
    assert [claim.verdict for claim in OIL.claims(found)] == [Verdict.UNDECIDED, Verdict.UNDECIDED, YES]
    assert OIL.render(found)[1].rows[0][1] == "41.00"

import pytest

from coxfield_paper.report.records import DONE, FAILED, Record
from coxfield_paper.studies.study import Study, crossed, mean

CELLS = crossed({"oil": 2, "wine": 1}, lambda data: ["ours"] if data == "wine" else ["ours", "theirs"])
STUDY = Study("table", print, ("data", "method"), CELLS, quick={("wine", "ours"): 1}, alone=[("oil", "theirs")])


def found(**errors):
    """Records by the ends of their names."""
    records = [Record(f"table/{end.replace('_', '/')}", {}, DONE, {"error": error}) for end, error in errors.items()]
    return {record.task: record for record in records}


def test_cells_are_data_sets_and_the_methods_that_they_have():
    assert CELLS == {("oil", "ours"): 2, ("oil", "theirs"): 2, ("wine", "ours"): 1}


def test_there_is_a_task_per_cell_and_seed():
    tasks = STUDY.tasks(quick=False)
    names = ["oil/ours/0", "oil/ours/1", "oil/theirs/0", "oil/theirs/1", "wine/ours/0"]
    assert [task.name for task in tasks] == [f"table/{name}" for name in names]
    assert [task.alone for task in tasks] == [False, False, True, True, False]
    assert tasks[3].arguments == {"data": "oil", "method": "theirs", "seed": 1}
    assert {task.function for task in tasks} == {print}
    assert [task.name for task in STUDY.tasks(quick=True)] == ["table/wine/ours/0"]


def test_results_are_found_by_cell_and_seed():
    records = found(oil_ours_1=3.0, oil_theirs_0=5.0, oil_ours_7=9.0)  # there is no seed 7
    assert STUDY.results(records, "oil", "ours") == {1: {"error": 3.0}}
    assert STUDY.results(records, "wine", "ours") == {}
    assert STUDY.results(records, "no such", "cell") == {}
    assert STUDY.known(records) == ["oil"]
    assert mean(STUDY.results(records, "oil", "theirs"), "error").value == 5.0


def test_a_failure_is_a_record_and_not_a_result():
    records = {"table/wine/ours/0": Record("table/wine/ours/0", {}, FAILED, reason="no")}
    assert list(STUDY.records(records, "wine", "ours")) == [0]
    assert STUDY.results(records, "wine", "ours") == {}


@pytest.mark.parametrize(("errors", "missing"), [({}, "oil, wine"), ({"oil_ours_0": 1.0}, "wine")])
def test_data_sets_without_a_result_are_named_with_the_command(errors, missing):
    (note,) = STUDY.absent(found(**errors))
    assert note.text == f"There are no results for {missing}. Run `coxfield reproduce table`."


def test_with_all_data_sets_nothing_is_absent():
    assert STUDY.absent(found(oil_ours_0=1.0, wine_ours_0=2.0)) == []

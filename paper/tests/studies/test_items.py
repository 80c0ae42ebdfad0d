"""What holds for every item: tasks that can be kept and repeated, and a section whatever the records are."""

import json
import pickle

import pytest

from coxfield_paper.report.blocks import Figure, Verdict
from coxfield_paper.report.records import FAILED, UNAVAILABLE, new_record
from coxfield_paper.studies.items import ITEMS, choose

every_item = pytest.mark.parametrize("item", ITEMS.values(), ids=lambda item: item.name)


@every_item
def test_tasks_have_names_of_their_own_and_can_be_kept_and_sent(item):
    tasks = item.tasks(False)
    assert len({task.name for task in tasks}) == len(tasks) > 0
    for task in tasks:
        assert task.name.startswith(f"{item.name}/")
        assert json.loads(json.dumps(task.arguments)) == task.arguments
        assert pickle.loads(pickle.dumps(task)) == task


@every_item
def test_quick_tasks_are_some_of_the_full_ones(item):
    full = {task.name: task for task in item.tasks(False)}
    for task in item.tasks(True):
        # Where data are in no package, what stands in for them has another name.
        assert full.get(task.name) == (None if item.name in ("timings", "table-2", "curve-rmnist") else task)


@every_item
@pytest.mark.parametrize("status", [None, FAILED, UNAVAILABLE])
def test_without_results_something_is_said_no_figure_shown_and_no_claim_tested(item, status):
    tasks = item.tasks(False) if status else []
    found = {task.name: new_record(task, status, reason="no data") for task in tasks}
    blocks = item.render(found)
    assert blocks
    assert not any(isinstance(block, Figure) for block in blocks)
    assert {claim.verdict for claim in item.claims(found)} <= {Verdict.NOT_TESTED}


def test_items_are_chosen_by_name_in_the_order_asked():
    assert [item.name for item in choose(["table-2", "figure-helix", "table-2"])] == ["table-2", "figure-helix"]
    assert choose(None) == choose(["all"]) == list(ITEMS.values())
    with pytest.raises(ValueError, match=r"no item 'table-7': choose among all, figure-samples"):
        choose(["table-1", "table-7"])

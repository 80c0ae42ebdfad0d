from coxfield_paper.report.source_digest import source_digest
from coxfield_paper.report.tasks import Task


def work(x):
    return {"x": x}


def test_a_task_knows_the_code_behind_it_whatever_its_arguments():
    assert Task("a", work, {"x": 1}).code == Task("b", work, {"x": 2}).code == source_digest(work)


def test_tasks_of_another_module_have_other_code():
    assert Task("a", work).code != Task("a", source_digest).code

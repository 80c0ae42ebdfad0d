from coxfield_paper.report.blocks import Claim, Note, Verdict
from coxfield_paper.report.item import Item, Task
from coxfield_paper.report.records import DONE, UNAVAILABLE, Records, new_record
from coxfield_paper.report.source_digest import source_digest


def work(x):
    return {"x": x}


def test_a_task_knows_the_code_behind_it_whatever_its_arguments():
    assert Task("a", work, {"x": 1}).code == Task("b", work, {"x": 2}).code == source_digest(work)


def test_tasks_of_another_module_have_other_code():
    assert Task("a", work).code != Task("a", source_digest).code


def tasks(quick):
    return [Task(f"item/{x}", work, {"x": x}) for x in ((1,) if quick else (1, 2))]


def render(found):
    return [Note(f"{sorted(found)}")]


def claims(found):
    return [Claim("there are results", f"{len(found)}", Verdict.of(bool(found)))]


ITEM = Item("item", "An item", tasks, render, claims)


def test_a_section_shows_the_records_of_quick_and_full_tasks_and_why_others_are_missing(tmp_path):
    records = Records(tmp_path)
    one, two = tasks(False)
    records.save(new_record(one, DONE, result={"x": 1}, seconds=2.0))
    records.save(new_record(two, UNAVAILABLE, reason="no data"))
    section = ITEM.section(records)
    assert section.blocks == (Note("['item/1', 'item/2']"),)
    assert section.seconds == 2.0
    assert section.missing == ("no data",)
    assert section.claims[0].verdict == Verdict.BORNE_OUT


def test_records_of_other_code_are_not_shown(tmp_path, monkeypatch):
    records = Records(tmp_path)
    records.save(new_record(tasks(True)[0], DONE, result={"x": 1}, seconds=2.0))
    monkeypatch.setattr("coxfield_paper.report.item.source_digest", lambda function: "other code")
    section = ITEM.section(records)
    assert section.blocks == (Note("[]"),)
    assert section.seconds == 0
    assert section.claims[0].verdict == Verdict.NOT_BORNE_OUT

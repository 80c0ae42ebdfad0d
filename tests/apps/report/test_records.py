import json

import pytest

from coxfield.apps.report.records import DONE, FAILED, Records, new_record


@pytest.fixture
def records(tmp_path):
    return Records(tmp_path / "records")


def record(**changes):
    fields = {"task": "table/Synth/3", "arguments": {"seed": 3, "sizes": (1, 2)}, "status": DONE}
    return new_record(**fields | {"result": {"error": 0.1}, "seconds": 1.5} | changes)


def test_a_record_is_read_as_it_was_written(records):
    written = record()
    records.save(written)
    assert records.load("table/Synth/3") == written
    assert records.find("table/Synth/3", {"seed": 3, "sizes": (1, 2)}).seconds == 1.5


def test_what_was_asked_otherwise_is_not_found(records):
    records.save(record())
    assert records.find("table/Synth/3", {"seed": 4, "sizes": (1, 2)}) is None
    assert records.find("table/Synth/4", {"seed": 3, "sizes": (1, 2)}) is None


def test_records_of_another_version_are_not_found(records, monkeypatch):
    records.save(record())
    monkeypatch.setattr("coxfield.__version__", "99.0")
    assert records.find("table/Synth/3", {"seed": 3, "sizes": (1, 2)}) is None


def test_failures_are_read_but_are_no_result(records):
    records.save(record(status=FAILED, reason="no"))
    assert records.load("table/Synth/3").reason == "no"
    assert records.find("table/Synth/3", {"seed": 3, "sizes": (1, 2)}) is None


@pytest.mark.parametrize("spoil", ["cut", "empty", "list", "changed", "field", "digest", "moved", "binary"])
def test_a_corrupt_record_is_not_believed(records, spoil):
    records.save(record())
    path = records.path("table/Synth/3")
    text = path.read_text()
    content = json.loads(text)
    if spoil == "moved":
        path = records.path("table/Synth/4")
    spoilt = {
        "cut": text[: len(text) // 2],
        "empty": "",
        "list": "[1, 2]",
        "changed": text.replace("0.1", "0.2"),
        "field": json.dumps(content | {"more": 1}),
        "digest": json.dumps({key: value for key, value in content.items() if key != "digest"}),
        "moved": text,
        "binary": None,
    }[spoil]
    path.write_bytes(b"\xff\x00" if spoilt is None else spoilt.encode())
    assert records.load("table/Synth/4" if spoil == "moved" else "table/Synth/3") is None


def test_numbers_that_json_does_not_have_are_refused_and_leave_no_file(records):
    with pytest.raises(ValueError, match="JSON"):
        records.save(record(result={"error": float("nan")}))
    assert list(records.folder.rglob("*.*")) == []

"""The file of labels: nothing is lost, everything can be undone, several programs share it."""

import errno
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coxfield.studio.journal import Journal, JournalError, Labels, Source, Step
from coxfield.utils.whole_files import FileNotWrittenError

NAMES = ("cat", "dog", 'a, "b"\nc', "ä")


def journal(path, n=6, by="me", start=None, mark="table"):
    return Journal(Labels(start or [None] * n), path, mark, by)


def said(journal):
    return [None if code < 0 else journal.labels.classes[code] for code in journal.labels.codes]


def test_what_is_said_is_in_the_file_and_comes_back(tmp_path):
    path = tmp_path / "data.labels.csv"
    first = journal(path)
    first.add([Step("label", np.array([2]), "cat")])
    first.add([Step("label", np.array([0, 3, 4]), "dog")], expected=12.34)
    lines = path.read_text().splitlines()
    assert lines[0] == "step,time,by,action,rows,label,other,expected_errors"
    assert lines[-1].split(",")[3:] == ["label", "1 4-5", "dog", "", "12.3"]
    again = journal(path)
    assert said(again) == ["dog", None, "cat", "dog", "dog", None]
    assert again.labels.sources.tolist() == [Source.bulk, 0, Source.key, Source.bulk, Source.bulk, 0]


@settings(deadline=None, max_examples=30)  # the disk has its own pace
@given(data=st.data())
def test_undo_goes_back_through_every_step(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("journal") / "x.labels.csv"
    book = journal(path, start=["cat", *[None] * 5])
    states = [(said(book), book.labels.names())]
    rows = st.lists(st.integers(0, 5), min_size=1, unique=True).map(lambda found: np.array(sorted(found)))
    for _ in range(data.draw(st.integers(0, 8))):
        action = data.draw(st.sampled_from(["label", "check", "clear", "skip", "class", "rename"]))
        label = data.draw(st.sampled_from(book.labels.names() if action == "rename" else NAMES))
        other = data.draw(st.sampled_from(NAMES)) if action == "rename" else ""
        at = data.draw(rows) if action in ("label", "check", "clear", "skip") else np.array([], int)
        book.add([Step(action, at, label, other)])
        states.append((said(book), book.labels.names()))
    reopened = journal(path, start=["cat", *[None] * 5], by="later")
    for expected in reversed(states):
        assert (said(reopened), reopened.labels.names()) == expected
        last = reopened.undo()
    assert last == []
    assert (said(journal(path, start=["cat", *[None] * 5])), len(last)) == (states[0][0], 0)


def test_a_bulk_of_several_classes_is_one_step(tmp_path):
    book = journal(tmp_path / "x.csv")
    book.add([Step("label", np.array([0, 1]), "cat"), Step("label", np.array([2]), "dog")])
    assert len(book.undo()) == 2
    assert said(book) == [None] * 6


def test_half_a_line_of_a_program_that_was_killed_does_not_count(tmp_path):
    path = tmp_path / "x.csv"
    journal(path).add([Step("label", np.array([1]), "cat")])
    whole = path.read_bytes()
    for cut in range(1, 20):
        path.write_bytes(whole + whole.splitlines(keepends=True)[-1][:-cut])
        again = journal(path)
        assert said(again)[1] == "cat"
        again.add([Step("label", np.array([2]), "dog")])
        assert said(journal(path))[1:3] == ["cat", "dog"]


def test_kill_9_loses_nothing_that_was_confirmed(tmp_path):
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        import numpy as np
        from coxfield.studio.journal import Journal, Labels, Step

        book = Journal(Labels([None] * 10_000), Path(sys.argv[1]), "table", "me")
        for row in range(10_000):
            book.add([Step("label", np.array([row]), "cat")])
            print(row, flush=True)
        """
    )
    path = tmp_path / "x.csv"
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    confirmed = [int(process.stdout.readline()) for _ in range(40)]
    os.kill(process.pid, signal.SIGKILL)
    confirmed += [int(line) for line in process.stdout if line.endswith("\n")]
    process.wait()
    process.stdout.close()
    labels = journal(path, n=10_000).labels
    assert (labels.codes[confirmed] == 0).all()
    assert confirmed[-1] + 1 <= (labels.codes >= 0).sum() <= confirmed[-1] + 2


def test_two_programs_see_each_other_and_undo_their_own_steps(tmp_path):
    path = tmp_path / "x.csv"
    one, two = journal(path, by="one"), journal(path, by="two")
    one.add([Step("label", np.array([0]), "cat")])
    two.add([Step("label", np.array([1]), "dog")])
    assert one.read()
    assert said(one) == said(two) == ["cat", "dog", None, None, None, None]
    one.undo()
    assert two.read()
    assert said(one) == said(two) == [None, "dog", None, None, None, None]
    assert one.labels.classes == two.labels.classes


def test_merged_classes_keep_the_places_of_others():
    book = journal(None, start=["a", "b", "c", None])
    book.add([Step("rename", label="a", other="c")])
    assert book.labels.classes == [None, "b", "c"]
    assert said(book) == ["c", "b", "c", None]
    book.undo()
    assert said(book) == ["a", "b", "c", None]


@pytest.mark.parametrize("start", [["10", "9", None], ["b", "a", "2"]])
def test_classes_of_the_table_are_in_order(start):
    assert Labels(start).names() == {"10": ["9", "10"], "b": ["2", "a", "b"]}[start[0]]


def test_a_full_disk_is_a_sentence_and_the_file_is_as_before(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    book = journal(path)
    book.add([Step("label", np.array([0]), "cat")])
    before, write = path.read_bytes(), os.write

    def full(number, content):
        write(number, content[:7])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(FileNotWrittenError, match=r"could not be written.*No space left.*make room"):
        book.add([Step("label", np.array([1]), "dog")])
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert said(book)[:2] == ["cat", None]
    book.add([Step("label", np.array([1]), "dog")])
    assert said(journal(path))[:2] == ["cat", "dog"]


def test_a_file_that_somebody_removes_is_written_again(tmp_path):
    path = tmp_path / "x.csv"
    book = journal(path)
    book.add([Step("label", np.array([0]), "cat")])
    path.unlink()
    book.add([Step("label", np.array([1]), "dog")])
    assert said(journal(path))[:2] == ["cat", "dog"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a,b\n1,2\n", "is not a file of labels"),
        (b"\xff\xfe\n", "is not a file of labels"),
        (b"step,time,by,action,rows,label,other,expected_errors\n1,t,me,dance,1,x,,\n", "is not a file of labels"),
        (
            b"step,time,by,action,rows,label,other,expected_errors\n1,t,me,label,7,x,,\n",
            "label for row 7, but there are 6",
        ),
        (b"step,time,by,action,rows,label,other,expected_errors\n1,t,me,open,1-6,other,,\n", "another table"),
    ],
)
def test_other_files_are_refused_and_left_alone(content, sentence, tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(JournalError, match=sentence):
        journal(path)
    assert path.read_bytes() == content


def test_a_file_that_was_cut_is_refused(tmp_path):
    path = tmp_path / "x.csv"
    book = journal(path)
    book.add([Step("label", np.array([0]), "cat")])
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(JournalError, match="shorter than what was written"):
        book.add([Step("label", np.array([1]), "dog")])


def test_there_is_an_end_to_classes():
    with pytest.raises(JournalError, match="250 classes already"):
        Labels([str(k) for k in range(251)])

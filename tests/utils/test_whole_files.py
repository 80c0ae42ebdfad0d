"""A file is replaced whole, or stays as it was."""

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coxfield.utils import whole_files
from coxfield.utils.whole_files import FileNotWrittenError, alone, discard_parts, whole_file
from full_disk import SENTENCE, fill


def write(path, content):
    with whole_file(path) as stream:
        stream.write(content)


def write_half(path):
    with whole_file(path) as stream:
        stream.write(b"half")
        stream.write("not bytes")


def test_a_new_file_holds_all_that_was_written(tmp_path):
    write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_until_the_end_a_reader_sees_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with whole_file(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(TypeError):
        write_half(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_replaced_file_keeps_its_permissions_and_a_link_its_target(tmp_path):
    path, link = tmp_path / "real", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    write(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_hidden_file_has_the_permissions_from_the_start(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with whole_file(path) as stream:
        assert os.fstat(stream.fileno()).st_mode & 0o777 == 0o640
        stream.write(b"new")


def test_bytes_are_on_the_disk_before_the_move_and_the_name_before_the_end(tmp_path, monkeypatch):
    steps, sync, move = [], os.fsync, Path.replace

    def fsync(number):
        there = os.fstat(number)
        steps.append("folder" if os.path.samestat(there, tmp_path.stat()) else f"{there.st_size} bytes")
        sync(number)

    def replace(part, path):
        steps.append("move")
        return move(part, path)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    write(tmp_path / "a", b"new")
    assert steps == ["3 bytes", "move", *(["folder"] if os.name == "posix" else [])]


def write_and_discard(path):
    with whole_file(path) as stream:
        stream.write(b"half")
        assert len(list(path.parent.iterdir())) == 2
        discard_parts()
        assert list(path.parent.iterdir()) == [path]


def test_a_program_that_ends_at_once_can_remove_what_is_not_finished(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(FileNotFoundError):  # a program that goes on notices
        write_and_discard(path)
    assert path.read_bytes() == b"old"
    discard_parts()  # nothing is left to remove


@pytest.mark.parametrize("content", [b"more than there is room for", bytes(10**6)], ids=["when closed", "when written"])
def test_a_full_disk_is_a_sentence_and_the_old_file_stays(tmp_path, monkeypatch, content):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    fill(monkeypatch)
    with pytest.raises(FileNotWrittenError) as caught:
        write(path, content)
    assert str(caught.value) == f"{path} {SENTENCE}"
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def write_two(path, other):
    with whole_file(path) as stream:
        stream.write(b"new")
        write(other, bytes(1000))


def test_of_two_files_the_one_that_failed_is_named(tmp_path, monkeypatch):
    fill(monkeypatch)
    with pytest.raises(FileNotWrittenError) as caught:
        write_two(tmp_path / "a", tmp_path / "b")
    assert str(caught.value) == f"{tmp_path / 'b'} {SENTENCE}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="nothing is forbidden to the administrator")
def test_a_folder_that_cannot_be_written_to_is_a_sentence(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir(0o500)
    with pytest.raises(FileNotWrittenError, match=r"a could not be written, .*: write to another folder"):
        write(folder / "a", b"new")


def test_a_folder_is_not_replaced(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(FileNotWrittenError, match=r"a could not be written, .*: write to another folder"):
        write(tmp_path / "a", b"new")
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def fail_inside(path, error):
    with whole_file(path):
        raise error


@pytest.mark.parametrize(
    "error",
    [
        OSError("out of reach"),
        ConnectionResetError(errno.ECONNRESET, "out of reach"),
        OSError(errno.EIO, "out of reach", "another file"),
    ],
)
def test_errors_of_something_else_pass_through(tmp_path, error):
    with pytest.raises(type(error), match="out of reach") as caught:
        fail_inside(tmp_path / "a", error)
    assert caught.value is error


class Busy(Exception):  # noqa: N818
    """Somebody else is in the block."""


def busy():
    raise Busy


def test_only_one_thread_at_a_time_is_alone(tmp_path, monkeypatch):
    """Each reads a number and writes the next one. Without a lock some would write the same."""
    monkeypatch.setattr(whole_files, "POLL", 0.0005)
    path = tmp_path / "a"
    path.write_text("0")

    def count(_):
        with alone(path):
            number = int(path.read_text())
            write(path, str(number + 1).encode())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(200)))
    assert path.read_text() == "200"
    assert list(tmp_path.iterdir()) == [path]


def test_those_who_wait_are_told_once_and_other_files_are_free(tmp_path):
    with alone(tmp_path / "a"):
        with pytest.raises(Busy), alone(tmp_path / "a", busy):
            pass
        with alone(tmp_path / "b", busy):
            pass
    with alone(tmp_path / "a", busy):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_link_and_its_target_are_one_file(tmp_path):
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with alone(tmp_path / "real"), pytest.raises(Busy), alone(tmp_path / "link", busy):
        pass


def test_a_program_that_is_killed_leaves_no_lock_behind(tmp_path):
    path = tmp_path / "a"
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom coxfield.utils.whole_files import alone\n"
        "with alone(Path(sys.argv[1])):\n    print('in', flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout.readline() == "in\n"
            with pytest.raises(Busy), alone(path, busy):
                pass
        finally:
            other.kill()
    with alone(path, busy):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_block_that_fails_leaves_no_lock_behind(tmp_path):
    with pytest.raises(Busy), alone(tmp_path / "a"):
        raise Busy
    with alone(tmp_path / "a", busy):
        pass


@pytest.mark.skipif(os.name != "posix", reason="the locks of Windows are others")
def test_where_there_are_no_locks_everyone_enters(tmp_path, monkeypatch):
    def flock(number, kind):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(whole_files.fcntl, "flock", flock)
    with alone(tmp_path / "a"), alone(tmp_path / "a", busy):
        pass


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(FileNotWrittenError, match="could not be written"), alone(tmp_path / "absent" / "a"):
        pass


def test_a_program_that_ends_at_once_removes_its_lock(tmp_path):
    with alone(tmp_path / "a"):
        discard_parts()
        assert os.name != "posix" or list(tmp_path.iterdir()) == []

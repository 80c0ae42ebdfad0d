"""A file is replaced whole, or stays as it was."""

import pytest

from coxfield.utils.whole_files import whole_file


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

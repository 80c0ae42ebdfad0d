"""A stand-in for a disk that is full: files that are written whole fail after some bytes, as the system makes them."""

import errno
import io
import os
from pathlib import Path

SENTENCE = "could not be written, because of 'No space left on device': make room, or write to another disk"


class FullDisk(io.FileIO):
    """A file on a disk with room for a few bytes."""

    room = 10

    def write(self, data):
        if self.tell() + len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


def fill(monkeypatch, room=10):
    """Leave so many bytes of room for every new file."""
    original = Path.open
    monkeypatch.setattr(FullDisk, "room", room)

    def open_full(self, mode="r", *arguments, **options):
        if mode == "r+b":
            return io.BufferedWriter(FullDisk(os.fspath(self), "r+"))
        return original(self, mode, *arguments, **options)

    monkeypatch.setattr(Path, "open", open_full)

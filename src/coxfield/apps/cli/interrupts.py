"""Ctrl-C ends a command within a second: with one line, its own exit code, and no part of a file."""

import atexit
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

PATIENCE = 0.3  # seconds that commands have to clean up; then the process ends
INTERRUPTED = 130  # the exit code that shells give to a program that Ctrl-C ended
SENTENCE = "Stopped by Ctrl-C: every file is as it was before, or whole"
SHOW_CURSOR = "\x1b[?25h"  # progress bars hide it


def run(command: Callable[[], None]) -> None:
    """Call a command. If Ctrl-C stops it, print one line and exit with code 130.

    Python tells the main thread of Ctrl-C, and does so between two of its own instructions. While the thread waits for
    a long computation of another language, or for other threads, nothing would happen. So a thread listens too.
    """
    if threading.current_thread() is threading.main_thread():
        _listen()
    try:
        command()
    except KeyboardInterrupt:
        pass
    except SystemExit as end:  # typer turns Ctrl-C into this
        if end.code != INTERRUPTED:
            raise
    else:
        return
    _clean_up()
    _leave()


def _listen() -> None:
    """Start a thread that wakes when a signal arrives, whatever the main thread does."""
    # A second Ctrl-C, and the destructors that the first one hits, would print tracebacks.
    sys.unraisablehook = _ignore_interrupts
    # A socket instead of a pipe, because Windows wants one.
    ear, mouth = socket.socketpair()
    mouth.setblocking(False)
    signal.set_wakeup_fd(mouth.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(ear,), name="interrupts", daemon=True).start()


def _wait(ear: socket.socket) -> None:
    while signal.SIGINT not in ear.recv(1):
        pass
    time.sleep(PATIENCE)
    _clean_up()
    os._exit(INTERRUPTED)


def _leave() -> None:
    """End the process at once: to take all modules apart first, as `sys.exit` does, may take Python a second."""
    atexit._run_exitfuncs()  # other processes are ended here
    os._exit(INTERRUPTED)


_cleaned_up = threading.Lock()


def _clean_up() -> None:
    """Remove parts of files, and print the sentence. Only the first thread that calls this does it."""
    if not _cleaned_up.acquire(blocking=False):
        return
    # Not imported here: the main thread may hold the lock of imports. If the module is not loaded, there are no parts.
    files = sys.modules.get("coxfield.utils.whole_files")
    if files is not None:
        files.discard_parts()
    cursor = SHOW_CURSOR if sys.stderr.isatty() else ""
    os.write(sys.stderr.fileno(), f"{cursor}{SENTENCE}\n".encode())


def _ignore_interrupts(unraisable) -> None:
    """Report exceptions that nobody can catch, except for Ctrl-C."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)

"""Tasks that workers of a cluster can import."""

import os


def where(x):
    """The argument, and the process that did the task."""
    return {"x": x, "process": os.getpid()}

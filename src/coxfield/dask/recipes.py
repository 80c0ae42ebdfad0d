"""Shards that are read when they are needed, and not held.

Every block of queries meets every shard. If a shard were a task of its own, Dask would hold it until the last block has
met it, and all shards together need not fit into memory. So a shard that is cheap to describe, such as a part of a
file, is read inside each task that uses it. A shard that the user has persisted is not read again.
"""

from __future__ import annotations

from typing import Any

from dask.optimization import cull
from dask.sizeof import sizeof
from distributed import Future

import dask

LIGHT = 2**16  # bytes that a description may take, because each task carries it


class Recipe:
    """How to make one chunk: tasks that are run one after the other, where the chunk is needed."""

    def __init__(self, tasks: dict, key):
        self.tasks, self.key = tasks, key

    def make(self) -> Any:
        """The chunk."""
        return dask.get(self.tasks, self.key)


def made(chunk) -> Any:
    """A chunk, from itself or from its recipe."""
    return chunk.make() if isinstance(chunk, Recipe) else chunk


def references(collection) -> list:
    """For each chunk of rows of a Dask array, its recipe if it has a light one, and otherwise its key."""
    tasks = dict(collection.__dask_graph__())
    return [_reference(tasks, key) for key in keys_of(collection)]


def keys_of(collection) -> list:
    """The keys of the chunks of rows of a Dask array whose columns are in one chunk."""
    keys = collection.__dask_keys__()
    return [key[0] for key in keys] if collection.ndim == 2 else keys


def _reference(tasks: dict, key) -> Any:
    needed = dict(cull(tasks, key)[0])
    values = [getattr(node, "value", node) for node in needed.values()]
    if any(isinstance(value, Future) for value in values) or sum(map(sizeof, values)) > LIGHT:
        return key
    return Recipe(needed, key)

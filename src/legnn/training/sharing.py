"""Several runs in one process, each bit for bit what it is alone.

A small graph leaves a GPU idle between launches: captured epochs of several runs overlap, each on a stream of its own.
The runs take turns on the host, all in one thread: each launches an epoch, and pauses until the others have launched
theirs. So nothing that a process has once (PyTorch's generators, its allocator during a capture, filters of warnings)
is used by two at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, TypeVar

import torch

T = TypeVar("T")

Steps = Generator[None, None, T]
"""A run that pauses after the launches of each epoch, and returns what it came to."""


def finish(steps: Steps[T]) -> T:
    """Returns what `steps` come to, without a pause: for a run that has the process alone."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


@dataclass(eq=False)
class Group:
    """Runs on one graph with the same settings but for the seed: the first of them, and those that follow it."""

    device: torch.device
    is_captured: bool = False
    """Whether the first run has captured its steps: kernels are compiled then, and libraries loaded."""
    gave_up: bool = False
    """Whether its steps could not be captured."""
    kept: dict[str, Any] = field(default_factory=dict)


_group: ContextVar[Group | None] = ContextVar("group", default=None)


def current_group() -> Group | None:
    """Returns the group of the run that has its turn; None for a run that has the process alone."""
    return _group.get()


class Member(Generic[T]):
    """A run of a group, with a stream and context variables of its own.

    Args:
        group: what it shares with others.
        place: of its stream; runs at the same time have different places, from 1.
        steps: the run.
    """

    def __init__(self, group: Group, place: int, steps: Steps[T]) -> None:
        self._group, self.place, self._steps = group, place, steps
        self._context = copy_context()
        self._context.run(_group.set, group)
        self.turns = 0

    def advance(self) -> None:
        """Goes on to the next pause; raises `StopIteration` at its end."""
        self.turns += 1
        device = self._group.device
        with torch.cuda.stream(run_stream(device, self.place)) if device.type == "cuda" else nullcontext():
            self._context.run(next, self._steps)


def kept_by_group(name: str, make: Callable[[], T]) -> T:
    """Returns `make()`, called once for all the runs of a group: for what they read and never change."""
    group = _group.get()
    if group is None:
        return make()
    if name not in group.kept:
        group.kept[name] = make()
        if group.device.type == "cuda":
            # the other runs read it on streams of their own
            torch.cuda.current_stream(group.device).synchronize()
    return group.kept[name]


def run_stream(device: torch.device, place: int = 0) -> torch.cuda.Stream:
    """Returns the stream of a place, always the same: PyTorch keeps memory for every stream that it has seen."""
    return _stream(torch.cuda.current_device() if device.index is None else device.index, place)


@lru_cache(None)
def _stream(index: int, place: int) -> torch.cuda.Stream:
    return torch.cuda.Stream(index)

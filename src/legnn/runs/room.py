"""Which runs of a process train at the same time: small ones in turns, a large one when no other trains."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

import torch

from legnn.config import ResolvedSettings
from legnn.data import GraphData
from legnn.errors import InputError, Interrupted, OutOfMemory
from legnn.runs.resources import bytes_in_turns, select_device
from legnn.training.cuda_graph import release_memory
from legnn.training.memory import USABLE, free_bytes
from legnn.training.sharing import Group, Steps, finish, joined, without_turns

T = TypeVar("T")


class Room:
    """The runs that train in turns in a process, and those that wait, which begin in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: deque[object] = deque()
        self._groups: dict[Hashable, Group] = {}
        self._training: Counter[Hashable] = Counter()
        """Runs that train, by the key of their group."""

    @property
    def is_empty(self) -> bool:
        """Whether no run trains."""
        return not self._training

    def wait(self, may_begin: Callable[[], bool], is_over: Callable[[], bool]) -> Steps[None]:
        """Pauses until it is this run's turn to begin and `may_begin`; raises `Interrupted` if it `is_over` before."""
        ticket = object()
        self._waiting.append(ticket)
        try:
            while not is_over():
                if self._waiting[0] is ticket and may_begin():
                    return
                yield
            raise Interrupted(None, None)
        finally:
            self._waiting.remove(ticket)

    def free_ended(self) -> None:
        """Frees what runs that have ended left with those of their groups that still train."""
        for group in self._groups.values():
            group.free_ended()

    def train(self, key: Hashable, device: torch.device, start: Callable[[], Steps[T]]) -> Steps[T]:
        """Trains beside others; those with the same key share what does not depend on the seed."""
        group = self._groups.setdefault(key, Group(device))
        self._training[key] += 1
        try:
            with joined(group), closing(start()) as steps:
                return (yield from _synchronized(steps, group))
        except InputError:
            if device.type == "cuda":
                # epochs in flight read what the group keeps, which another stream may reuse when it is freed
                torch.cuda.current_stream(device).synchronize()
            raise
        finally:
            self._training[key] -= 1
            if not self._training[key]:
                del self._training[key]
                self._groups.pop(key).close()
            if self.is_empty:
                release_memory(device)


def _synchronized(steps: Steps[T], group: Group) -> Steps[T]:
    """`steps`, of which those before the group's first capture have ended when another run has its turn."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        if group.device.type == "cuda" and not group.is_captured:
            # what a process creates once, others read on streams of their own
            torch.cuda.current_stream(group.device).synchronize()
        yield


_room: ContextVar[Room | None] = ContextVar("room", default=None)


@contextmanager
def open_room() -> Iterator[None]:
    """Within it runs are begun that share this process."""
    token = _room.set(Room())
    try:
        yield
    finally:
        _room.reset(token)


def train_beside_others(
    graph: GraphData, settings: ResolvedSettings, start: Callable[[], Steps[T]], is_over: Callable[[], bool]
) -> Steps[T]:
    """The steps of `start()`: in turns with the other runs of a process that has several.

    A run that is not small, or for which there is too little memory beside the others, waits until none of them trains,
    and makes no pause then.

    Args:
        graph: what it is trained on.
        settings: of the run.
        start: begins it, or continues it.
        is_over: asked while it waits; True raises `Interrupted`.
    """
    room = _room.get()
    if room is None:
        return (yield from start())
    device = select_device(settings.train.device)
    needed = bytes_in_turns(settings, graph)

    def fits() -> bool:
        return needed is not None and needed <= USABLE * free_bytes(device)

    room.free_ended()
    if not fits():
        # runs that have ended may have left some
        release_memory(device)
    yield from room.wait(lambda: room.is_empty or fits(), is_over)
    if fits():
        with suppress(OutOfMemory):  # alone it may fit, and goes on there
            return (yield from room.train((id(graph), repr(settings.override(seed=0))), device, start))
        yield from room.wait(lambda: room.is_empty, is_over)
    release_memory(device)
    with without_turns(device):
        return finish(start())

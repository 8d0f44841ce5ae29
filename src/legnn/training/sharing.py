"""Several runs in one process, each bit for bit what it is alone.

A small graph leaves a GPU idle between launches: captured epochs of several runs overlap, each on a stream of its own.
The runs take turns on the host, all in one thread: each launches some epochs, and pauses until the others have launched
theirs. So nothing that a process has once (PyTorch's generators, its allocator during a capture, filters of warnings)
is used by two at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, TypeVar

import torch

from legnn.ops.runtime.garbage import rare_full_collections

T = TypeVar("T")

TURN_SECONDS = 5e-4
"""What a run waits in its turn for something that is done in a thread."""

THREADS = 2
"""In which runs write: one waits for a disk while the other works, and both take the interpreter from the launches."""

Steps = Generator[None, None, T]
"""A run that pauses after launches of epochs, and returns what it came to."""


def finish(steps: Steps[T]) -> T:
    """Returns what `steps` come to, without a pause: for a run that has the process alone."""
    with rare_full_collections():
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
    draws: bool = False
    """Whether these draw from the generator of the run."""
    gave_up: bool = False
    """Whether its steps are not captured."""
    begins: bool = False
    """Whether some of its runs have no epoch in flight yet, and the first has captured its steps."""
    kept: dict[str, Any] = field(default_factory=dict)
    ended: list[Any] = field(default_factory=list)
    """Captured steps of runs that have ended, freed together: to free one took longer, the more was in flight."""

    def free_ended(self) -> None:
        """Frees what runs that have ended left: another may need its memory."""
        self.ended.clear()

    def close(self) -> None:
        """Forgets what the runs shared."""
        self.kept.clear()
        self.free_ended()


_group: ContextVar[Group | None] = ContextVar("group", default=None)


def current_group() -> Group | None:
    """Returns the group of the run that has its turn; None for a run that shares nothing."""
    return _group.get()


def others_begin() -> bool:
    """Whether runs of the group are yet to begin: the last one ends so much later as another waits or predicts now."""
    group = _group.get()
    return group is not None and group.begins


@contextmanager
def joined(group: Group) -> Iterator[None]:
    """Within it the run that has its turn is one of `group`."""
    token = _group.set(group)
    try:
        yield
    finally:
        _group.reset(token)


Hold = Callable[[], AbstractContextManager[Any]]
"""Makes a context of something that a process has once."""


class Member(Generic[T]):
    """A run that takes turns with others, with a stream and context variables of its own.

    Args:
        device: where it is trained.
        place: of its stream; runs at the same time have different places, from 1.
        steps: the run.
        group: what it shares with others; a run that has to read its data first joins a group later.
    """

    def __init__(self, device: torch.device, place: int, steps: Steps[T], group: Group | None = None) -> None:
        self.place, self.held = place, list[Hold]()
        self._steps, self._stream = steps, run_stream(device, place) if device.type == "cuda" else None
        self._context = copy_context()
        self._context.run(_member.set, self)
        self._context.run(_group.set, group)
        self._turn = ExitStack()
        self.has_begun = self.has_left = False
        """Whether it has come to its epochs, and whether it needs its device no more."""
        self.idle_seconds = 0.0
        """Those between its turns."""
        self._paused = time.perf_counter()

    def advance(self) -> None:
        """Goes on to the next pause, and leaves its stream the current one; raises `StopIteration` at its end."""
        self.idle_seconds += time.perf_counter() - self._paused
        try:
            if self._stream is not None:
                torch.cuda.set_stream(self._stream)
            with ExitStack() as self._turn:
                for make in self.held:
                    self._turn.enter_context(make())
                self._context.run(next, self._steps)
        finally:
            self._paused = time.perf_counter()

    def close(self) -> None:
        """Ends the run where it is."""
        self._context.run(self._steps.close)

    def hold(self, make: Hold) -> None:
        """Enters the context for the rest of this turn, and in each turn that follows."""
        self.held.append(make)
        self._turn.enter_context(make())


_member: ContextVar[Member[Any] | None] = ContextVar("member", default=None)


def takes_turns() -> bool:
    """Whether other runs of this process go on before this one has ended."""
    return _member.get() is not None


def note_begun() -> None:
    """Notes that the epochs of this run follow."""
    member = _member.get()
    if member is not None:
        member.has_begun = True


def note_left() -> None:
    """Notes that this run needs its device no more."""
    member = _member.get()
    if member is not None:
        member.has_left = True


def idle_seconds() -> float:
    """Returns the seconds in which this run has waited for its turn."""
    member = _member.get()
    return 0.0 if member is None else member.idle_seconds


def in_thread(work: Callable[[], T]) -> Steps[T]:
    """`work()`, in a thread while other runs have their turns: for what waits for a disk and uses no device."""
    if not takes_turns():
        return work()
    future = _threads(os.getpid()).submit(work)
    try:
        yield
        # a moment, in which no other run has its turn: the last one left would take the processor from the thread
        while not wait([future], timeout=TURN_SECONDS).done:
            yield
    finally:
        # also where the run is closed at a pause
        wait([future])
    return future.result()


@lru_cache(1)
def _threads(process: int) -> ThreadPoolExecutor:
    # one for each process: a forked process does not inherit them; kept, for to start and end one takes a while
    return ThreadPoolExecutor(THREADS, "legnn-files")


@contextmanager
def during_turns(make: Hold) -> Iterator[None]:
    """Context that holds whenever this run has its turn, and never in those of others; `make` enters it once a turn."""
    member = _member.get()
    if member is None:
        with make():
            yield
        return
    member.hold(make)
    try:
        yield
    finally:
        # what was entered in this turn ends with it
        member.held.remove(make)


@contextmanager
def without_turns(device: torch.device) -> Iterator[None]:
    """Within it a run has the process alone: it makes no pause, and shares nothing."""
    tokens = _member.set(None), _group.set(None)
    with ExitStack() as stack:
        if device.type == "cuda":
            stack.enter_context(torch.cuda.stream(torch.cuda.default_stream(device)))
        try:
            yield
        finally:
            _member.reset(tokens[0])
            _group.reset(tokens[1])


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

"""What a process does that carries out tasks for another one: one at a time, or several in turns."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from legnn.training.sharing import Steps

STOPPING = (signal.SIGINT, signal.SIGTERM)
LOOK_SECONDS = 0.05
"""How often the connection is looked at while tasks are in flight: an epoch may take less than a look."""


class Begin(NamedTuple):
    """A task for the process."""

    number: int
    task: Any


class Pause(NamedTuple):
    """Asks the process to end a task after the epoch in flight."""

    number: int


class Report(NamedTuple):
    """What a task says before it has ended."""

    number: int
    value: Any


class Ended(NamedTuple):
    """What a task came to."""

    number: int
    value: Any


class Fatal(NamedTuple):
    """The task that ends the process by its error."""

    number: int


class Inbox:
    """What the process that started this one sends to it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.is_stopping = self._is_closed = False
        self.paused: set[int] = set()
        """Numbers of tasks."""
        self._begun: deque[Begin] = deque()
        self._looked = 0.0
        self._parent: int | None = None

    def listen(self) -> None:
        """Notes signals, also those that came since the process began, and whether the parent process ends."""
        parent = multiprocessing.parent_process()
        # not `getppid`: the parent may have ended before this one listened
        self._parent = os.getppid() if parent is None else parent.pid
        # Ctrl-C reaches every process of a terminal: the epoch in flight is finished and a checkpoint written
        for number in STOPPING:
            signal.signal(number, self._note)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)

    @property
    def is_orphan(self) -> bool:
        """Whether the process that collects outcomes was killed."""
        return self._parent is not None and os.getppid() != self._parent

    def next_task(self, *, wait: bool) -> Begin | None:
        """Returns a task that was sent, and with `wait` the next one; None if there is none, or will be none."""
        while wait and not self._begun and not self._is_closed:
            self._receive()
        self.look()
        return self._begun.popleft() if self._begun else None

    def look(self) -> None:
        """Receives what was sent, if the last look was some time ago."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        while not self._is_closed and self.connection.poll():
            self._receive()

    def send(self, message: Report | Ended | Fatal) -> None:
        """Answers; a process that has ended is noticed by `is_orphan`, or when the next task is received."""
        with suppress(OSError):
            self.connection.send(message)

    def _receive(self) -> None:
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            self._is_closed = True
            return
        if isinstance(message, Pause):
            self.paused.add(message.number)
        else:
            self._begun.append(message)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.is_stopping = True


class Signals:
    """What is asked of a task, and how it tells how far it is; without an inbox, nobody asks."""

    def __init__(self, inbox: Inbox | None = None, number: int = 0) -> None:
        self._inbox, self._number = inbox, number

    def report(self, value: object) -> None:
        """Tells the process that started this one how far the task is."""
        if self._inbox is not None:
            self._inbox.send(Report(self._number, value))

    def should_stop(self) -> bool:
        """Whether this and all other tasks should end, also because the process that collects outcomes was killed."""
        return self._inbox is not None and (self._inbox.is_stopping or self._inbox.is_orphan)

    def should_pause(self) -> bool:
        """Whether this task should end, and others may follow."""
        if self._inbox is None:
            return False
        self._inbox.look()
        return self._number in self._inbox.paused or self.should_stop()


Function = Callable[[Any, Signals], Any]
"""Carries out a task: a function of a module, so that another process finds it by its name. One that is a generator
takes turns with others."""


def serve(connection: Connection, function: Function, threads: int, turns: int) -> None:
    """Carries out the tasks that come through the connection and answers with their values, until it is closed.

    Args:
        connection: to the process that sends tasks.
        function: carries out one of them.
        threads: of PyTorch.
        turns: the most tasks at a time; with one, each has the process alone.
    """
    import torch

    from legnn.ops.runtime.allocation import keep_freed_memory

    torch.set_num_threads(threads)
    keep_freed_memory()
    inbox = Inbox(connection)
    inbox.listen()
    if turns == 1:
        _serve_alone(inbox, function)
    else:
        _serve_in_turns(inbox, function, turns)


def _serve_alone(inbox: Inbox, function: Function) -> None:
    from legnn.training.sharing import finish

    while (begun := inbox.next_task(wait=True)) is not None:
        inbox.send(Ended(begun.number, finish(_steps(function, begun, inbox))))


def _serve_in_turns(inbox: Inbox, function: Function, turns: int) -> None:
    from legnn.runs.resources import select_device
    from legnn.runs.room import open_room
    from legnn.runs.turns import Turns

    tasks: Turns[int, Any] = Turns(select_device("auto"), turns)
    with open_room(), closing(tasks):
        while True:
            # one in a round: the GPU works on the epochs of the others while this one is built
            if tasks.has_place and (begun := inbox.next_task(wait=not tasks)) is not None:
                tasks.begin(begun.number, _steps(function, begun, inbox))
            if not tasks:
                return
            try:
                for number, value, error in tasks.take():
                    if error is not None:
                        raise error
                    inbox.send(Ended(number, value))
            except BaseException:
                # the process ends: some errors leave a device that nothing can be computed on
                if tasks.turn is not None:
                    inbox.send(Fatal(tasks.turn))
                raise


def _steps(function: Function, begun: Begin, inbox: Inbox) -> Steps[Any]:
    value = function(begun.task, Signals(inbox, begun.number))
    return (yield from value) if isinstance(value, Generator) else value

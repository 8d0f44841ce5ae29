"""A worker process from within: carries out tasks for the process that started it, one after the other."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, NamedTuple

STOPPING = (signal.SIGINT, signal.SIGTERM)
POLL_SECONDS = 0.05
"""How often the connection is polled during a task: an epoch may take less time than a poll."""


class Begin(NamedTuple):
    """A task for the process."""

    number: int
    task: Any


class Pause(NamedTuple):
    """Asks the process to end a task after the current epoch."""

    number: int


class Report(NamedTuple):
    """What a task reports before it has ended."""

    value: Any


class Ended(NamedTuple):
    """The return value of a task."""

    value: Any


class Signals:
    """What is asked of the current task, and the way it reports; without a connection, nobody asks."""

    def __init__(self, connection: Connection | None = None) -> None:
        self._connection = connection
        """None when there will be no other task."""
        self._is_stopping = False
        self._current, self._paused = 0, -1
        """Numbers of tasks."""
        self._polled = 0.0
        self._parent: int | None = None

    def listen(self) -> None:
        """Notes signals, also those that came since the process began, and whether the parent process ends."""
        parent = multiprocessing.parent_process()
        # not `getppid`: the parent may have ended before this one listened
        self._parent = os.getppid() if parent is None else parent.pid
        # Ctrl-C reaches every process of a terminal: the current epoch is finished and a checkpoint written
        for number in STOPPING:
            signal.signal(number, self._stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)

    def next_task(self) -> Begin | None:
        """Waits for a task and returns it; None if there will be none."""
        while self._connection is not None:
            message = self._receive()
            if isinstance(message, Begin):
                self._current = message.number
                return message
        return None

    def report(self, value: object) -> None:
        """Tells the process that started this one how far the task is."""
        self.send(Report(value))

    def send(self, message: Report | Ended) -> None:
        """Sends a message; if the other process has ended, `should_stop` and `next_task` say so."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.send(message)

    def should_stop(self) -> bool:
        """Whether this process should end, also because the process that collects outcomes was killed."""
        is_orphan = self._parent is not None and os.getppid() != self._parent
        return self._is_stopping or is_orphan

    def should_pause(self) -> bool:
        """Whether this task should end, and others may follow."""
        if time.monotonic() - self._polled >= POLL_SECONDS:
            self._polled = time.monotonic()
            while self._connection is not None and self._connection.poll():
                self._receive()
        return self._paused == self._current or self.should_stop()

    def _receive(self) -> Begin | None:
        assert self._connection is not None
        try:
            message = self._connection.recv()
        except (EOFError, OSError):
            self._connection = None
            return None
        if isinstance(message, Pause):
            self._paused = message.number
            return None
        return message

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True


Function = Callable[[Any, Signals], Any]
"""Carries out a task: a function of a module, so that another process finds it by its name."""


def serve(connection: Connection, function: Function, threads: int) -> None:
    """Carries out the tasks that come through the connection and answers with their values, until it is closed.

    Args:
        connection: to the process that sends tasks.
        function: carries out one of them.
        threads: of PyTorch.
    """
    import torch

    torch.set_num_threads(threads)
    signals = Signals(connection)
    signals.listen()
    while (begun := signals.next_task()) is not None:
        signals.send(Ended(function(begun.task, signals)))

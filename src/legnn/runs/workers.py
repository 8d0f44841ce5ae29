"""Processes that carry out tasks, several at a time."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any, Generic, NamedTuple, TypeVar

Task = TypeVar("Task")
Value = TypeVar("Value")

CLOSE_SECONDS = 10.0
"""How long a process may take to end by itself."""
POLL_SECONDS = 0.5
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Signals:
    """What the process that started this one asks of it, and is told before a task has ended."""

    def __init__(self, connection: Connection | None = None) -> None:
        self._connection = connection
        self._is_stopping = self._is_pausing = False
        self._parent: int | None = None

    def listen(self) -> None:
        """Notes signals, also those that came since the process began, and whether the parent process ends."""
        parent = multiprocessing.parent_process()
        # not `getppid`: the parent may have ended before this one listened
        self._parent = os.getppid() if parent is None else parent.pid
        # Ctrl-C reaches every process of a terminal: the epoch in flight is finished and a checkpoint written
        for number in SIGNALS:
            signal.signal(number, self._note)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def report(self, value: object) -> None:
        """Tells the process that started this one how far the task is."""
        if self._connection is not None:
            with suppress(OSError):  # the process has ended, which `should_stop` notices
                self._connection.send(Report(value))

    def forget_pause(self) -> None:
        """Forgets what was asked of the last task alone."""
        self._is_pausing = False

    def should_stop(self) -> bool:
        """Whether this and all other tasks should end, also because the process that collects outcomes was killed."""
        return self._is_stopping or (self._parent is not None and os.getppid() != self._parent)

    def should_pause(self) -> bool:
        """Whether this task should end, and others may follow."""
        return self._is_pausing or self.should_stop()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGUSR1:
            self._is_pausing = True
        else:
            self._is_stopping = True


class Report(NamedTuple):
    """What a task says before it has ended."""

    value: Any


class Failure(NamedTuple):
    """A process that ended before its task did."""

    why: str


Function = Callable[[Any, Signals], Any]
"""Carries out a task: a function of a module, so that another process finds it by its name."""


def serve(connection: Connection, function: Function, threads: int) -> None:
    """Carries out the tasks that come through the connection and answers with their values, until it is closed."""
    import torch

    torch.set_num_threads(threads)
    signals = Signals(connection)
    signals.listen()
    # a pause that was asked for before the first task is received can only be meant for it
    for number in itertools.count():
        try:
            task = connection.recv()
        except (EOFError, OSError):
            return
        if number:
            signals.forget_pause()
        value = function(task, signals)
        with suppress(OSError):  # the next `recv` finds the connection closed
            connection.send(value)


@contextmanager
def _hidden_main() -> Iterator[None]:
    """Within it a new process does not run the caller's script again, which need not guard itself against that."""
    main = sys.modules["__main__"]
    hidden = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    try:
        for name in hidden:
            setattr(main, name, None)
        yield
    finally:
        for name, value in hidden.items():
            setattr(main, name, value)


@contextmanager
def _blocked_signals() -> Iterator[None]:
    """Within it a new process is started that no signal can end before it listens: to block them is inherited."""
    resource_tracker.ensure_running()  # which unblocks them when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Worker(Generic[Task, Value]):
    """A process that carries out tasks, and the connection to it, which is ready when a task has ended.

    Not a `ProcessPoolExecutor`: one process that is killed breaks the whole of it.
    """

    def __init__(self, function: Callable[[Task, Signals], Value], threads: int) -> None:
        # a process that is forked cannot use a GPU
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, function, threads), daemon=True)
        with _hidden_main(), _blocked_signals():
            self._process.start()
        theirs.close()
        self.task: Task | None = None
        """The task in flight."""
        self.began = 0.0
        """When it was sent, by `time.monotonic`."""

    @property
    def has_ended(self) -> bool:
        """Whether another process has to take its place."""
        return not self._process.is_alive()

    def begin(self, task: Task) -> None:
        """Begins a task."""
        self.task, self.began = task, time.monotonic()
        with suppress(OSError):  # of a process that has died: `outcome` says so
            self.connection.send(task)

    def outcome(self) -> Value | Failure | Report:
        """What the task came to, or says before it has ended, when the connection is ready."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            why = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            return Failure(f"its process was ended ({why}), perhaps for want of memory")

    def stop(self) -> None:
        """Ends all tasks after the epoch in flight."""
        self._signal(signal.SIGTERM)

    def pause(self) -> None:
        """Ends the task after the epoch in flight."""
        self._signal(signal.SIGUSR1)

    def kill(self) -> None:
        """Ends the process at once; `outcome` says so."""
        self._process.kill()

    def close(self) -> None:
        """Ends the process, which has no task or has been asked to stop."""
        self.connection.close()
        self._process.join(CLOSE_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _signal(self, number: int) -> None:
        if self._process.is_alive() and self._process.pid is not None:
            os.kill(self._process.pid, number)


def carry_out(
    function: Callable[[Task, Signals], Value],
    next_task: Callable[[], Task | None],
    jobs: int,
    *,
    on_outcome: Callable[[Task, Value | Failure], None],
    on_report: Callable[[Task, Any], None] = lambda task, value: None,
    on_poll: Callable[[list[Worker[Task, Value]]], None] = lambda busy: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Carries out tasks in `jobs` processes until `next_task` returns None and none is in flight.

    Args:
        function: carries out one task, in another process.
        next_task: asked whenever a process is free; None if there is no task now.
        jobs: processes, which share the cores.
        on_outcome: called with every task and what it came to.
        on_report: called with a task and what it reports before it has ended.
        on_poll: called about twice a second with the processes that are busy, which it may pause or kill.
        should_stop: asked as often; True ends all tasks.
    """
    threads = max((os.cpu_count() or 1) // jobs, 1)
    busy: list[Worker[Task, Value]] = []
    idle: list[Worker[Task, Value]] = []
    try:
        while True:
            is_stopping = should_stop()
            while not is_stopping and len(busy) < jobs and (task := next_task()) is not None:
                one = idle.pop() if idle else Worker(function, threads)
                one.begin(task)
                busy.append(one)
            if not busy:
                return
            for one in busy if is_stopping else ():
                one.stop()
            on_poll(busy)
            ready = wait([one.connection for one in busy], POLL_SECONDS)
            for one in [one for one in busy if one.connection in ready]:
                outcome = one.outcome()
                assert one.task is not None
                if isinstance(outcome, Report):
                    on_report(one.task, outcome.value)
                    continue
                busy.remove(one)
                if one.has_ended:
                    one.close()
                else:
                    idle.append(one)
                on_outcome(one.task, outcome)
    finally:
        # after an exception: all write their checkpoints at the same time
        for one in busy:
            one.stop()
        for one in (*busy, *idle):
            one.close()

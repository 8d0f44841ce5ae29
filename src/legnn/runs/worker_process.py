"""A process that carries out tasks, as the process that started it sees it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Generic, NamedTuple, TypeVar

from legnn.lazy import call_pickled
from legnn.runs.task_server import STOPPING, Begin, Ended, Fatal, Function, Pause, Report, serve

Task = TypeVar("Task")

CLOSE_SECONDS = 10.0
"""How long a process may take to end by itself."""
PAUSE_SECONDS = 2.0
"""How long a task may take to pause before its process, and with it others, is killed."""


class Failure(NamedTuple):
    """A process that ended before its task did."""

    why: str


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
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve_and_exit(connection: Connection, function: Function, threads: int, turns: int) -> None:
    """Carries out tasks, and ends this process."""
    serve(connection, function, threads, turns)
    sys.stdout.flush()
    sys.stderr.flush()
    # every task has written what it writes: Python would take half a second to end, for which the caller waits
    os._exit(0)


class BegunTask(Generic[Task]):
    """A task that was begun."""

    def __init__(self, worker: Worker[Task], number: int, task: Task) -> None:
        self.task = task
        self._worker, self._number, self._asked = worker, number, 0.0

    def pause(self) -> None:
        """Ends the task after the epoch in flight."""
        self._asked = self._asked or time.monotonic()
        self._worker.send(Pause(self._number))

    def kill(self) -> None:
        """Ends the task with its process; one that others share is asked for a pause first: call it again."""
        if len(self._worker.tasks) > 1:
            if not self._asked:
                self.pause()
            if time.monotonic() - self._asked < PAUSE_SECONDS:
                return
        self._worker.fatal.add(self._number)
        self._worker.kill()


class Worker(Generic[Task]):
    """A process that carries out tasks, and the connection to it, which is ready when a task has ended.

    Not a `ProcessPoolExecutor`: one process that is killed breaks the whole of it.

    Args:
        function: carries out one task.
        threads: of PyTorch, in the process.
        turns: the most tasks at a time, which take turns.
    """

    def __init__(self, function: Function, threads: int, turns: int = 1) -> None:
        # a process that is forked cannot use a GPU
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        # pickled here, or the process would import all that the function needs before any of our code runs there
        begin = pickle.dumps(partial(_serve_and_exit, function=function, threads=threads, turns=turns))
        self._process = context.Process(target=call_pickled, args=(begin, theirs), daemon=True)
        with _hidden_main(), _blocked_signals():
            self._process.start()
        theirs.close()
        self.turns = turns
        self.is_reserved = False
        """Whether the task in flight is to have the process alone."""
        self.tasks: dict[int, BegunTask[Task]] = {}
        """Those in flight, by number."""
        self.fatal: set[int] = set()
        """Tasks that end the process, or for which it is killed."""
        self._begun = 0

    @property
    def has_ended(self) -> bool:
        """Whether another process has to take its place."""
        return not self._process.is_alive()

    @property
    def has_room(self) -> bool:
        """Whether it can begin another task."""
        return len(self.tasks) < (1 if self.is_reserved else self.turns)

    def begin(self, task: Task) -> BegunTask[Task]:
        """Begins a task."""
        number, self._begun = self._begun, self._begun + 1
        self.tasks[number] = BegunTask(self, number, task)
        self.send(Begin(number, task))
        return self.tasks[number]

    def send(self, message: Begin | Pause) -> None:
        """Sends a message; `receive` says so if the process has died."""
        with suppress(OSError):
            self.connection.send(message)

    def receive(self) -> Report | Ended | Failure | None:
        """What a task came to, or says before it has ended, or that the process has; None for what is noted here."""
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            why = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            return Failure(f"its process was ended ({why}), perhaps for want of memory")
        if isinstance(message, Fatal):
            self.fatal.add(message.number)
            return None
        return message

    def stop(self) -> None:
        """Ends all tasks after the epoch in flight."""
        if self._process.is_alive() and self._process.pid is not None:
            os.kill(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Ends the process at once; `receive` says so."""
        self._process.kill()

    def close(self) -> None:
        """Ends the process, which has no task or has been asked to stop."""
        self.connection.close()
        self._process.join(CLOSE_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

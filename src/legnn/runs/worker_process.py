"""A worker process from outside: started, sent tasks, stopped."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Generic, NamedTuple, TypeVar

from legnn.environment import call_in_worker
from legnn.runs.task_server import STOPPING, Begin, Ended, Function, Pause, Report, serve

Task = TypeVar("Task")

CLOSE_SECONDS = 10.0
"""How long a process may take to end by itself."""


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


def _serve_and_exit(connection: Connection, function: Function, threads: int) -> None:
    """Carries out tasks, and ends this process."""
    serve(connection, function, threads)
    sys.stdout.flush()
    sys.stderr.flush()
    # every task has written what it writes: Python would take half a second to end, for which the caller waits
    os._exit(0)


class Worker(Generic[Task]):
    """A process that carries out one task after the other; its connection is ready when a task has ended.

    Not a `ProcessPoolExecutor`: one process that is killed breaks the whole of it.

    Args:
        function: carries out one task.
        threads: of PyTorch, in the process.
        gpu: the one that the process sees, as `CUDA_VISIBLE_DEVICES` names it; all if it is None.
    """

    task: Task
    """The current task, if there is one, or the last."""

    def __init__(self, function: Function, threads: int, gpu: str | None = None) -> None:
        # a process that is forked cannot use a GPU
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        # pickled here, or the process would import all that the function needs before any of our code runs there
        begin = pickle.dumps(partial(_serve_and_exit, function=function, threads=threads))
        self._process = context.Process(target=call_in_worker, args=(begin, gpu, theirs), daemon=True)
        with _hidden_main(), _blocked_signals():
            self._process.start()
        theirs.close()
        self.gpu, self.is_busy = gpu, False
        self._number = 0

    @property
    def has_ended(self) -> bool:
        """Whether another process has to replace it."""
        return not self._process.is_alive()

    def begin(self, task: Task) -> None:
        """Begins a task."""
        self.task, self.is_busy = task, True
        self._number += 1
        self._send(Begin(self._number, task))

    def pause(self) -> None:
        """Ends the task after the current epoch."""
        self._send(Pause(self._number))

    def receive(self) -> Report | Ended | Failure:
        """Returns what the task reports or has returned, or that the process has ended."""
        try:
            message: Report | Ended = self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            why = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            return Failure(f"its process was ended ({why}), perhaps for want of memory")
        self.is_busy = isinstance(message, Report)
        return message

    def stop(self) -> None:
        """Ends the task after the current epoch, and the process."""
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

    def _send(self, message: Begin | Pause) -> None:
        # `receive` says so if the process has died
        with suppress(OSError):
            self.connection.send(message)

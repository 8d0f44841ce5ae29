"""Executors train the tasks of a sweep: one after the other in this process, or several at a time in others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import IO, Any, Protocol

from legnn.config import ResolvedSettings
from legnn.data import GraphData
from legnn.environment import thread_waiting
from legnn.errors import InputError
from legnn.runs.build import epochs_of
from legnn.runs.device import select_device, visible_gpus
from legnn.runs.resources import multiplications, processes_for, usable_cores
from legnn.sweep.tasks import Event, Outcome, Task, train_task
from legnn.training import EpochLog
from legnn.typed_json import as_kind

POLL_SECONDS = 0.2
GRACE_SECONDS = 2.0
"""A task that has not ended so long after its deadline is ended with its process."""
CLOSE_SECONDS = 20.0
"""Time for processes to write their checkpoints after an error in this one, before they are killed."""

NextTask = Callable[[], Task | None]
OnEvent = Callable[[Event], None]
ShouldStop = Callable[[], bool]
Messages = SimpleQueue[tuple["_Slot", dict[str, Any] | None]]
"""Events of all processes; None for the end of one."""


class Executor(Protocol):
    """Trains tasks somewhere: in this process, in others on this machine, or on a cluster."""

    def run(self, next_task: NextTask, on_event: OnEvent, should_stop: ShouldStop) -> Iterator[Outcome]:
        """Trains tasks and yields their outcomes, until none is training and `next_task` returns None.

        Args:
            next_task: returns a task to begin; None if there is none now.
            on_event: called with the progress of every task.
            should_stop: True ends all tasks after the current epoch, with a checkpoint.
        """
        ...

    def __enter__(self) -> Executor: ...

    def __exit__(self, *error: object) -> None: ...


class SerialExecutor:
    """Trains one task after the other in this process, which also knows backbones that the caller registered."""

    def run(self, next_task: NextTask, on_event: OnEvent, should_stop: ShouldStop) -> Iterator[Outcome]:
        """Trains tasks as `Executor.run` does."""
        while not should_stop() and (task := next_task()) is not None:
            yield train_task(task, on_event, should_stop)

    def __enter__(self) -> SerialExecutor:
        return self

    def __exit__(self, *error: object) -> None: ...


class LocalExecutor:
    """Trains tasks in processes of this machine, which share its GPUs or cores.

    Args:
        slots: processes, each started when it is first needed, and again if it died.
        device: setting of the runs; unless it is `cpu`, each process sees one GPU, if there are some.
    """

    def __init__(self, slots: int, device: str = "auto") -> None:
        if slots < 1:
            raise InputError(f"jobs must be at least 1, got {slots}")
        gpus = visible_gpus(device)
        threads = str(max(usable_cores() // slots, 1))
        self._messages: Messages = SimpleQueue()
        self._slots = [_Slot(self._messages, threads, gpus[k % len(gpus)] if gpus else None) for k in range(slots)]

    def run(self, next_task: NextTask, on_event: OnEvent, should_stop: ShouldStop) -> Iterator[Outcome]:
        """Trains tasks as `Executor.run` does."""
        while True:
            is_stopping = should_stop()
            for slot in self._slots:
                if is_stopping and slot.task is not None:
                    slot.stop()
                elif not is_stopping and slot.task is None:
                    if (task := next_task()) is None:
                        break
                    slot.begin(task)
            if all(slot.task is None for slot in self._slots):
                return
            for slot in self._slots:
                slot.kill_if_late()
            with suppress(Empty):
                slot, message = self._messages.get(timeout=POLL_SECONDS)
                if (outcome := slot.receive(message, on_event)) is not None:
                    yield outcome

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, *error: object) -> None:
        for slot in self._slots:
            slot.stop()
        for slot in self._slots:
            slot.close()


class _Slot:
    """One process of a `LocalExecutor`: takes tasks as lines of JSON, and answers with events.

    When its input ends, also because this process was killed, it writes a checkpoint and ends.
    """

    def __init__(self, messages: Messages, threads: str, gpu: str | None) -> None:
        self.task: Task | None = None
        self._messages, self._threads, self._gpu = messages, threads, gpu
        self._process: subprocess.Popen[str] | None = None
        self._is_ready = self._is_late = False
        self._error = ""

    def begin(self, task: Task) -> None:
        """Begins a task, in the process of the one before it if that did not die."""
        self.task, self._is_late = task, False
        if self._process is not None:
            self._send()
            return
        self._is_ready, self._error = False, ""
        gpu = {} if self._gpu is None else {"CUDA_VISIBLE_DEVICES": self._gpu}
        # -P: the folder of the caller's script may hold a module that is named like one of Python's
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "legnn.sweep.worker", self._threads],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, **thread_waiting(), **gpu},
            start_new_session=True,  # Ctrl-C reaches this process alone, which then ends all tasks
        )
        threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True).start()

    def _listen(self, output: IO[str]) -> None:
        with output:
            for line in output:
                # the last line of a process that was killed may be cut short
                with suppress(ValueError):
                    self._messages.put((self, json.loads(line)))
        self._messages.put((self, None))

    def _send(self) -> None:
        # not before the process can begin: the seconds that are left count from now
        if self._is_ready and self.task is not None and self._process is not None and self._process.stdin is not None:
            # if the process has died, the end of its output says so
            with suppress(OSError, ValueError):
                self._process.stdin.write(self.task.to_json() + "\n")
                self._process.stdin.flush()

    def receive(self, message: dict[str, Any] | None, on_event: OnEvent) -> Outcome | None:
        """Returns the outcome of the task, if the message is its last one."""
        if message is None:
            return self._fail()
        kind, value = next(iter(message.items()))
        if kind == "ready":
            self._is_ready = True
            self._send()
        elif kind == "error":
            self._error = value
        elif kind == "outcome":
            self.task = None
            return as_kind(value, Outcome, "the outcome")
        elif self.task is not None:
            log = EpochLog(**value) if kind == "log" else None
            on_event(Event(self.task.name, log=log, stage="" if log else value))
        return None

    def _fail(self) -> Outcome | None:
        """Returns the outcome of a task whose process has ended."""
        process, task, self.task, self._process = self._process, self.task, None, None
        code = 0 if process is None else process.wait()
        if task is None:
            return None
        if self._is_late:
            return Outcome(trial=task.name, state="paused")
        why = f"signal {-code}" if code < 0 else f"exit code {code}"
        error = self._error or f"its process was ended ({why}), perhaps for want of memory"
        return Outcome(trial=task.name, state="failed", error=error, kind="RuntimeError")

    def kill_if_late(self) -> None:
        """Ends the process of a task that does not end by itself after its deadline."""
        deadline = None if self.task is None else self.task.deadline
        if deadline is not None and time.monotonic() > deadline + GRACE_SECONDS and self._process is not None:
            self._is_late = True
            self._process.kill()

    def stop(self) -> None:
        """Ends the task after the current epoch, and the process."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()

    def close(self) -> None:
        """Waits for the process, which was stopped."""
        if self._process is not None:
            try:
                self._process.wait(CLOSE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


WORTH_SECONDS = 10.0
"""Estimated seconds of all runs, one after the other, below which no process is started: each takes two or three to
import PyTorch."""
SHORTEST_EPOCH = 0.004
"""Seconds that an epoch takes on the smallest graph."""
PASSES, SPEED = 4, 4e10
"""Forward passes that an epoch is worth, and multiplications a second of one core."""


def executor_for(graph: GraphData, settings: ResolvedSettings, runs: int) -> Executor:
    """Returns what trains `runs` similar runs: processes, where one run leaves GPUs or cores idle for long enough."""
    device = settings.train.device
    slots = processes_for(settings, graph, select_device(device), runs)
    epoch = max(SHORTEST_EPOCH, PASSES * multiplications(settings, graph) / SPEED)
    if slots == 1 or runs * epochs_of(settings, graph) * epoch < WORTH_SECONDS:
        return SerialExecutor()
    return LocalExecutor(slots, device)

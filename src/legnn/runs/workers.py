"""Tasks in several processes, several at a time in each."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any, Generic, TypeVar

from legnn.runs.task_server import Ended, Report, Signals
from legnn.runs.worker_process import BegunTask, Failure, Worker

Task = TypeVar("Task")
Value = TypeVar("Value")

POLL_SECONDS = 0.5


class _Workers(Generic[Task, Value]):
    """Processes, and the tasks that are begun again because their process was ended by another one.

    Args:
        start: starts a process.
        processes: the most of them.
        on_outcome: called with every task and what it came to.
    """

    def __init__(
        self, start: Callable[[], Worker[Task]], processes: int, on_outcome: Callable[[Task, Value | Failure], None]
    ) -> None:
        self._start, self._processes, self._on_outcome = start, processes, on_outcome
        self.all: list[Worker[Task]] = []
        self._again: deque[Task] = deque()
        self._suspects: deque[Task] = deque()
        """Tasks one of which may have ended their process: each is begun again in one that no other shares."""

    @property
    def in_flight(self) -> list[BegunTask[Task]]:
        """The tasks in flight."""
        return [task for one in self.all for task in one.tasks.values()]

    def begin(self, next_task: Callable[[], Task | None]) -> bool:
        """Begins a task; returns False if there is none, or no process for it."""
        for one in [one for one in self.all if one.has_ended and not one.tasks]:
            self.all.remove(one)
            one.close()
        free = [one for one in self.all if one.has_room]
        worker = min(free, key=lambda one: len(one.tasks), default=None)
        if (worker is None or worker.tasks) and len(self.all) < self._processes:
            worker = None
        elif worker is None or (worker.tasks and self._suspects):
            return False
        queue = self._suspects or self._again
        is_suspect = bool(self._suspects)
        task = queue.popleft() if queue else next_task()
        if task is None:
            return False
        if worker is None:
            worker = self._start()
            self.all.append(worker)
        worker.is_reserved = is_suspect
        worker.begin(task)
        return True

    def receive(self, worker: Worker[Task], on_report: Callable[[Task, Any], None]) -> None:
        """Passes on what a process says."""
        message = worker.receive()
        if isinstance(message, Report):
            on_report(worker.tasks[message.number].task, message.value)
        elif isinstance(message, Ended):
            self._on_outcome(worker.tasks.pop(message.number).task, message.value)
        elif isinstance(message, Failure):
            self._remove(worker, message)

    def _remove(self, worker: Worker[Task], failure: Failure) -> None:
        self.all.remove(worker)
        worker.close()
        fatal = worker.fatal or (set(worker.tasks) if len(worker.tasks) == 1 else set())
        others = [one.task for number, one in worker.tasks.items() if number not in fatal]
        (self._again if fatal else self._suspects).extend(others)
        for number in fatal & worker.tasks.keys():
            self._on_outcome(worker.tasks[number].task, failure)


def carry_out(
    function: Callable[[Task, Signals], Any],
    next_task: Callable[[], Task | None],
    jobs: int,
    *,
    processes: int | None = None,
    on_outcome: Callable[[Task, Value | Failure], None],
    on_report: Callable[[Task, Any], None] = lambda task, value: None,
    on_poll: Callable[[list[BegunTask[Task]]], None] = lambda in_flight: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Carries out `jobs` tasks at a time until `next_task` returns None and none is in flight.

    A task whose process is ended fails. Others that shared the process are begun again, and have one alone if it is not
    known which of them ended it.

    Args:
        function: carries out one task, in another process; a generator makes pauses, for tasks that share the process.
        next_task: asked whenever another task can begin; None if there is no task now.
        jobs: tasks at a time.
        processes: those in which they are carried out, which share the cores; one for each of `jobs` if not given.
        on_outcome: called with every task and what it came to.
        on_report: called with a task and what it reports before it has ended.
        on_poll: called about twice a second with the tasks in flight, which it may pause or kill.
        should_stop: asked as often; True ends all tasks.
    """
    processes = processes or jobs
    threads, turns = max((os.cpu_count() or 1) // processes, 1), -(-jobs // processes)
    workers: _Workers[Task, Value] = _Workers(lambda: Worker(function, threads, turns), processes, on_outcome)
    try:
        while True:
            is_stopping = should_stop()
            while not is_stopping and len(workers.in_flight) < jobs and workers.begin(next_task):
                pass
            busy = [one for one in workers.all if one.tasks]
            if not busy:
                return
            for one in busy if is_stopping else ():
                one.stop()
            on_poll(workers.in_flight)
            ready = wait([one.connection for one in busy], POLL_SECONDS)
            for one in [one for one in busy if one.connection in ready]:
                workers.receive(one, on_report)
    finally:
        # after an exception: all write their checkpoints at the same time
        for one in workers.all:
            if one.tasks:
                one.stop()
        for one in workers.all:
            one.close()

"""Tasks in several processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from typing import Any, TypeVar

from legnn.runs.task_server import Report, Signals
from legnn.runs.worker_process import Failure, Worker

Task = TypeVar("Task")
Value = TypeVar("Value")

POLL_SECONDS = 0.5


def carry_out(
    function: Callable[[Task, Signals], Value],
    next_task: Callable[[], Task | None],
    jobs: int,
    *,
    gpus: Sequence[str] = (),
    on_outcome: Callable[[Task, Value | Failure], None],
    on_report: Callable[[Task, Any], None] = lambda task, value: None,
    on_poll: Callable[[list[Worker[Task]]], None] = lambda busy: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Carries out tasks in `jobs` processes until `next_task` returns None and all have ended.

    A task whose process is ended fails alone.

    Args:
        function: carries out one task, in another process.
        next_task: asked whenever another task can begin; None if there is no task now.
        jobs: processes, which share the cores.
        gpus: by their names, one for each process; with more processes than GPUs, several share one.
        on_outcome: called with every task and its value.
        on_report: called with a task and what it reports before it has ended.
        on_poll: called about twice a second with the processes that have a task, which it may pause or kill.
        should_stop: asked as often; True ends all tasks.
    """
    threads = max((os.cpu_count() or 1) // jobs, 1)
    workers: list[Worker[Task]] = []

    def idle_worker() -> Worker[Task]:
        for worker in workers:
            if not worker.is_busy:
                return worker
        users = {gpu: sum(worker.gpu == gpu for worker in workers) for gpu in gpus}
        workers.append(Worker(function, threads, min(users, key=users.__getitem__, default=None)))
        return workers[-1]

    def busy_workers() -> list[Worker[Task]]:
        return [worker for worker in workers if worker.is_busy]

    def remove(worker: Worker[Task]) -> None:
        workers.remove(worker)
        worker.close()

    try:
        while True:
            is_stopping = should_stop()
            while not is_stopping and len(busy_workers()) < jobs and (task := next_task()) is not None:
                for worker in [worker for worker in workers if worker.has_ended and not worker.is_busy]:
                    remove(worker)
                idle_worker().begin(task)
            busy = busy_workers()
            if not busy:
                return
            if is_stopping:
                for worker in busy:
                    worker.stop()
            on_poll(busy)
            ready = wait([worker.connection for worker in busy], POLL_SECONDS)
            for worker in [worker for worker in busy if worker.connection in ready]:
                message = worker.receive()
                if isinstance(message, Report):
                    on_report(worker.task, message.value)
                elif isinstance(message, Failure):
                    remove(worker)
                    on_outcome(worker.task, message)
                else:
                    on_outcome(worker.task, message.value)
    finally:
        # after an exception: all write their checkpoints at the same time
        for worker in busy_workers():
            worker.stop()
        for worker in workers:
            worker.close()

"""Calls of a function in several processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import TypeVar

Task = TypeVar("Task")
Value = TypeVar("Value")


def map_in_processes(
    function: Callable[[Task], Value], tasks: Iterable[Task], processes: int, should_stop: Callable[[], bool]
) -> Iterator[tuple[Task, Value | BaseException]]:
    """Yields each task with its value or error, as they end; begins no other once `should_stop` returns True."""
    waiting, running = deque(tasks), dict[Future[Value], Task]()
    # a process that is forked cannot use a GPU
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        while True:
            while waiting and len(running) < processes and not should_stop():
                task = waiting.popleft()
                running[pool.submit(function, task)] = task
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.exception() or future.result()

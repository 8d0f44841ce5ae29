"""A process that trains tasks: `python -P -m legnn.sweep.worker THREADS`.

It reads tasks from its input, a line of JSON each, and writes events to its output: `ready` once, then `stage` and
`log` of a run, and its `outcome`. At the end of its input it writes a checkpoint of the current run and ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from queue import SimpleQueue
from typing import Any

import torch

from legnn.errors import first_line
from legnn.sweep.tasks import Event, Task, train_task

FLUSH_SECONDS = 0.1
"""Events of epochs are written together: an epoch may take less time than a write."""


class _Output:
    """Writes events to the process that started this one, if it still runs."""

    def __init__(self) -> None:
        # libraries may print: their lines go to standard error
        self._file = open(os.dup(1), "w", encoding="utf-8")  # noqa: SIM115 (open until this process ends)
        os.dup2(2, 1)
        self._flushed = 0.0

    def event(self, event: Event) -> None:
        """Writes the progress of a run."""
        if event.log is not None:
            self.write("log", vars(event.log), is_urgent=time.monotonic() - self._flushed > FLUSH_SECONDS)
        else:
            self.write("stage", event.stage)

    def write(self, kind: str, value: Any, *, is_urgent: bool = True) -> None:
        """Writes one event."""
        with suppress(OSError):
            self._file.write(json.dumps({kind: value}) + "\n")
            if is_urgent:
                self._file.flush()
                self._flushed = time.monotonic()


def main() -> None:
    """Trains tasks until the end of the input."""
    output, tasks, is_over = _Output(), SimpleQueue[str | None](), threading.Event()
    torch.set_num_threads(int(sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda number, frame: is_over.set())

    def read() -> None:
        for line in sys.stdin:
            tasks.put(line)
        is_over.set()
        tasks.put(None)

    threading.Thread(target=read, daemon=True).start()
    output.write("ready", True)
    code = 0
    while code == 0 and (line := tasks.get()) is not None:
        try:
            output.write("outcome", asdict(train_task(Task.from_json(line), output.event, is_over.is_set)))
        except Exception as error:
            # the process ends with it: some errors leave a device that nothing can be computed on
            output.write("error", f"{type(error).__name__}: {first_line(error)}")
            code = 1
    # every run has written its files: Python would take half a second to end, for which the caller waits
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()

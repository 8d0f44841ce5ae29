"""Files that a run writes while it trains: a line for every epoch, and checkpoints."""

from __future__ import annotations

import time

from legnn.errors import InputError
from legnn.runs.folder import RunFolder
from legnn.training import EpochLog, Trainer

FIRST_SECONDS = 4.0
"""A run that is younger has no checkpoint: it takes no longer to begin anew."""
LOG_SECONDS = 0.5
"""Seconds between two writes of lines: a small run takes less, and writes them all when it has ended."""


class Checkpointer:
    """Writes the metrics of epochs, and a checkpoint soon after the start and then at most every `every` seconds.

    All processes read the folder of their run, and one `is_writer`. Without a folder nothing is written.
    """

    def __init__(self, trainer: Trainer, folder: RunFolder | None, every: float, *, is_writer: bool) -> None:
        self.trainer, self.folder, self.every, self.is_writer = trainer, folder, every, is_writer
        self._start = time.perf_counter()
        self._next = min(every, FIRST_SECONDS)
        self._logs: list[EpochLog] = []
        self._written = 0.0

    @property
    def seconds(self) -> float:
        """Seconds of training, over all the processes that took part in it."""
        return time.perf_counter() - self._start

    @property
    def is_due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self.folder is not None and self.is_writer and self.seconds >= self._next

    def restore(self) -> None:
        """Bring the trainer to the last checkpoint in the folder, if there is one."""
        if self.folder is None or (checkpoint := self.folder.load_checkpoint()) is None:
            return
        try:
            self.trainer.load_state(*checkpoint)
        except InputError:
            raise
        except (RuntimeError, LookupError, TypeError, ValueError):
            raise InputError(
                f"the checkpoint in {self.folder.path} does not fit the settings next to it; restore both from a copy"
            ) from None
        self._start -= checkpoint[1]["seconds"]
        self._next = self.seconds + self.every

    def add(self, log: EpochLog) -> None:
        """Note the metrics of an epoch, to be written soon."""
        if self.folder is None or not self.is_writer:
            return
        self._logs.append(log)
        if self.seconds - self._written >= LOG_SECONDS:
            self.write_logs()

    def write_logs(self) -> None:
        """Write the metrics of the epochs so far."""
        if self.folder is not None and self._logs:
            # not twice, should it fail: lines after one that a full disk cut short could not be read
            logs, self._logs = self._logs, []
            self.folder.append(logs)
            self._written = self.seconds

    def record(self, *, now: bool) -> None:
        """Write a checkpoint if one is due or wanted `now`; the state of the trainer is that after the last log."""
        if self.folder is None or not self.is_writer or not (now or self.is_due):
            return
        self.write_logs()
        tensors, meta = self.trainer.state()
        seconds = self.seconds
        self.folder.save_checkpoint(tensors, {**meta, "seconds": seconds})
        self._next = seconds + self.every

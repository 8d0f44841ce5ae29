"""Metrics and checkpoints of a run in progress."""

from __future__ import annotations

import time
from typing import Any

from torch import Tensor

from legnn.errors import InputError
from legnn.runs.folder import RunFolder
from legnn.training import EpochLog, Trainer


class Checkpointer:
    """Writes metrics after every epoch, and a checkpoint after the first and then at most every `every` seconds."""

    def __init__(self, trainer: Trainer, folder: RunFolder | None, every: float) -> None:
        self.trainer, self.folder, self.every = trainer, folder, every
        self._start = time.perf_counter()
        self._last = -float("inf")

    @property
    def seconds(self) -> float:
        """Seconds of training, over all the processes that took part in it."""
        return time.perf_counter() - self._start

    def restore(self, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
        """Bring the trainer back to a checkpoint."""
        try:
            self.trainer.load_state(tensors, meta)
        except (RuntimeError, KeyError):
            place = "" if self.folder is None else f" in {self.folder.path}"
            raise InputError(
                f"the checkpoint{place} does not fit the settings.yaml beside it; restore both from a copy"
            ) from None
        self._start -= meta["seconds"]

    def record(self, log: EpochLog, *, now: bool) -> None:
        """Write the epoch's metrics, and a checkpoint if one is due or wanted `now`."""
        if self.folder is None:
            return
        self.folder.append(log)
        seconds = self.seconds
        if now or seconds - self._last >= self.every:
            tensors, meta = self.trainer.state()
            self.folder.save_checkpoint(tensors, {**meta, "seconds": seconds})
            self._last = seconds

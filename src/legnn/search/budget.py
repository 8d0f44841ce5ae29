"""The budget of a search, over all the times that it was begun and continued."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from legnn.typed_json import read_json, write_json

SAVE_SECONDS = 2.0
RESERVE, MOST_RESERVE = 0.03, 0.3
"""Parts of the budget that are reserved for the ensemble: at least, and at most."""
LEAST_RESERVE = 4.0
"""Seconds for it, where the budget is short: models are read, and kernels compiled, before the first prediction."""
MEMBERS = 10
"""The predictions of so many candidates are expected to take as long as those of an ensemble, whose training nodes are
predicted in folds."""


@dataclass(frozen=True)
class TimeUsed:
    """The content of `time.json`."""

    seconds: float


class Budget:
    """Seconds used and left; those used are written to a file, so that a search continues with the seconds left."""

    def __init__(self, path: Path, seconds: float) -> None:
        self.path, self.seconds = path, seconds
        self._before = read_json(path, TimeUsed).seconds if path.is_file() else 0.0
        self._began = time.monotonic()
        self._saved = self._began

    @property
    def used(self) -> float:
        """Seconds so far."""
        return self._before + time.monotonic() - self._began

    @property
    def left(self) -> float:
        """Seconds until the budget is used up."""
        return self.seconds - self.used

    def training_seconds(self, predict_seconds: Sequence[float]) -> float:
        """Returns the seconds left for training, if the predictions of the candidates so far took so long."""
        # the median: in each process kernels are compiled for the first one
        each = statistics.median(predict_seconds) if predict_seconds else 0.0
        reserve = max(RESERVE * self.seconds, LEAST_RESERVE + min(len(predict_seconds), MEMBERS) * each)
        return self.left - min(reserve, MOST_RESERVE * self.seconds)

    def save(self) -> None:
        """Writes the seconds used, at most every other second."""
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self._saved = time.monotonic()
            write_json(self.path, TimeUsed(round(self.used, 3)))

    def finish(self) -> None:
        """Writes that the budget is used up: the same search begun again with a larger one has the rest of it."""
        write_json(self.path, TimeUsed(max(self._before, self.seconds)))

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
"""Parts of the budget that are kept for the ensemble: at least, and at most."""
LEAST_RESERVE = 4.0
"""Seconds for it, where the budget is short: models are read, and kernels compiled, before the first prediction."""
MEMBERS = 10
"""The predictions of so many candidates are expected to take as long as those of an ensemble, whose training nodes are
predicted in folds."""


@dataclass(frozen=True)
class TimeUsed:
    """What `time.json` holds."""

    seconds: float


class Clock:
    """Seconds used and left; those used are kept in a file, so that a search continues with what is left."""

    def __init__(self, path: Path, budget: float) -> None:
        self.path, self.budget = path, budget
        self._before = read_json(path, TimeUsed).seconds if path.is_file() else 0.0
        self._began = time.time()
        self._saved = 0.0

    @property
    def used(self) -> float:
        """Seconds so far."""
        return self._before + time.time() - self._began

    @property
    def left(self) -> float:
        """Seconds until the budget is over."""
        return self.budget - self.used

    def training_end(self, predict_seconds: Sequence[float]) -> float:
        """When training ends, by `time.time`, if the predictions of the candidates so far took so long."""
        # the median: in each process kernels are compiled for the first one
        each = statistics.median(predict_seconds) if predict_seconds else 0.0
        reserve = max(RESERVE * self.budget, LEAST_RESERVE + min(len(predict_seconds), MEMBERS) * each)
        return time.time() + self.left - min(reserve, MOST_RESERVE * self.budget)

    def save(self, *, now: bool = False) -> None:
        """Writes the seconds used, at most every other second."""
        if now or time.time() - self._saved > SAVE_SECONDS:
            self._saved = time.time()
            write_json(self.path, TimeUsed(round(self.used, 3)))

    def finish(self) -> None:
        """Writes that the budget is used: the same search begun again has nothing left, one with a larger has the
        rest."""
        write_json(self.path, TimeUsed(max(self._before, self.budget)))

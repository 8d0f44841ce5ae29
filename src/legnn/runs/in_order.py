"""What runs report that train at the same time, passed on as if they were trained one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from legnn.errors import Interrupted
from legnn.runs.progress import Callbacks
from legnn.runs.result import Result


class InOrder:
    """Passes on the epochs of the first run that has not ended at once, and those of a later one when it is the first.

    Args:
        seeds: one for each run.
        callbacks: those of the caller.
        on_seed: called before those of each run.
    """

    def __init__(self, seeds: Sequence[int], callbacks: Callbacks, on_seed: Callable[[int], None]) -> None:
        self.seeds, self._callbacks, self._on_seed = seeds, callbacks, on_seed
        self._reports: dict[int, deque[tuple[str, Any]]] = {seed: deque() for seed in seeds}
        self._results: dict[int, Result] = {}
        self._errors: dict[int, BaseException] = {}
        self._ended = 0
        """Runs before the first one that has not ended, or was not passed on."""
        self._is_announced = False
        self.is_stopping = False
        """Whether all runs are asked to stop."""

    def report(self, seed: int, name: str, value: Any) -> None:
        """Notes that the callback `name` of a run is to be called."""
        self._reports[seed].append((name, value))

    def end(self, seed: int, result: Result) -> None:
        """Notes the result of a run."""
        self._results[seed] = result

    def fail(self, seed: int, error: BaseException) -> None:
        """Notes that a run did not come to its end, and asks the others to stop."""
        self._errors[seed] = error
        self.is_stopping = True

    def should_stop(self) -> bool:
        """Asks the caller whether all runs are to stop."""
        if self._callbacks.should_stop():
            self.is_stopping = True
        return self.is_stopping

    def pass_on(self) -> None:
        """Calls the callbacks for what was reported."""
        while self._ended < len(self.seeds):
            seed = self.seeds[self._ended]
            if not self._is_announced:
                self._on_seed(seed)
                self._callbacks.on_run(f"seed {seed}")
                self._is_announced = True
            # asked first: what a run reports before its result is there when the result is
            is_over = seed in self._results
            while self._reports[seed]:
                name, value = self._reports[seed].popleft()
                getattr(self._callbacks, name)(value)
            if not is_over:
                break
            self._ended, self._is_announced = self._ended + 1, False

    def results(self) -> list[Result]:
        """Returns the results in the order of the seeds; raises what kept a run from its end."""
        # the others were only asked to stop
        for error in sorted(self._errors.values(), key=lambda error: isinstance(error, Interrupted)):
            raise error
        if len(self._results) < len(self.seeds):
            raise Interrupted(None, None)
        return [self._results[seed] for seed in self.seeds]

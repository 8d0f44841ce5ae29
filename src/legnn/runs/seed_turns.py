"""Runs of several seeds in turns in this process: on a GPU, whose time a small run leaves mostly unused."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import torch

from legnn.ops.runtime.garbage import rare_full_collections
from legnn.runs.in_order import InOrder
from legnn.runs.progress import Callbacks
from legnn.runs.result import Result
from legnn.runs.turns import Turns
from legnn.training.cuda_graph import release_memory
from legnn.training.sharing import Group, Steps

Start = Callable[[int, Callbacks], Steps[Result]]
"""Begins the run of a seed with callbacks."""


def train_in_turns(start: Start, runs: InOrder, at_once: int, *, device: torch.device) -> None:
    """Trains all of `runs`, at most `at_once` at a time, on `device`.

    Args:
        start: begins one of them.
        runs: the seeds, and what is reported of them.
        at_once: the most runs at a time.
        device: where they are trained.
    """
    group = _SeedTurns(start, runs, device, at_once)
    with rare_full_collections():
        try:
            while group.take_turns():
                runs.pass_on()
                runs.should_stop()
            runs.pass_on()
        finally:
            # after an exception of a callback: each run writes its checkpoint
            runs.stop()
            while group.take_turns():
                pass
            group.close()


class _SeedTurns:
    """Runs that take turns: the first captures its steps before the others begin."""

    def __init__(self, start: Start, runs: InOrder, device: torch.device, at_once: int) -> None:
        self._start, self._runs, self._group = start, runs, Group(device)
        self._waiting = deque(runs.seeds)
        self._turns: Turns[int, Result] = Turns(device, at_once)
        self._has_ended = False
        """Whether a run has."""

    def take_turns(self) -> bool:
        """Lets each run launch an epoch; returns whether there is any."""
        self._begin()
        for seed, result, error in self._turns.take():
            self._has_ended = True
            if error is not None:
                self._runs.fail(seed, error)
            elif result is not None:
                self._runs.end(seed, result)
        if not self._waiting and self._turns.all_left and self._group.kept:
            # while the last ones write their files
            self.close()
        return bool(self._turns or (self._waiting and not self._runs.is_stopping))

    def close(self) -> None:
        """Forgets what the runs shared, and gives back their memory."""
        self._group.close()
        release_memory(self._group.device)

    def _begin(self) -> None:
        group, turns = self._group, self._turns
        is_first = not group.is_captured and not group.gave_up
        is_free = turns.has_place and not (is_first and turns)
        if is_free and self._waiting and not self._runs.is_stopping:
            if self._has_ended:
                # this one has the place of another
                group.free_ended()
            # one in a round: the GPU works on the epochs of the others while this one is built
            seed = self._waiting.popleft()
            turns.begin(seed, self._start(seed, self._runs.callbacks(seed)), group)
        is_next = bool(self._waiting) and turns.has_place
        group.begins = group.is_captured and not self._runs.is_stopping and (is_next or turns.some_begin)

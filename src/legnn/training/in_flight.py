"""Epochs that were launched on a GPU and whose metrics were not read yet.

On a small graph an epoch takes less time than the host needs to read its metrics, decide and write them down. So the
next epochs are launched meanwhile, in bursts of some, and nothing waits. Which of them is the best is known only
afterwards: a captured epoch ends by writing its metrics and its weights to a ring on the device.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from legnn.nn import Model
from legnn.ops.ring import RowWriter
from legnn.ops.ring.reference import RowCopy
from legnn.training.sharing import kept_by_group, takes_turns

ROWS, ROWS_IN_TURNS = 32, 128
"""Epochs that a ring holds; where runs take turns the host is away for longer, and the GPU would run out of epochs."""
BURSTS = 2
"""Bursts in flight that share them."""
FIRST = 4
"""Epochs of the first burst, which tells how long they take."""
SECONDS = 0.05
"""What is in flight may take so long: an interrupt waits for it."""
RING_BYTES = 2**26
"""Memory that a ring may take."""

Weights = dict[str, Tensor]


class EpochRing:
    """Metrics and weights of the last epochs, on the device; `write` can be captured.

    Args:
        model: its weights keep their addresses.
        rows: epochs that it holds.
        num_metrics: numbers of an epoch.
    """

    def __init__(self, model: Model, rows: int, num_metrics: int) -> None:
        self.rows = rows
        self.last = -1
        """Row of the latest epoch."""
        self._weights = {name: value.detach() for name, value in model.state_dict().items()}
        device = next(iter(self._weights.values())).device
        self._metrics = torch.zeros(rows, num_metrics, dtype=torch.double, device=device)
        self._on_host = _pinned_like(self._metrics)
        """What a later burst copies there as well, it does not change before it is read."""
        self._names: dict[torch.dtype, list[str]] = {}
        for name, value in self._weights.items():
            self._names.setdefault(value.dtype, []).append(name)
        self._flat = {
            dtype: torch.zeros(rows, sum(self._weights[name].numel() for name in names), dtype=dtype, device=device)
            for dtype, names in self._names.items()
        }
        copies = [
            RowCopy([self._weights[name] for name in self._names[dtype]], self._flat[dtype]) for dtype in self._flat
        ]
        self._writer = RowWriter(copies, self._metrics, torch.zeros(1, dtype=torch.long, device=device))

    @classmethod
    def of(cls, model: Model, num_metrics: int) -> EpochRing | None:
        """Returns a ring for a model; None where weights are too large to be copied in every epoch."""
        size = sum(value.nbytes for value in model.state_dict().values())
        rows = min(ROWS_IN_TURNS if takes_turns() else ROWS, RING_BYTES // max(size, 1))
        return cls(model, rows, num_metrics) if rows >= 2 and size else None

    def count(self) -> None:
        """Note on the host that an epoch is launched, which writes to the next row."""
        self.last = (self.last + 1) % self.rows

    def write(self, metrics: Tensor) -> None:
        """Write the metrics `[n]` of an epoch and the weights after it to the next row."""
        self._writer.write(metrics)

    def metrics(self) -> ToHost:
        """All metrics, `[rows, n]`, as they are after what was launched so far."""
        return ToHost(self._metrics, self._on_host)

    def weights(self, row: int) -> Callable[[], Weights]:
        """Returns what gives a copy of the weights in a row by name, which takes longer than to make the copy."""
        flat = {dtype: values[row].clone() for dtype, values in self._flat.items()}
        return partial(_by_name, flat, self._names, {name: value.shape for name, value in self._weights.items()})


def _by_name(
    flat: dict[torch.dtype, Tensor], names: dict[torch.dtype, list[str]], shapes: dict[str, torch.Size]
) -> Weights:
    found: Weights = {}
    for dtype, values in flat.items():
        parts = values.split([shapes[name].numel() for name in names[dtype]])
        found |= {name: part.view(shapes[name]) for name, part in zip(names[dtype], parts, strict=True)}
    return {name: found[name] for name in shapes}


def _pinned_like(values: Tensor) -> Tensor:
    return torch.empty(values.shape, dtype=values.dtype, pin_memory=values.is_cuda)


def _event(device: torch.device) -> torch.cuda.Event | None:
    """Now, in what was launched on a GPU."""
    if device.type != "cuda":
        return None
    event = torch.cuda.Event(enable_timing=True)
    # by number: PyTorch takes longer to find the current device
    event.record(torch.cuda.current_stream(device.index))
    return event


class ToHost:
    """Numbers on their way to the host, to `place` if given, which may be overwritten on the device."""

    def __init__(self, values: Tensor, place: Tensor | None = None) -> None:
        self._values = values
        if values.is_cuda:
            self._values = _pinned_like(values) if place is None else place
            self._values.copy_(values, non_blocking=True)
        self._event = _event(values.device)

    @property
    def is_there(self) -> bool:
        """Whether they can be read without waiting."""
        return self._event is None or self._event.query()

    def wait(self) -> Tensor:
        """Returns them as soon as they are there."""
        if self._event is not None:
            self._event.synchronize()
        return self._values

    def seconds_since(self, begin: torch.cuda.Event | None) -> float | None:
        """Seconds of the GPU from `begin` until they were there, when they are."""
        return None if self._event is None or begin is None else begin.elapsed_time(self._event) / 1e3


class Launched(NamedTuple):
    """An epoch that was launched."""

    epoch: int
    lr: float
    """Of its last step."""
    row: int | None
    """Of the ring; None where the model itself holds the weights after it."""


class Burst(NamedTuple):
    """Epochs that were launched one after the other."""

    begin: torch.cuda.Event | None
    epochs: list[Launched]
    metrics: ToHost
    """A row for each, or those of the ring."""

    def read(self) -> Iterator[tuple[Launched, list[float]]]:
        """Yields each epoch with its metrics, as soon as those of all are there."""
        rows = self.metrics.wait().tolist()
        for one in self.epochs:
            yield one, rows[one.row or 0]


@dataclass
class Pace:
    """How long an epoch takes; the runs of a group share it, so that those that follow the first need not find out."""

    seconds: float = 0.0
    """Of the latest captured epochs, on the GPU; 0 before there is one."""


class InFlight:
    """The bursts in flight, the oldest first: `BURSTS` of them where an epoch takes little time."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._bursts: deque[Burst] = deque()
        self._pace = kept_by_group("pace", Pace)
        self._is_captured = False
        """Whether a captured epoch has ended."""

    def __bool__(self) -> bool:
        return bool(self._bursts)

    def room(self, ring: EpochRing | None) -> int:
        """How many epochs may be launched now; where there is no ring, one after the other."""
        if ring is None or self._pace.seconds > SECONDS / 4:
            return 0 if self._bursts else 1
        if not self._pace.seconds:
            number = min(ring.rows // 2, FIRST)
            most = 2 * number
        else:
            most = min(ring.rows, int(SECONDS / self._pace.seconds))
            number = max(most // BURSTS, 1)
        left = most - sum(len(burst.epochs) for burst in self._bursts)
        # the last may be shorter, but not by far: each burst takes the host a while
        return min(number, left) if 2 * left >= number else 0

    def begin(self) -> torch.cuda.Event | None:
        """The beginning of the next burst."""
        return _event(self._device)

    def add(self, burst: Burst) -> None:
        """Adds the latest."""
        self._bursts.append(burst)

    def finished(self, *, wait: bool = True) -> Iterator[Burst]:
        """Yields the bursts that have ended; with `wait`, the oldest as soon as it has."""
        while self._bursts and (wait or self._bursts[0].metrics.is_there):
            burst, wait = self._bursts.popleft(), False
            yield burst
            if burst.epochs[-1].row is None:
                continue
            if self._is_captured:
                self._pace.seconds = (burst.metrics.seconds_since(burst.begin) or 0.0) / len(burst.epochs)
            # the epoch that is captured comes first, alone: the host took most of its time
            self._is_captured = True

    def clear(self) -> None:
        """Waits for all of them, and forgets them; what they read may be freed then."""
        while self._bursts:
            self._bursts.popleft().metrics.wait()

"""How long something takes and how much memory it needs, on either device."""

from __future__ import annotations

import ctypes
import gc
import re
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

GIB = 2**30
NO_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory", re.IGNORECASE)


@dataclass(frozen=True)
class Measured:
    """What came out; no figures but a note where it did not run."""

    milliseconds: float | None = None
    """Median of the repeats."""
    peak_gib: float | None = None
    """GPU: the most PyTorch had allocated, graph and weights included, from the first warm-up on, so that what a CUDA
    graph allocates when it is captured is counted. CPU: how far the process grew over what it held before the timed
    repeats, so graph and weights are not in it; None where the system does not tell."""
    note: str = ""
    fastest_ms: float | None = None
    """The shortest repeat: on a machine shared with others it says more than the median."""


def median_ms(run: Callable[[], object], device: torch.device, repeats: int, warmup: int) -> float:
    """The median time of one call."""
    return statistics.median(_times(run, device, repeats, warmup))


def times_in_turns(
    runs: Sequence[Callable[[], object]], device: torch.device, repeats: int, warmup: int
) -> list[list[float]]:
    """The times of each, one call of one after one of the other: a clock that drifts changes all of them alike."""
    for run in runs:
        for _ in range(warmup):
            run()
    rounds = [[_time_ms(run, device) for run in runs] for _ in range(repeats)]
    return [list(times) for times in zip(*rounds, strict=True)]


def measure(run: Callable[[], object], device: torch.device, repeats: int, warmup: int) -> Measured:
    """Time and peak memory of one call; an implementation that runs out of memory gets a note and no figures."""
    try:
        _give_back(device)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            times = _times(run, device, repeats, warmup)
            peak = torch.cuda.max_memory_allocated(device) / GIB
            return Measured(statistics.median(times), peak, fastest_ms=min(times))
        # compiled code and tables made once are no part of a step: they are there before its memory is looked at
        for _ in range(warmup):
            run()
        _give_back(device)
        before = _restart_peak()
        times = _times(run, device, repeats, 0)
        grown = None if before is None else max(_resident("VmHWM") - before, 0) / GIB
        return Measured(statistics.median(times), grown, fastest_ms=min(times))
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    # out here the error is gone, and with it its hold on what was allocated
    release(device)
    return Measured(note="out of memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on either device."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or bool(NO_MEMORY.search(str(error)))


def release(device: torch.device) -> None:
    """Give back what the last implementation left, so that the next one starts from nothing."""
    gc.collect()
    _give_back(device)


def _give_back(device: torch.device) -> None:
    """What is free, but still held by an allocator, goes back."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
        return
    # glibc keeps freed blocks for itself; other systems have no such call
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _times(run: Callable[[], object], device: torch.device, repeats: int, warmup: int) -> list[float]:
    for _ in range(warmup):
        run()
    return [_time_ms(run, device) for _ in range(repeats)]


def _time_ms(run: Callable[[], object], device: torch.device) -> float:
    if device.type == "cuda":
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize(device)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize(device)
        return start.elapsed_time(end)
    begin = time.perf_counter()
    run()
    return (time.perf_counter() - begin) * 1e3


def _restart_peak() -> int | None:
    """Let Linux count the process's peak anew; its size now in bytes, or None where that cannot be done."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _resident("VmRSS")
    except OSError:
        return None


def _resident(field: str) -> int:
    """Bytes resident now (VmRSS) or at most (VmHWM)."""
    match = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if match is None:
        raise OSError(f"the system does not tell {field}")
    return int(match[1]) * 1024

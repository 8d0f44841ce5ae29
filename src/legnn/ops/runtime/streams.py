"""Small launches beside a large one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from threading import local
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

A = TypeVar("A")
B = TypeVar("B")


class _Beside(NamedTuple):
    """A stream, the one beside it, and events that both wait for: to make one takes longer than to record it."""

    current: torch.cuda.Stream
    side: torch.cuda.Stream
    before: torch.cuda.Event
    ready: torch.cuda.Event


class _OfThread(local):
    """What calls of `run_beside` in one thread share."""

    def __init__(self) -> None:
        self.depth = 0
        """How many of them the thread is in, by what is large."""
        self.known: dict[tuple[int, int, int], _Beside] = {}
        """By device, stream and depth."""


_nested = _OfThread()


def run_beside(x: Tensor, large: Callable[[], A], small: Callable[[], B]) -> tuple[A, B]:
    """Returns `large()` and `small()`, which on the GPU of `x` run at the same time.

    Both have ended for whatever is launched afterwards. In a CUDA graph they are two branches. What autograd records in
    `small` it differentiates on the same side stream, beside what it differentiates of `large`.
    """
    if not x.is_cuda:
        return large(), small()
    current, side, before, ready = _beside(x.device.index)
    before.record(current)
    _nested.depth += 1
    try:
        # first, so that both draw in the order of a device without streams
        first = large()
    finally:
        _nested.depth -= 1
    # memory that one stream frees, the other may use: all sections of the side begin and end with this order
    side.wait_event(before)
    # not in PyTorch's context, which asks for the streams of all devices concerned
    torch.cuda.set_stream(side)
    try:
        with _kept_for(side):
            second = small()
            ready.record(side)
    finally:
        torch.cuda.set_stream(current)
    current.wait_event(ready)
    # also without gradients: in a backward pass autograd uses the side stream without this order
    _keep_for(current, second)
    return first, second


def _beside(device: int) -> _Beside:
    """The current stream of a device and what belongs to it, for this depth."""
    # its handle: PyTorch takes longer to make an object of it
    handle = torch._C._cuda_getCurrentRawStream(device)
    found = _nested.known.get((device, handle, _nested.depth))
    if found is None:
        current = torch.cuda.current_stream(device)
        side = _side_stream(current, _nested.depth)
        found = _Beside(current, side, torch.cuda.Event(), torch.cuda.Event())
        _nested.known[device, handle, _nested.depth] = found
    return found


def _kept_for(side: torch.cuda.Stream) -> AbstractContextManager[object]:
    """Context in which what autograd saves is not freed before `side`, which reads it once more, has done so.

    Backward runs on both streams without the order of the forward pass: memory of one may otherwise be overwritten by
    the other as soon as the host has launched what reads it.
    """
    if not torch.is_grad_enabled():
        return nullcontext()

    def keep(tensor: Tensor) -> Tensor:
        _keep_for(side, tensor)
        # of an output, the tensor itself would be a cycle with what computed it
        return tensor.detach()

    return torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)


def _keep_for(stream: torch.cuda.Stream, found: object) -> None:
    """Keeps the memory of tensors until `stream` has done what was launched on it when they are freed."""
    if isinstance(found, Tensor):
        if found.is_cuda:
            found.record_stream(stream)
    elif isinstance(found, tuple):
        for one in found:
            _keep_for(stream, one)


@lru_cache(None)
def _side_stream(stream: torch.cuda.Stream, depth: int) -> torch.cuda.Stream:
    """A stream for each, so that threads with streams of their own do not wait for each other.

    What runs beside a part of something large has another than what runs beside all of it.
    """
    # with the priority of the large launches, a small one would wait until all of their programs have begun
    return torch.cuda.Stream(stream.device, priority=-1)

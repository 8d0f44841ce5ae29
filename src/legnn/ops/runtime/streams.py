"""Small launches beside a large one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import torch
from torch import Tensor

A = TypeVar("A")
B = TypeVar("B")


def run_beside(x: Tensor, large: Callable[[], A], small: Callable[[], B]) -> tuple[A, B]:
    """Returns `large()` and `small()`, which on the GPU of `x` run at the same time.

    Both have ended for whatever is launched afterwards. In a CUDA graph they are two branches. What autograd records in
    `small` it differentiates on the same side stream, beside what it differentiates of `large`.
    """
    if not x.is_cuda:
        return large(), small()
    current = torch.cuda.current_stream(x.device)
    side = _side_stream(current)
    before = current.record_event()
    # first, so that both draw in the order of a device without streams
    first = large()
    # memory that one stream frees, the other may use: all sections of the side begin and end with this order
    side.wait_event(before)
    with torch.cuda.stream(side):
        second = small()
    current.wait_stream(side)
    return first, second


@lru_cache(None)
def _side_stream(stream: torch.cuda.Stream) -> torch.cuda.Stream:
    """A stream for each, so that threads with streams of their own do not wait for each other."""
    # with the priority of the large launches, a small one would wait until all of their programs have begun
    return torch.cuda.Stream(stream.device, priority=-1)

"""What capturing a CUDA graph needs of PyTorch that PyTorch does not promise: private calls, and texts of warnings.

Gain of capturing: a label-enhanced training step of Cora's size on one H200 takes 1.8 ms (GCN) and 2.3 ms (GAT)
instead of 15 ms and 24 ms.

If a version of PyTorch renames or rewords any of it, a run still gives the same results, launch by launch:

- `run_watched` does not notice that a step synchronizes, and its capture fails instead;
- `recover_from_failed_capture` does not end the failed capture for PyTorch's allocator, which then refuses to free
  memory for the rest of the process;
- `ignoring_uncaptured_steps` does not hide a warning of PyTorch's optimizers;
- `clear_workspaces` does not free the memory that cuBLAS has for each stream.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import torch

from legnn.ops.runtime.streams import run_beside

T = TypeVar("T")

UNCAPTURED = r".*step\(\) is running without .* graph capture"
"""PyTorch's optimizers warn so if they run outside of a capture."""
SYNCHRONIZED = "called a synchronizing CUDA operation"
"""PyTorch warns so of a synchronizing operation, if asked to."""

_FAILED: list[torch.cuda.CUDAGraph] = []
"""Graphs whose capture failed, never freed: the allocator of pinned memory may still ask them about their streams."""


@contextmanager
def ignoring_uncaptured_steps() -> Iterator[None]:
    """Hide that an optimizer made for captured steps runs without a capture: it does so only before the capture."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=UNCAPTURED)
        yield


def run_watched(step: Callable[[], T]) -> tuple[T, bool]:
    """Return `step()`, and whether it synchronized with the GPU. Other warnings are dropped."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            out = step()
        finally:
            torch.cuda.set_sync_debug_mode(before)
    return out, any(SYNCHRONIZED in str(warning.message) for warning in caught)


@contextmanager
def capturing_beside_others(
    graph: torch.cuda.CUDAGraph, pool: Any, stream: torch.cuda.Stream, mode: str
) -> Iterator[None]:
    """Context of a capture that waits for no other stream, and leaves the allocator what it has for them."""
    with torch.cuda.stream(stream):
        graph.capture_begin(pool, capture_error_mode=mode)
        try:
            yield
        finally:
            graph.capture_end()


def prepare_products(stream: torch.cuda.Stream) -> None:
    """Let PyTorch allocate what cuBLAS needs for a stream, and for the one beside it, outside of a capture."""
    with torch.cuda.stream(stream):
        one = torch.ones(1, 1, device=stream.device)
        run_beside(one, lambda: one @ one, lambda: one @ one)


def clear_workspaces() -> None:
    """Free the memory that PyTorch keeps for cuBLAS, for each stream and thread that had a product."""
    with suppress(AttributeError, RuntimeError):
        torch._C._cuda_clearCublasWorkspaces()


def recover_from_failed_capture(
    graph: torch.cuda.CUDAGraph, pool: tuple[int, int], device: int, own: Sequence[torch.Generator] = ()
) -> None:
    """End a capture that failed, in PyTorch's allocator, its generator and the run's `own`, which do not notice."""
    graph.reset()
    _FAILED.append(graph)
    # AttributeError and TypeError: another version of PyTorch; RuntimeError: the capture was ended, or never begun
    with suppress(AttributeError, TypeError, RuntimeError):
        torch._C._cuda_endAllocateToPool(device, pool)
        torch._C._cuda_releasePool(device, pool)
    for generator in (torch.cuda.default_generators[device], *own):
        # a state of its own again: the one that the capture registered refuses to draw
        generator.graphsafe_set_state(generator.clone_state())

"""CUDA graphs: a step that is captured once and replayed from then on.

On a small graph an epoch is hundreds of kernels of a few microseconds each, and most of the time the GPU waits for the
next launch. A step whose tensors keep their shapes and addresses is captured once, and launched as a whole from then
on. What changes between steps is written into tensors that the step reads; its result is always the same tensor.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache

import torch
from torch import Generator, Tensor

from legnn.errors import first_line

RunStep = Callable[[], Tensor]
"""A step: it reads tensors that keep their addresses, and returns one tensor, of the same shape every time."""

WARM_UP = 3
"""Steps before the capture, in which everything is created that is created once: caches, the state of the optimizer,
and what PyTorch and its libraries allocate for a stream."""

UNCAPTURED = r".*step\(\) is running without .* graph capture"
"""PyTorch's optimizers that can be captured warn so if they run outside of a capture, as in the steps before it."""

_FAILED: list[torch.cuda.CUDAGraph] = []
"""Graphs whose capture failed, never freed: the allocator of pinned memory may still ask them about their streams."""


class GraphCapture:
    """Shared by the captured steps of one run: a stream, a pool of memory, and whether steps are captured at all.

    The pool is shared because the steps of a run never overlap: with a pool each, the tensors of training and those of
    evaluation would take memory at the same time.

    Args:
        enabled: whether steps are captured.
        generators: that steps draw from, in addition to PyTorch's own.
    """

    def __init__(self, device: torch.device, *, enabled: bool, generators: Sequence[Generator] = ()) -> None:
        self.enabled, self._generators = enabled, generators
        if enabled:
            self._stream = _capture_stream(device)
            self._pool = torch.cuda.graph_pool_handle()

    def warm_up(self, step: RunStep) -> Tensor:
        """Run `step` on the stream of the capture."""
        current = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=UNCAPTURED)
            out = step()
        current.wait_stream(self._stream)
        return out

    def capture(self, step: Callable[[], object]) -> torch.cuda.CUDAGraph | None:
        """Record the launches of `step`, none of which is executed; returns None if that fails."""
        current = torch.cuda.current_stream(self._stream.device)
        graph = torch.cuda.CUDAGraph()
        for generator in self._generators:
            graph.register_generator_state(generator)
        try:
            # "thread_local": what other threads do on the GPU meanwhile does not break the capture
            with torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local"):
                step()
        except RuntimeError as error:
            torch.cuda.set_stream(current)
            recover_from_failed_capture(graph, self._pool, self._stream.device.index, self._generators)
            self.enabled = False
            # the error in the step says more than the one of ending the capture after it
            warnings.warn(
                f"a step is not captured as a CUDA graph, because {first_line(error.__context__ or error)}; "
                "results are the same, but on a small graph an epoch takes longer",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
        return graph


class CapturedStep:
    """One step: run as it is `WARM_UP` times, then captured, and replayed from then on. Each call is one step."""

    def __init__(self, shared: GraphCapture) -> None:
        self._shared = shared
        self._warm = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._out: Tensor | None = None

    @property
    def is_captured(self) -> bool:
        """Whether the next step is a replay."""
        return self._graph is not None

    def run(self, step: RunStep) -> Tensor:
        """Run `step`, which must be the same in every call; the next call overwrites the result."""
        # the step is not stored: a method of the object that owns this one would make a cycle, which is freed late
        if not self._shared.enabled:
            self._graph = None
            return step()
        if self._out is None or self._warm < WARM_UP:
            self._warm += 1
            result = self._shared.warm_up(step)
            # not from the shared pool, where another step could overwrite it
            self._out = torch.empty_like(result)
            return result
        out = self._out
        if self._graph is None:
            self._graph = self._shared.capture(lambda: out.copy_(step()))
            if self._graph is None:
                return step()
        self._graph.replay()
        return out


def recover_from_failed_capture(
    graph: torch.cuda.CUDAGraph, pool: tuple[int, int], device: int, generators: Sequence[Generator] = ()
) -> None:
    """End a capture that failed, in PyTorch's allocator, its generator and the run's `own`, which do not notice.

    PyTorch has no public way to do so. If a version renames a function, its allocator refuses to free memory for the
    rest of the process; results are the same.
    """
    graph.reset()
    _FAILED.append(graph)
    # AttributeError and TypeError: another version of PyTorch; RuntimeError: the capture was ended, or never begun
    with suppress(AttributeError, TypeError, RuntimeError):
        torch._C._cuda_endAllocateToPool(device, pool)
        torch._C._cuda_releasePool(device, pool)
    for generator in (torch.cuda.default_generators[device], *generators):
        # a state of its own again: the one that the capture registered refuses to draw
        generator.graphsafe_set_state(generator.clone_state())


@lru_cache(None)
def _capture_stream(device: torch.device) -> torch.cuda.Stream:
    # the same one in every run: PyTorch keeps memory for every stream that it has seen
    return torch.cuda.Stream(device)

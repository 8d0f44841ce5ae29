"""CUDA graphs: a step that is captured once and replayed from then on.

On a small graph an epoch is hundreds of kernels of a few microseconds each, and most of the time the GPU waits for the
next launch. A step whose tensors keep their shapes and addresses is captured once, and launched as a whole from then
on. What changes between steps is written into tensors that the step reads; its result is always the same tensor.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from legnn.errors import first_line
from legnn.training.cuda_capture import ignoring_uncaptured_steps, recover_from_failed_capture, run_watched

RunStep = Callable[[], Tensor]
"""A step: it reads tensors that keep their addresses, and returns one tensor, of the same shape every time."""

WARM_UP = 3
"""Steps before the capture, in which everything is created that is created once: caches, and what PyTorch and its
libraries allocate for a stream."""


class CudaGraphs:
    """What the captured steps of one run share: a stream, a pool of memory, and whether steps are captured at all.

    The pool is shared because the steps of a run never overlap: with a pool each, the tensors of training and those of
    evaluation would take memory at the same time.

    With `watch`, steps that synchronize are found before they are captured. PyTorch reports synchronizations of all
    threads: it is for runs that have one.
    """

    def __init__(self, device: torch.device, *, enabled: bool = True, watch: bool = True) -> None:
        self.enabled, self.watch = enabled and device.type == "cuda", watch
        if self.enabled:
            self.stream = torch.cuda.Stream(device)
            self.pool = torch.cuda.graph_pool_handle()

    def warm_up(self, step: RunStep, *, watch: bool) -> Tensor:
        """Run `step` on the stream of the capture. With `watch`, disable capturing if it synchronizes."""
        current = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream), ignoring_uncaptured_steps():
            out, synchronized = run_watched(step) if watch else (step(), False)
        current.wait_stream(self.stream)
        if synchronized:
            # its capture would fail, which is better avoided than recovered from
            self.give_up("it synchronizes with the GPU")
        return out

    def capture(self, step: Callable[[], object]) -> torch.cuda.CUDAGraph | None:
        """Record the launches of `step`, none of which is executed; returns None if that fails."""
        current = torch.cuda.current_stream(self.stream.device)
        graph = torch.cuda.CUDAGraph()
        try:
            # "thread_local": what other threads do on the GPU meanwhile does not break the capture
            with torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"):
                step()
        except RuntimeError as error:
            torch.cuda.set_stream(current)
            recover_from_failed_capture(graph, self.pool, self.stream.device.index)
            # the error in the step says more than the one of ending the capture after it
            self.give_up(first_line(error.__context__ or error))
            return None
        return graph

    def give_up(self, why: str) -> None:
        """Run every step launch by launch from now on, and warn about it."""
        self.enabled = False
        warnings.warn(
            f"a step is not captured as a CUDA graph, because {why}; results are the same, "
            "but on a small graph an epoch takes longer",
            RuntimeWarning,
            stacklevel=2,
        )


class Replay:
    """One step: run as it is `WARM_UP` times, then captured, and replayed from then on. Each call is one real step."""

    def __init__(self, graphs: CudaGraphs) -> None:
        self._graphs = graphs
        self._warm = 0
        self._out: Tensor
        self._graph: torch.cuda.CUDAGraph | None = None

    def run(self, step: RunStep) -> Tensor:
        """Run `step`, which must be the same in every call; the next call overwrites the result."""
        # the step is not kept: a method of the object that owns this one would make a cycle, which is freed late
        if not self._graphs.enabled:
            self._graph = None
            return step()
        if self._warm < WARM_UP:
            self._warm += 1
            out = self._graphs.warm_up(step, watch=self._graphs.watch and self._warm == WARM_UP)
            # not from the shared pool, where another step could overwrite it
            self._out = torch.empty_like(out)
            return out
        if self._graph is None:
            self._graph = self._graphs.capture(lambda: self._out.copy_(step()))
            if self._graph is None:
                return step()
        self._graph.replay()
        return self._out

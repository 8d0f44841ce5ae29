"""A step that a GPU repeats by itself: CUDA graphs.

On a small graph an epoch is hundreds of launches of a few microseconds each, and the GPU waits for the next one most of
the time. A step whose tensors keep their shapes and places is told to the GPU once and launched as a whole from then
on. What changes between steps is written into tensors the step reads; what comes out is one tensor, always the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress

import torch
from torch import Tensor

from legnn.errors import first_line

RunStep = Callable[[], Tensor]
"""A step: it reads tensors that stay where they are, and gives one tensor, of the same shape every time."""

WARM_UP = 3
"""Steps before the one that is captured: whatever is made once and kept is made in them, as is what PyTorch and its
libraries make once on a stream."""

UNCAPTURED = r".*step\(\) is running without .* graph capture"
"""What PyTorch's optimizers say of the steps before the capture."""
WAITED = "called a synchronizing CUDA operation"
"""What PyTorch says of an operation that made the host wait."""

_BROKEN: list[torch.cuda.CUDAGraph] = []
"""Graphs whose capture failed."""


class CudaGraphs:
    """What the captured steps of one run share: a stream, memory, and whether there are any.

    Memory is shared because the steps of a run never overlap: a pool for each would hold the tensors of training and
    those of evaluation at the same time.
    """

    def __init__(self, device: torch.device, *, enabled: bool = True) -> None:
        self.on = enabled and device.type == "cuda"
        if self.on:
            self.stream = torch.cuda.Stream(device)
            self.pool = torch.cuda.graph_pool_handle()

    def warm_up(self, step: RunStep, *, watch: bool) -> Tensor:
        """Run `step` where it will be captured. With `watch`, give up on capturing if it makes the host wait."""
        current = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=UNCAPTURED)
            out, waited = _watched(step) if watch else (step(), False)
        current.wait_stream(self.stream)
        if waited:
            # to capture it would fail, and PyTorch does not come out of a failed capture as it went in
            self.give_up("it makes the host wait for the GPU")
        return out

    def capture(self, step: Callable[[], object]) -> torch.cuda.CUDAGraph | None:
        """The launches of `step`, none of which is executed; None where that is not possible."""
        current = torch.cuda.current_stream(self.stream.device)
        graph = torch.cuda.CUDAGraph()
        try:
            # what other threads of the process do with the GPU meanwhile is no affair of this capture
            with torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"):
                step()
        except RuntimeError as error:
            torch.cuda.set_stream(current)
            self._recover(graph)
            # what went wrong in the step says more than that the capture could not be ended after it
            self.give_up(first_line(error.__context__ or error))
            return None
        return graph

    def _recover(self, graph: torch.cuda.CUDAGraph) -> None:
        """Tell PyTorch that a capture is over, which it does not notice where the capture could not be ended.

        Left alone, its generator refuses to draw and its allocator to free, for the rest of the process.
        """
        device = self.stream.device.index
        graph.reset()
        # the allocator of pinned memory may go on asking the graph whether a stream is its own
        _BROKEN.append(graph)
        with suppress(RuntimeError):  # raised where the capture was ended, or never begun
            torch._C._cuda_endAllocateToPool(device, self.pool)
            torch._C._cuda_releasePool(device, self.pool)
        generator = torch.cuda.default_generators[device]
        generator.graphsafe_set_state(generator.clone_state())

    def give_up(self, why: str) -> None:
        """Run every step launch by launch from now on, and say so."""
        self.on = False
        warnings.warn(
            f"a step is not captured as a CUDA graph, because {why}; results are the same, "
            "but on a small graph an epoch takes longer",
            RuntimeWarning,
            stacklevel=2,
        )


class Replay:
    """One step, run as it is until it is captured, and replayed from then on. Each call is one real step."""

    def __init__(self, graphs: CudaGraphs) -> None:
        self._graphs = graphs
        self._warm = 0
        self._out: Tensor | None = None
        self._graph: torch.cuda.CUDAGraph | None = None

    def run(self, step: RunStep) -> Tensor:
        """Run `step`, which must be the same in every call; what it gives is overwritten by the next call."""
        # the step is not kept: an owner that keeps this object and lends it a method would never be freed by itself
        if not self._graphs.on:
            self._graph = None
            return step()
        if self._graph is None:
            if self._warm < WARM_UP:
                return self._warm_up(step)
            self._graph = self._capture(step)
            if self._graph is None:
                return step()
        assert self._out is not None
        self._graph.replay()
        return self._out

    def _warm_up(self, step: RunStep) -> Tensor:
        self._warm += 1
        out = self._graphs.warm_up(step, watch=self._warm == WARM_UP)
        # outside of the memory the captured steps share, where another step could overwrite it
        self._out = torch.empty_like(out)
        return out

    def _capture(self, step: RunStep) -> torch.cuda.CUDAGraph | None:
        out = self._out
        assert out is not None
        return self._graphs.capture(lambda: out.copy_(step()))


def _watched(step: RunStep) -> tuple[Tensor, bool]:
    """What `step` gives, and whether the host had to wait for the GPU in it.

    Other warnings are dropped: what there is to say of a step was said the first time.
    """
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            out = step()
        finally:
            torch.cuda.set_sync_debug_mode(before)
    return out, any(WAITED in str(warning.message) for warning in said)

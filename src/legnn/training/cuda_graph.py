"""CUDA graphs: a step that is captured once and replayed from then on.

On a small graph an epoch is hundreds of kernels of a few microseconds each, and most of the time the GPU waits for the
next launch. A step whose tensors keep their shapes and addresses is captured once, and launched as a whole from then
on. What changes between steps is written into tensors that the step reads; its result is always the same tensor.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor

from legnn.errors import first_line
from legnn.ops.runtime.generators import generator_for
from legnn.training.cuda_capture import (
    capturing_beside_others,
    clear_workspaces,
    ignoring_uncaptured_steps,
    prepare_products,
    recover_from_failed_capture,
    run_watched,
)
from legnn.training.sharing import current_group, run_stream

RunStep = Callable[[], Tensor]
"""A step: it reads tensors that keep their addresses, and returns one tensor, of the same shape every time."""

_captured: WeakSet[torch.cuda.CUDAGraph] = WeakSet()
"""Graphs that may still be replayed."""

WARM_UP = 3
"""Steps before the capture, in which everything is created that is created once: caches, and what PyTorch and its
libraries allocate for a stream."""


class CudaGraphs:
    """What the captured steps of one run share: a stream, a pool of memory, and whether steps are captured at all.

    Steps draw from the generator of the run, if they do in the steps before the capture, and from `generators`.

    The pool is shared because the steps of a run never overlap: with a pool each, the tensors of training and those of
    evaluation would take memory at the same time.

    They run on `stream`, if given.

    With `watch`, steps that synchronize are found before they are captured. PyTorch reports synchronizations of all
    threads: it is for runs that have one.
    """

    def __init__(
        self,
        device: torch.device,
        *,
        enabled: bool = True,
        watch: bool = True,
        generators: Sequence[torch.Generator] = (),
        stream: torch.cuda.Stream | None = None,
    ) -> None:
        self._group, self._generators, self.watch = current_group(), generators, watch
        self.enabled = enabled and device.type == "cuda" and not (self._group is not None and self._group.gave_up)
        if self._group is not None and not self.enabled:
            self._group.gave_up = True
        self._steps: list[torch.cuda.CUDAGraph] = []
        """Those of a group."""
        self._draws = False
        """Whether steps draw from the generator of the run: one that is registered takes two launches in a replay."""
        if self.enabled:
            # that of a run that shares the process, which is its own, or one for all that have it alone
            own = run_stream(device) if self._group is None else torch.cuda.current_stream(device)
            self.stream = stream or own
            self.pool = torch.cuda.graph_pool_handle()

    @property
    def steps_before_capture(self) -> int:
        """`WARM_UP`, or none where another run of the group has taken the same steps."""
        return 0 if self._group is not None and self._group.is_captured else WARM_UP

    def warm_up(self, step: RunStep, *, watch: bool) -> Tensor:
        """Run `step` on the stream of the capture. With `watch`, disable capturing if it synchronizes."""
        current = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(current)
        own = generator_for(self.stream.device)
        before = None if own is None else own.get_state()
        with torch.cuda.stream(self.stream), ignoring_uncaptured_steps():
            out, synchronized = run_watched(step) if watch else (step(), False)
        if own is not None and before is not None and not torch.equal(before, own.get_state()):
            self._draws = True
        current.wait_stream(self.stream)
        if synchronized:
            # its capture would fail, which is better avoided than recovered from
            self.give_up("it synchronizes with the GPU")
        return out

    def capture(self, step: Callable[[], object], *, keeps: bool = False) -> torch.cuda.CUDAGraph | None:
        """Record the launches of `step`, none of which is executed; returns None if that fails.

        A step that `keeps` what it makes has a pool of its own: others would overwrite it.
        """
        pool = torch.cuda.graph_pool_handle() if keeps else self.pool
        current = torch.cuda.current_stream(self.stream.device)
        if self.steps_before_capture == 0:
            prepare_products(self.stream)
        graph = torch.cuda.CUDAGraph()
        draws = self._draws or (self._group is not None and self._group.draws)
        own = generator_for(self.stream.device) if draws else None
        generators = [one for one in (own, *self._generators) if one is not None]
        for generator in generators:
            graph.register_generator_state(generator)
        try:
            with self._capturing(graph, pool):
                step()
        except RuntimeError as error:
            torch.cuda.set_stream(current)
            recover_from_failed_capture(graph, pool, self.stream.device.index, generators)
            # the error in the step says more than the one of ending the capture after it
            self.give_up(first_line(error.__context__ or error))
            return None
        _captured.add(graph)
        if self._group is not None:
            self._steps.append(graph)
            # before it, everything was created that is created once, and has been read
            self._group.is_captured = True
            self._group.draws |= self._draws
        return graph

    def _capturing(self, graph: torch.cuda.CUDAGraph, pool: Any) -> AbstractContextManager[None]:
        # "thread_local": what other threads do on the GPU meanwhile does not break the capture
        mode = "thread_local"
        if self._group is None:
            return torch.cuda.graph(graph, pool=pool, stream=self.stream, capture_error_mode=mode)
        return capturing_beside_others(graph, pool, self.stream, mode)

    def end(self) -> None:
        """Leaves the captured steps, which are not replayed any more, to the group, if there is one."""
        if self._group is not None:
            self._group.ended += self._steps
        self._steps = []

    def give_up(self, why: str) -> None:
        """Run every step launch by launch from now on, and warn about it."""
        self.enabled = False
        if self._group is not None:
            self._group.gave_up = True
        warnings.warn(
            f"a step is not captured as a CUDA graph, because {why}; results are the same, "
            "but on a small graph an epoch takes longer",
            RuntimeWarning,
            stacklevel=2,
        )


class Replay:
    """One step: run as it is `WARM_UP` times, then captured, and replayed from then on. Each call is one real step.

    Args:
        graphs: what it shares with other steps.
        out: `step`'s result is copied there; without it, at least one step is run before the capture.
    """

    def __init__(self, graphs: CudaGraphs, out: Tensor | None = None) -> None:
        self._graphs, self._out = graphs, out
        self._warm = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    @property
    def is_captured(self) -> bool:
        """Whether the next step is a replay."""
        return self._graph is not None

    def again(self) -> Tensor | None:
        """Replay the step if it is captured; returns None if not."""
        if self._graph is None or not self._graphs.enabled:
            return None
        self._graph.replay()
        return self._out

    def run(self, step: RunStep) -> Tensor:
        """Run `step`, which must be the same in every call; the next call overwrites the result."""
        # the step is not kept: a method of the object that owns this one would make a cycle, which is freed late
        if not self._graphs.enabled:
            self._graph = None
            return step()
        if self._graph is None and (self._out is None or self._warm < self._graphs.steps_before_capture):
            self._warm += 1
            found = self._graphs.warm_up(step, watch=self._graphs.watch and self._warm == WARM_UP)
            if self._out is None:
                # not from the shared pool, where another step could overwrite it
                self._out = torch.empty_like(found)
            return found
        out = self._out
        assert out is not None
        if self._graph is None:
            self._graph = self._graphs.capture(lambda: out.copy_(step()))
            if self._graph is None:
                return step()
        self._graph.replay()
        return out


def release_memory(device: torch.device) -> None:
    """Gives back what ended runs have left with PyTorch: the pools of their graphs, the workspaces of their streams."""
    if device.type != "cuda":
        return
    if not _captured:
        # a graph that is replayed once more would write to them
        clear_workspaces()
    torch.cuda.empty_cache()

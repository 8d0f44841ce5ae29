"""The base class of full batches and mini-batches, and the choices that depend on the device."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor
from torch.optim import Optimizer

from legnn.errors import InputError
from legnn.nn import Model, StagedModel
from legnn.training.metrics import Metrics
from legnn.training.objective import Objective
from legnn.training.task import Task


@dataclass(frozen=True)
class DevicePlan:
    """Choices for one device; the defaults are those of a CPU with memory for everything."""

    capture: bool = False
    """Whether steps are captured as CUDA graphs."""
    streams: bool = False
    """Whether batches are sampled ahead in threads, on CUDA streams of their own."""
    pin: bool = False
    """Whether memory of the host that is copied to the device is pinned."""
    samplers: int = 0
    """Threads that prepare chunks of layer-wise inference; 0 where they are prepared one by one."""
    at_once: bool = True
    """Whether inference fits at once, which is faster; otherwise it is computed layer by layer, in chunks."""
    chunk_bytes: int = 2**25
    """Bytes of one matrix of such a chunk: enough to keep the device busy."""
    free_bytes: Callable[[], int] = lambda: 0
    """Memory of the device, if it is not the host's, that may store the states between layers."""
    host_bytes: Callable[[], int] = lambda: sys.maxsize
    """Memory of the host that is free; states that would take too much of it are stored on disk."""


Reduce = Callable[[Tensor], Tensor]
"""From the logits `[n, C]` of some nodes to what is needed of each, `[n, …]`."""


def require_staged(model: Model) -> StagedModel:
    """Returns `model`; raises `InputError` if it cannot be trained on mini-batches."""
    if isinstance(model, StagedModel):
        return model
    name = type(model).__name__
    raise InputError(
        f"{name} trains on the whole graph at once, not on mini-batches: {model.full_batch_reason}; give "
        "`train.batch=full`"
    )


@dataclass(eq=False, repr=False)
class Batching(ABC):
    """Base class of `FullBatch` and `MiniBatch`: trains epochs over a graph and predicts its nodes."""

    model: Model
    task: Task
    objective: Objective
    optimizer: Optimizer
    generator: Generator
    """Selects the training nodes of each epoch, and samples."""
    dtype: torch.dtype = field(default=torch.float32, kw_only=True)
    """Precision of the features; the model computes in it."""
    device: torch.device = field(init=False)
    """Device of the model."""

    @abstractmethod
    def logits(self, shown: Tensor, nodes: Tensor, reduce: Reduce) -> Tensor:
        """`reduce` of the logits of `nodes` `[n]`, with the labels of exactly the nodes `shown` in the graph.

        `shown` and `nodes` are recognized by identity, so their contents must not change.
        """

    @abstractmethod
    def train_epoch(self, epoch: int, before_step: Callable[[], None] = lambda: None) -> Metrics:
        """Train for one epoch, calling `before_step` before every step of the optimizer; returns `training_metrics`."""

    @abstractmethod
    def validate(self, shown: Tensor) -> Tensor:
        """Logits `[n, C]` of the validation nodes in evaluation mode; `shown` as in `logits`.

        The next call may overwrite them.
        """

    def reset(self) -> None:
        """Free what is stored between epochs: training is over, or another state was loaded."""
        self.optimizer.zero_grad(set_to_none=True)

"""The base class of full batches and mini-batches; what training needs of a model is in `nn/base.py`."""

from __future__ import annotations

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

"""The interfaces of training: a self-training rule, a batching and a post-processing.

What training needs of a model is in `nn/base.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Generator, Tensor
from torch.optim import Optimizer

from legnn.errors import InputError
from legnn.graph import LabelGraph
from legnn.nn import Model, StagedModel
from legnn.training.metrics import Metrics
from legnn.training.task import Task

if TYPE_CHECKING:
    from legnn.training.objective import Objective, PseudoLabels

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


class SelfTrainingRule(Protocol):
    """Selects pseudo labels, and says how much they count. Numbers on the device may stand for `confidence`."""

    def confidence(self, epoch: int) -> float:
        """How far the model is trusted in `epoch`, from 1."""

    def may_select(self, confidence: float) -> bool:
        """Whether any candidate can get a pseudo label; where none can, mini-batches do not sample them."""

    def select(self, nodes: Tensor, y: Tensor, p: Tensor, confidence: float | Tensor) -> PseudoLabels:
        """The pseudo labels of the candidates `nodes` `[U]`, whose most probable class is `y` `[U]` with `p` `[U]`.

        The candidates are those of a step, in several processes those of one of them; there may be none.
        """

    def loss_weight(self, confidence: Any) -> Any:
        """The factor of the mean loss of pseudo labels."""


class PostProcess(Protocol):
    """Changes probabilities after training."""

    def __call__(self, probabilities: Tensor, graph: LabelGraph) -> Tensor:
        """`[M, C]` from `[M, C]`; `graph` shows the labels that may be used, and holds no others."""


class Predictor(Protocol):
    """Predicts in evaluation mode."""

    @abstractmethod
    def logits(self, shown: Tensor, nodes: Tensor, reduce: Reduce) -> Tensor:
        """`reduce` of the logits of `nodes` `[n]`, with the labels of exactly the nodes `shown` in the graph.

        `shown` and `nodes` are recognized by identity, so their contents must not change.
        """


@dataclass(eq=False, repr=False)
class Batching(Predictor, ABC):
    """How an epoch goes over the graph."""

    model: Model
    task: Task
    objective: Objective
    optimizer: Optimizer
    generator: Generator
    """Selects the training nodes of each epoch, and samples."""
    dtype: torch.dtype = field(default=torch.float32, kw_only=True)
    """Of the features; the model computes in it."""
    device: torch.device = field(init=False)
    """Of the model."""

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

"""The seams of training: what it needs of a self-training rule, a batching and a post-processing.

What it needs of a model is in `nn/base.py`.

Metrics are scalars on the device, in double precision, and may be overwritten by the next call: the loop reads all of
an epoch in one transfer, the only synchronization.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Generator, Tensor
from torch.optim import Optimizer

from legnn.errors import InputError
from legnn.graph import LabelGraph
from legnn.nn import Model, StagedModel
from legnn.training.optimizer import set_lr
from legnn.training.task import Task

if TYPE_CHECKING:
    from legnn.training.in_flight import EpochRing
    from legnn.training.objective import Objective, PseudoLabels

Reduce = Callable[[Tensor], Tensor]
"""From the logits `[n, C]` of some nodes to what is kept of each, `[n, …]`."""


def require_staged(model: Model) -> StagedModel:
    """Returns `model`; raises `InputError` if it cannot be trained on mini-batches."""
    if isinstance(model, StagedModel):
        return model
    name = type(model).__name__
    raise InputError(
        f"{name} trains on the whole graph at once, not on mini-batches: {model.full_batch_reason}; give `batch=full`"
    )


class SelfTrainingRule(Protocol):
    """Chooses pseudo labels, and says how much they count. Numbers on the device may stand for `confidence`."""

    def confidence(self, epoch: int) -> float:
        """How far the model is trusted in `epoch`, from 1."""

    def can_choose(self, confidence: float) -> bool:
        """Whether any candidate can get a pseudo label; where none can, mini-batches do not sample them."""

    def choose(self, nodes: Tensor, y: Tensor, p: Tensor, confidence: float | Tensor) -> PseudoLabels:
        """The pseudo labels of the candidates `nodes` `[U]`, whose most probable class is `y` `[U]` with `p` `[U]`.

        The candidates are those of a step, in several processes those of one of them; there may be none.
        """

    def loss_weight(self, confidence: Any) -> Any:
        """The factor of the mean loss of pseudo labels."""


class PostProcess(Protocol):
    """Changes probabilities after training."""

    def __call__(self, probabilities: Tensor, graph: LabelGraph) -> Tensor:
        """`[M, C]` from `[M, C]`; `graph` shows the labels that may be used, and holds no others."""


class TrainMetrics(NamedTuple):
    """Metrics of one epoch or step of training, NaN where there are none."""

    supervised_loss: Tensor
    pseudo_loss: Tensor
    train_accuracy: Tensor
    """Of the predicted nodes in the training forward; NaN where they saw their own labels."""
    pseudo_labels: Tensor
    """How many there were; NaN without self-training."""
    pseudo_label_accuracy: Tensor
    """Where the truth is known; for the reader, nothing learns from it."""


class ValMetrics(NamedTuple):
    """Metrics of the validation nodes."""

    accuracy: Tensor
    macro_f1: Tensor
    loss: Tensor


class Predictor(Protocol):
    """Predicts in evaluation mode."""

    def logits(self, shown: Tensor, nodes: Tensor, reduce: Reduce) -> Tensor:
        """`reduce` of the logits of `nodes` `[n]`, with the labels of exactly the nodes `shown` in the graph.

        `shown` and `nodes` are recognized by identity, so their contents must not change.
        """


def _none() -> None:
    return None


@dataclass(eq=False, repr=False)
class Batching(ABC):
    """How an epoch goes over the graph; a `Predictor`."""

    model: Model
    task: Task
    objective: Objective
    optimizer: Optimizer
    generator: Generator
    _: KW_ONLY
    dtype: torch.dtype = torch.float32
    """Of the features; the model computes in it."""
    before_step: Callable[[], float | None] = field(init=False, default_factory=lambda: _none)
    """Called before every step of the optimizer, captured or not: its learning rate, None to leave it as it is."""
    device: torch.device = field(init=False)
    """Of the model."""

    @abstractmethod
    def train_epoch(self, epoch: int) -> TrainMetrics:
        """Train for one epoch."""

    @abstractmethod
    def validate(self, shown: Tensor) -> ValMetrics:
        """Score the validation nodes; `shown` as in `logits`."""

    @abstractmethod
    def logits(self, shown: Tensor, nodes: Tensor, reduce: Reduce) -> Tensor:
        """As in `Predictor`."""

    def run_epoch(self, epoch: int, shown: Tensor | None) -> Tensor:
        """Train for one epoch and, with `shown`, validate; returns the metrics of both as one tensor."""
        metrics: list[Tensor] = [*self.train_epoch(epoch)]
        if shown is not None:
            metrics += self.validate(shown)
        return torch.stack([value.double() for value in metrics])

    @property
    def ring(self) -> EpochRing | None:
        """Where `run_epoch` leaves its metrics and weights too, so that several may be in flight; None for nowhere."""
        return None

    def set_lr(self, lr: float | None) -> None:
        """Set the learning rate of the next step; None to leave it as it is."""
        if lr is not None:
            set_lr(self.optimizer, lr)

    @property
    def draws(self) -> Tensor | None:
        """What the draws of the next epoch depend on beside the generators; None for nothing."""
        return None

    def load_draws(self, state: Tensor) -> None:
        """Goes on from an earlier state of `draws`; only asked of a batching that has one."""
        raise NotImplementedError

    def reset(self) -> None:
        """Free what is kept between epochs: training is over, or another state was loaded."""
        self.optimizer.zero_grad(set_to_none=True)

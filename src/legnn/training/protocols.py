"""The seams of training: what it needs of a model, a self-training rule, a batching and a post-processing.

Metrics are scalars on the device, in double precision, and may be overwritten by the next call: the loop reads all of
an epoch in one transfer, the only synchronization.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

import torch
from torch import Tensor, nn

from legnn.errors import InputError
from legnn.graph import LabelBlock, LabelGraph, SampledLabelGraph

if TYPE_CHECKING:
    from legnn.training.objective import Objective, PseudoLabels

Nodes = tuple[Tensor, Tensor | None]
"""States of nodes `[n, D]` and, where labels are nodes, of labels `[C, D]`."""


class Model(Protocol):
    """A module that gives logits of all nodes. It sees the labels that a `LabelGraph` shows, and no others."""

    uses_labels: bool
    """Whether shown labels reach the logits."""

    def fit_inputs(self, x: Tensor, node_type: Tensor | None = None) -> None:
        """Take the statistics of the features `[M, F]` that `inputs` scales by."""

    def inputs(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Any:
        """Features `[M, F]` in the form that the model takes, prepared once."""

    def __call__(self, inputs: Any, graph: LabelGraph) -> Tensor:
        """Logits `[M, C]`."""

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Parameters for an optimizer, with `weight_decay` on those that it is meant for."""

    # of every nn.Module
    def parameters(self) -> Iterator[nn.Parameter]: ...  # noqa: D102
    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...  # noqa: D102
    def state_dict(self) -> dict[str, Tensor]: ...  # noqa: D102
    def load_state_dict(self, state_dict: dict[str, Tensor], /) -> object: ...  # noqa: D102
    def modules(self) -> Iterator[nn.Module]: ...  # noqa: D102
    def to(self, device: torch.device, /) -> object: ...  # noqa: D102
    def train(self) -> object: ...  # noqa: D102
    def eval(self) -> Self: ...  # noqa: D102


@runtime_checkable
class StagedModel(Model, Protocol):
    """A model that is computed stage by stage, `classify(stage_K(… stage_1(encode(x))))`, each over a block of nodes.

    Mini-batches and layer-wise inference need it. Called with the inputs of a `SampledLabelGraph`, it gives the logits
    of the seeds.
    """

    num_stages: int
    """`K`."""
    in_channels: int
    """Columns of `batch_inputs`."""
    channels: int
    """`D`, columns of the states between stages."""
    has_label_nodes: bool
    """Whether every stage but the last computes labels from all nodes that show them."""
    uses_class_mean: bool
    """Whether `encode` reads the mean of `batch_inputs` over the nodes that show each class."""

    def batch_inputs(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Tensor:
        """Features `[n, F]` of some nodes in the form that `encode` takes."""

    def encode(self, inputs: Any, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """The states before the first stage."""

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelBlock) -> Nodes:
        """The states after stage `k`, from 0, of the nodes that receive in `block`."""

    def classify(self, nodes: Tensor) -> Tensor:
        """Logits `[n, C]` from the states after the last stage."""


def require_staged(model: Model) -> StagedModel:
    """Returns `model`; raises `InputError` if it cannot be trained on mini-batches."""
    if isinstance(model, StagedModel):
        return model
    name = type(model).__name__
    raise InputError(f"{name} trains on the whole graph at once, not on mini-batches; give batch = full")


class SelfTrainingRule(Protocol):
    """Chooses pseudo labels, and says how much they count. Numbers on the device may stand for `confidence`."""

    def confidence(self, epoch: int) -> float:
        """How far the model is trusted in `epoch`, from 1."""

    def can_choose(self, confidence: float) -> bool:
        """Whether any candidate can get a pseudo label; where none can, mini-batches need not predict them."""

    def choose(self, nodes: Tensor, y: Tensor, p: Tensor, confidence: float | Tensor) -> PseudoLabels:
        """The pseudo labels of the candidates `nodes` `[U]`, whose most probable class is `y` `[U]` with `p` `[U]`."""

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
    """Predicts `nodes` `[n]` in evaluation mode with the labels of exactly the nodes `shown` in the graph."""

    def predict_proba(self, shown: Tensor, nodes: Tensor) -> Tensor:
        """`[n, C]` probabilities."""

    def predict(self, shown: Tensor, nodes: Tensor) -> Tensor:
        """`[n, 2]` class and confidence, in less memory than all probabilities take."""


class Batching(Predictor, Protocol):
    """How an epoch goes over the graph."""

    device: torch.device
    objective: Objective

    def train_epoch(self, epoch: int) -> TrainMetrics:
        """Train for one epoch."""

    def validate(self, shown: Tensor) -> ValMetrics:
        """Score the validation nodes in evaluation mode, with the labels of exactly the nodes `shown` in the graph."""

    def reset(self) -> None:
        """Free what is kept between epochs: training is over, or another state was loaded."""

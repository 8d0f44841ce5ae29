"""The base classes of models: what training needs of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from legnn.graph import LabelBlock, LabelGraph, SampledLabelGraph

Nodes = tuple[Tensor, Tensor | None]
"""States of nodes `[n, D]` and, where labels are nodes, of labels `[C, D]`."""


class Model(nn.Module, ABC):
    """A module that gives logits of all nodes. It sees the labels that a `LabelGraph` shows, and no others."""

    uses_labels: bool
    """Whether shown labels reach the logits."""

    def fit_inputs(self, x: Tensor, node_type: Tensor | None = None) -> None:
        """Take the statistics of the features `[M, F]` that `inputs` scales by."""

    @abstractmethod
    def inputs(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Any:
        """Features `[M, F]` in the form that `forward` takes, prepared once."""

    @abstractmethod
    def forward(self, inputs: Any, graph: LabelGraph) -> Tensor:
        """Logits `[M, C]`."""

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Parameters for an optimizer, with `weight_decay` on those that it is meant for."""
        return [{"params": list(self.parameters()), "weight_decay": weight_decay}]

    def num_parameters(self) -> int:
        """How many numbers are trained."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)


class StagedModel(Model):
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

    @abstractmethod
    def batch_inputs(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Tensor:
        """Features `[n, F]` of some nodes in the form that `encode` takes."""

    @abstractmethod
    def encode(self, inputs: Any, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """The states before the first stage."""

    @abstractmethod
    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelBlock) -> Nodes:
        """The states after stage `k`, from 0, of the nodes that receive in `block`."""

    @abstractmethod
    def classify(self, nodes: Tensor) -> Tensor:
        """Logits `[n, C]` from the states after the last stage."""

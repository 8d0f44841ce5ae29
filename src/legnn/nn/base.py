"""The base classes of models: what training needs of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from legnn.errors import InputError
from legnn.graph import LabelBlock, LabelGraph, SampledLabelGraph
from legnn.nn.layer import targets_of

Nodes = tuple[Tensor, Tensor | None]
"""States of nodes `[n, D]` and, where labels are nodes, of labels `[C, D]`."""


class DataShape(NamedTuple):
    """What a model has to know of the data to be built."""

    features: int
    """`F`."""
    classes: int
    """`C`."""
    types: int = 1
    """`T`, node types."""
    relations: tuple[tuple[int, int], ...] = ()
    """Source and target type of the edges that there are; none for a homogeneous graph."""
    edges: int = 0
    """Entries of the adjacency."""
    label_features: Tensor | None = None
    """`[C, …]` given features of the labels."""
    target: int = 0
    """The type that has labels."""


class Model(nn.Module, ABC):
    """A module that gives logits of all nodes. It sees the labels that a `LabelGraph` shows, and no others."""

    uses_labels: bool
    """Whether shown labels reach the logits."""
    takes_weights: bool = True
    """Whether edge weights are used."""
    edge_matrices: int = 0
    """`[E, D]` matrices that training keeps of each stage."""
    whole_because: str = "it is not computed stage by stage"
    """Why a model that is not staged needs the whole graph."""

    def train(self, mode: bool = True) -> Self:
        """Sets the mode of all parts, twice an epoch: PyTorch's own way takes four times as long."""
        for module in self.modules():
            # a model with a way of its own comes here from there
            if module is self or type(module).train in (nn.Module.train, Model.train):
                module.__dict__["training"] = mode
            else:
                module.train(mode)
        return self

    @torch.no_grad()
    def copy_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Copies weights by their names in `state_dict`; `load_state_dict` does the same and takes much longer."""
        own = self.state_dict()
        if own:
            torch._foreach_copy_([*own.values()], [weights[name] for name in own])

    @property
    def first(self) -> nn.Module | None:
        """The part that holds the first matrix, on which the published GCN has its penalty."""
        return None

    def fit_inputs(self, x: Tensor, node_type: Tensor | None = None) -> None:
        """Take the statistics of the features `[M, F]` that `inputs` scales by."""

    @abstractmethod
    def inputs(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Any:
        """Features `[M, F]` in the form that `forward` takes, prepared once."""

    @abstractmethod
    def forward(self, inputs: Any, graph: LabelGraph) -> Tensor:
        """Logits `[M, C]`."""

    def auxiliary(self, inputs: Any, graph: LabelGraph) -> tuple[float, Tensor] | None:
        """A second prediction that is trained beside `forward`: the weight of its loss, and its logits `[M, C]`."""
        return None

    def check_weights(self, *, weighted: bool) -> None:
        """Raises `InputError` for a graph with edge weights, if the model would ignore them."""
        if weighted and not self.takes_weights:
            name = type(self).__name__
            raise InputError(f"{name} takes no edge weights; use `architecture=legnn`, or leave out the weights")

    def fit_labels(self, inputs: Any, graph: LabelGraph, nodes: Tensor, y: Tensor) -> None:
        """Learns the classes `y` `[n]` of `nodes` `[n]` at once; for a model without parameters, which has one epoch.

        All of them show their labels in `graph`: what is learned of a node must not read its own.
        """

    def parameter_groups(self, weight_decay: float, layer_decay: float = 0.0) -> list[dict[str, Any]]:
        """Parameters for an optimizer, with `weight_decay` on those of `first`, and `layer_decay` on all others."""
        first = [] if self.first is None else list(self.first.parameters())
        mine = set(first)
        rest = [parameter for parameter in self.parameters() if parameter not in mine]
        return [{"params": first, "weight_decay": weight_decay}, {"params": rest, "weight_decay": layer_decay}]

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
    uses_class_mean: bool = False
    """Whether `encode` reads the mean of `batch_inputs` over the nodes that show each class."""
    reads_first: bool = False
    """Whether stages read the states before the first stage, too."""
    has_row_stage: bool = False
    """Whether in training, too, what the last stage computes of a node depends on no other node that is computed."""
    takes_padding: bool = False
    """Whether `graph.padding.pad_sample` of a sample gives the same logits and gradients, without synchronization."""

    @abstractmethod
    def batch_inputs(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Tensor:
        """Features `[n, F]` of some nodes in the form that `encode` takes."""

    @abstractmethod
    def encode(self, inputs: Any, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """The states before the first stage."""

    def begin(self, inputs: Any, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """`encode`, or something that the first stage can read in its place."""
        return self.encode(inputs, graph)

    @abstractmethod
    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph, first: Nodes | None) -> Nodes:
        """The states after stage `k`, from 0, of the nodes that receive in `block`.

        With `reads_first`, `first` are the states before the first stage, `[M, D]` of the same nodes and `[C, D]`.
        """

    @abstractmethod
    def classify(self, nodes: Tensor) -> Tensor:
        """Logits `[n, C]`, in single precision at least, from the states after the last stage."""

    def forward(self, inputs: Any, graph: LabelGraph | SampledLabelGraph) -> Tensor:
        """Logits `[M, C]` for `inputs` of all nodes.

        Over a sampled graph, `inputs` are those of its input nodes, and the logits are those of its seeds.
        """
        return self.classify(self.run_stages(inputs, graph)[0])

    def target_logits(self, inputs: Any, graph: LabelGraph, last: LabelBlock) -> Tensor:
        """Logits `[n, C]` of the targets of `last` alone, for `inputs` of all nodes: what the last stage reads."""
        return self.classify(self.run_stages(inputs, graph, last)[0])

    def run_stages(self, inputs: Any, graph: LabelGraph | SampledLabelGraph, last: LabelBlock | None = None) -> Nodes:
        """The states of nodes after the last stage, and of labels as the last stage reads them.

        With `last`, the last stage of a whole graph computes the targets of that block alone.
        """
        start, start_labels = nodes, labels = self.begin(inputs, graph)
        read = labels
        for k in range(self.num_stages):
            block, read = graph.layer(k), labels
            if last is not None and k + 1 == self.num_stages:
                block, nodes = last, nodes.index_select(0, last.nodes)
                start = start.index_select(0, last.nodes) if self.reads_first else start
            first: Nodes | None = None
            if self.reads_first:
                first = targets_of(start, block), start_labels
            nodes, labels = self.stage(k, nodes, labels, block, first)
        return nodes, read

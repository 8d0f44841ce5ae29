"""The base classes of models: what training needs of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from legnn.config.model import ModelSettings
from legnn.errors import InputError
from legnn.graph.blocks import SampledLabelGraph
from legnn.graph.label_graph import LabelGraph
from legnn.nn.features import Features, TypedFeatures, project, scatter_by_type, to_sparse_if_faster
from legnn.nn.layer import Linear, Nodes, check_states, targets_of, to_logits
from legnn.nn.scaling import FeatureScale


class DataShape(NamedTuple):
    """Sizes of the data, from which a model is built."""

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
    full_batch_reason: str = "it is not computed stage by stage"
    """Why a model that is not staged needs the whole graph."""
    decayed: tuple[str, ...] = ()
    """Names of the parts that `weight_decay` is for: the one with the first matrix, as in the published GCN."""

    def fit_scaler(self, x: Tensor, node_type: Tensor | None = None) -> None:
        """Take the statistics of the features `[M, F]` that `prepare` scales by."""

    @abstractmethod
    def prepare(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Any:
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
            raise InputError(f"{name} takes no edge weights; use `model.architecture=legnn`, or leave out the weights")

    def fit_labels(self, inputs: Any, graph: LabelGraph, nodes: Tensor, y: Tensor) -> None:
        """Learns the classes `y` `[n]` of `nodes` `[n]` at once; for a model without parameters, which has one epoch.

        All of them show their labels in `graph`: what is learned of a node must not read its own.
        """

    def parameter_groups(self, weight_decay: float, weight_decay_layers: float = 0.0) -> list[dict[str, Any]]:
        """Parameters for an optimizer: `weight_decay` is for the parts `decayed`, `weight_decay_layers` for others."""
        decayed = [parameter for name in self.decayed for parameter in self.get_submodule(name).parameters()]
        known = set(decayed)
        others = [parameter for parameter in self.parameters() if parameter not in known]
        return [
            {"params": decayed, "weight_decay": weight_decay},
            {"params": others, "weight_decay": weight_decay_layers},
        ]

    def num_parameters(self) -> int:
        """The number of trained parameters."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)


class StagedModel(Model):
    """A model that is computed stage by stage, `classify(stage_K(… stage_1(encode(x))))`, each over a block of nodes.

    Mini-batches and layer-wise inference need it. Called with the inputs of a `SampledLabelGraph`, it gives the logits
    of the seeds.
    """

    num_stages: int
    """`K`."""
    in_channels: int
    """Columns of `prepare_rows`."""
    channels: int
    """`D`, columns of the states between stages."""
    has_label_nodes: bool
    """Whether every stage but the last computes labels from all nodes that show them."""
    uses_class_mean: bool = False
    """Whether `encode` reads the mean of `prepare_rows` over the nodes that show each class."""
    uses_initial_state: bool = False
    """Whether stages read the states before the first stage, too."""
    supports_padding: bool = False
    """Whether `graph.padding.pad_sample` of a sample gives the same logits and gradients, without synchronization."""

    @abstractmethod
    def prepare_rows(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Tensor:
        """Features `[n, F]` of some nodes in the form that `encode` takes."""

    @abstractmethod
    def encode(self, inputs: Any, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """The states before the first stage."""

    def encode_all(self, inputs: Any, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """`encode`, in any form that the first stage can read as a whole."""
        return self.encode(inputs, graph)

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph, initial: Nodes | None) -> Nodes:
        """The states after stage `k`, from 0, of the nodes that receive in `block`.

        With `uses_initial_state`, `initial` are the states before the first stage: `[M, D]` of these nodes, `[C, D]`.
        """
        raise NotImplementedError

    def classify(self, nodes: Tensor) -> Tensor:
        """Logits `[n, C]`, in single precision at least, from the states after the last stage: by default, these."""
        return to_logits(nodes)

    def forward(self, inputs: Any, graph: LabelGraph | SampledLabelGraph) -> Tensor:
        """Logits `[M, C]` for `inputs` of all nodes.

        Over a sampled graph, `inputs` are those of its input nodes, and the logits are those of its seeds.
        """
        return self.classify(self.run_stages(inputs, graph)[0])

    def run_stages(self, inputs: Any, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """The states of nodes after the last stage, and of labels as the last stage reads them."""
        start, start_labels = nodes, labels = self.encode_all(inputs, graph)
        read = labels
        for k in range(self.num_stages):
            block, read = graph.layer(k), labels
            initial = (targets_of(start, block), start_labels) if self.uses_initial_state else None
            nodes, labels = self.stage(k, nodes, labels, block, initial)
        return nodes, read


class FeatureInputs(Model):
    """A model of scaled features.

    With several node types, each has columns of its own, so that the first matrix is one for each type, unless the
    settings say `shared_projection`.
    """

    takes_sparse: ClassVar[bool] = True
    """Whether `forward` takes sparse features."""
    ignores_dtype: ClassVar[bool] = False
    """Whether it computes in the precision of the features: sums over edges are too coarse in any lower one."""
    decayed: tuple[str, ...] = ("project",)
    project: nn.Module
    """The first matrix."""

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__()
        # the columns of the types are side by side, or one above the other
        self.num_types = 1 if settings.published.shared_projection else data.types
        self.num_features, self.in_channels = data.features, self.num_types * data.features
        self.num_classes, self.input_dropout = data.classes, settings.input_dropout
        self.scale = FeatureScale(settings.feature_scale, data.features, data.types)

    def fit_scaler(self, x: Tensor, node_type: Tensor | None = None) -> None:
        """Computes the statistics of the features `[M, F]` that `prepare` scales by."""
        self.scale.fit(x, node_type)

    def prepare(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Features:
        """Features `[n, F]` in the form that `forward` takes: scaled, and sparse where that is faster.

        The model computes in `dtype`. With several node types, each of `node_type` `[n]` has columns of its own among
        `[n, T F]`, unless they share a projection.
        """
        if not self.takes_sparse:
            return self.prepare_rows(x, dtype, node_type)
        check_states("x", x, None, self.num_features)
        scaled, dtype = self.scale(x, node_type), None if self.ignores_dtype else dtype
        if node_type is None or self.num_types == 1:
            return to_sparse_if_faster(scaled, dtype)
        return TypedFeatures.from_rows(scaled, node_type, self.num_types, dtype)

    def prepare_rows(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Tensor:
        """`prepare` for some rows `[n, F]`, never sparse: testing whether that is faster takes longer than it saves."""
        check_states("x", x, None, self.num_features)
        scaled = self.scale(x, node_type)
        if node_type is not None and self.num_types > 1:
            scaled = scatter_by_type(scaled, node_type, self.num_types)
        return scaled.to(scaled.dtype if dtype is None or self.ignores_dtype else dtype)

    def projected(self, inputs: Features) -> Tensor:
        """`dropout(X) P + b` `[n, D]`."""
        assert isinstance(self.project, Linear)
        return project(inputs, self.project, self.input_dropout, training=self.training)


class FeatureModel(FeatureInputs, StagedModel):
    """A staged model of scaled features."""

    uses_labels = False
    has_label_nodes = False

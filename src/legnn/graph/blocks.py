"""Parts of a label graph: what each layer reads when the model is computed for some nodes only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from legnn.graph.label_graph import LabelEdges, LabelGraph


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelBlock(LabelGraph):
    """What one layer reads to compute `M` nodes from `N`, the first `M` of which are they themselves.

    `adjacency` `[M, N]` has some or all of their edges, `senders` some or all of the nodes that show each label.
    Degrees and counts are those of the whole graph, and where not all edges are here each stands for several: a sum
    over a uniform sample of `s` of `d` terms, times `d / s`, is right on average, and exact when all are sampled.
    """

    nodes: Tensor
    """`[N]` which nodes of the whole graph they are."""
    senders: LabelEdges
    """Over the `N` nodes: which of them send to their label."""
    degrees: Tensor
    """`[N]` float: degrees in `A`."""
    labels_of: Tensor
    """`[N]` the class each node shows, -1 for none."""
    edges_of: Tensor | None
    """`[M]` how many edges each node that receives has in the whole graph; None where all of them are here."""
    shown_by: Tensor
    """`[C]` how many nodes show each class in the whole graph."""

    @cached_property
    def to_nodes(self) -> LabelEdges:
        """The labels that the nodes receive."""
        edges = LabelEdges(self.shown, self.y, self.num_nodes, self.num_classes)
        edges.__dict__["label_of"] = self.labels_of[: self.num_nodes]
        return edges

    @property
    def to_labels(self) -> LabelEdges:
        """The nodes that send to their label."""
        return self.senders

    @property
    def degree(self) -> Tensor:
        """`[M]` degrees in `A` of the nodes that receive."""
        return self.degrees[: self.num_nodes]

    @property
    def source_degree(self) -> Tensor:
        """`[N]` degrees in `A` of the nodes that send."""
        return self.degrees

    @cached_property
    def multiplicity(self) -> Tensor | None:
        """`[M]` for how many edges of the whole graph each edge of a node stands."""
        if self.edges_of is None:
            return None
        here = self.adjacency.rowptr[1:] - self.adjacency.rowptr[:-1]
        return self.edges_of.to(self.degrees.dtype) / here.clamp(min=1)

    @cached_property
    def label_multiplicity(self) -> Tensor | None:
        """`[C]` for how many nodes each of those that send to a label stands."""
        return None if self.edges_of is None else self.label_count / self.senders.count.clamp(min=1)

    @cached_property
    def label_count(self) -> Tensor:
        """`[C]` float: how many nodes of the whole graph show each class."""
        return self.shown_by.to(self.degrees.dtype)

    @cached_property
    def node_relations(self) -> Tensor:
        """`[M]` how many kinds of edges (from nodes, from labels) really come in at each node, at least 1."""
        shows = self.labels_of[: self.num_nodes] >= 0
        return ((self.degree > 0).to(self.degrees.dtype) + shows).clamp_(min=1)

    @cached_property
    def source_node_degree(self) -> Tensor:
        """`[N]` degrees in `A'` of the nodes that send."""
        return self.degrees + (self.labels_of >= 0)

    def tensors(self) -> Iterator[Tensor]:
        """All that it is made of."""
        adjacency, senders = self.adjacency, self.senders
        found = [adjacency.rowptr, adjacency.col, adjacency.weight, senders.shown, senders.y]
        found += [getattr(self, name) for name in _TENSORS]
        return (tensor for tensor in found if tensor is not None)

    def to(self, device: torch.device) -> LabelBlock:
        """The same block on `device`; from pinned memory without waiting."""

        def moved(value: Tensor | None) -> Tensor | None:
            return None if value is None else value.to(device, non_blocking=True)

        fields = {name: moved(getattr(self, name)) for name in _TENSORS}
        return LabelBlock(
            adjacency=self.adjacency.to(device),
            num_classes=self.num_classes,
            senders=self.senders.to(device),
            **fields,  # type: ignore[arg-type]
        )


_TENSORS = ("shown", "y", "label_adjacency", "nodes", "degrees", "labels_of", "edges_of", "shown_by")


@dataclass(frozen=True, eq=False)
class SampledLabelGraph:
    """A block for each layer, each computing the nodes that send in the next; the last computes the seeds."""

    blocks: list[LabelBlock]
    at_input: LabelEdges
    """The labels that the input nodes show."""
    class_mean: Tensor | None = None
    """`[C, F]` the mean features of all nodes that show each class, for models that begin with it."""

    @property
    def nodes(self) -> Tensor:
        """`[N]` the nodes whose features are put in; the first of them are the seeds."""
        return self.blocks[0].nodes

    @property
    def num_edges(self) -> int:
        """Edges that were drawn, label edges included."""
        return sum(block.adjacency.num_edges + block.senders.shown.numel() for block in self.blocks)

    def to(self, device: torch.device) -> SampledLabelGraph:
        """The same on `device`."""
        return replace(self, blocks=[block.to(device) for block in self.blocks], at_input=self.at_input.to(device))

    def tensors(self) -> Iterator[Tensor]:
        """All that it is made of."""
        yield from (self.at_input.shown, self.at_input.y)
        for block in self.blocks:
            yield from block.tensors()

    def with_class_mean(self, mean: Tensor | None) -> SampledLabelGraph:
        """The same with the class means of the whole graph."""
        return replace(self, class_mean=mean)

    def layer(self, k: int) -> LabelBlock:
        """What layer `k` (from 0) passes messages on."""
        return self.blocks[k]

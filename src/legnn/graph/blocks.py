"""Blocks of a label graph: what each layer reads when the model computes some nodes only."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from legnn.graph.label_graph import LabelGraph
from legnn.ops.csr.keyed_cache import KeyedCache, derived, move_tensors
from legnn.ops.csr.label_edges import LabelEdges


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelBlock(LabelGraph):
    """The input of a layer that computes `M` target nodes from `N` source nodes, the first of which are the targets.

    `adjacency` `[M, N]` has some or all of their edges, `senders` some or all of the nodes that show each label.
    Degrees and counts are those of the whole graph. Where edges are sampled, each represents several: a sum over a
    uniform sample of `s` of `d` terms, times `d / s`, is an unbiased estimate, and exact if `s = d`.
    """

    nodes: Tensor
    """`[N]` the source nodes, by their index in the whole graph."""
    senders: LabelEdges
    """Over the `N` source nodes: those that send to their label."""
    source_degrees: Tensor
    """`[N]` float: degrees in `A`."""
    source_labels: Tensor
    """`[N]` the class that each source node shows, -1 for none."""
    edge_count: Tensor | None
    """`[M]` how many edges each target has in the whole graph; None if all of them are here."""
    shown_count: Tensor
    """`[C]` how many nodes show each class in the whole graph."""
    valid_mask: Tensor | None = None
    """`[M]` bool: which targets are nodes, and not padding; None without padding."""
    padded_y: Tensor | None = None
    """`[S]` that of `LabelEdges`."""

    @property
    def edge_cache(self) -> KeyedCache:
        """The block itself: its degrees are not those of its adjacency."""
        return self

    @derived
    def to_nodes(self) -> LabelEdges:
        """`Y` of the target nodes."""
        return LabelEdges(self.shown, self.y, self.num_nodes, self.num_classes, self.padded_y)

    @property
    def to_labels(self) -> LabelEdges:
        """`Y` of the source nodes that send to their label."""
        return self.senders

    @property
    def degree(self) -> Tensor:
        """`[M]` degrees in `A` of the target nodes."""
        return self.source_degrees[: self.num_nodes]

    @property
    def source_degree(self) -> Tensor:
        """`[N]` degrees in `A` of the source nodes."""
        return self.source_degrees

    @derived
    def multiplicity(self) -> Tensor | None:
        """`[M]` how many edges of the whole graph each edge of a target represents."""
        if self.edge_count is None:
            return None
        sampled = self.adjacency.rowptr[1:] - self.adjacency.rowptr[:-1]
        return self.edge_count.to(self.source_degrees.dtype) / sampled.clamp(min=1)

    @derived
    def label_multiplicity(self) -> Tensor | None:
        """`[C]` how many nodes of the whole graph each sender to a label represents."""
        return None if self.edge_count is None else self.label_count / self.senders.count.clamp(min=1)

    @derived
    def label_count(self) -> Tensor:
        """`[C]` float: how many nodes of the whole graph show each class."""
        return self.shown_count.to(self.source_degrees.dtype)

    @derived
    def label_degree_of_node(self) -> Tensor:
        """`[M]` float: 1 if a target node shows its label, else 0."""
        return (self.source_labels[: self.num_nodes] >= 0).to(self.source_degrees.dtype)

    @derived
    def source_node_degree(self) -> Tensor:
        """`[N]` degrees in `A'` of the source nodes."""
        return self.source_degrees + (self.source_labels >= 0)


@dataclass(frozen=True, eq=False)
class SampledLabelGraph:
    """A block for each layer. Its targets are the source nodes of the next block; those of the last are the seeds."""

    nodes: Tensor
    """`[N]` the input nodes, seeds first."""
    blocks: list[LabelBlock]
    at_input: LabelEdges
    """The labels that the input nodes show."""
    class_mean: Tensor | None = None
    """`[C, F]` the mean features of all nodes that show each class, if the model's label embedding starts from them."""

    @property
    def num_edges(self) -> int:
        """Number of edges drawn, label edges included."""
        return sum(block.adjacency.num_edges + block.senders.shown.numel() for block in self.blocks)

    def to(self, device: torch.device) -> SampledLabelGraph:
        """Returns the sample on `device`; from pinned memory without synchronizing."""
        return move_tensors(self, device)

    def layer(self, k: int) -> LabelBlock:
        """Returns what layer `k` (from 0) reads."""
        return self.blocks[k]

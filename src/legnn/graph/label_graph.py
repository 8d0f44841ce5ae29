"""The label graph `A' = [[A, Y], [Yᵀ, S]]`, stored as its blocks and never built."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from legnn.errors import InputError
from legnn.ops.checks import check_count, check_index, check_weight
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.csr.keyed_cache import KeyedCache, derived
from legnn.ops.csr.label_edges import LabelEdges


@dataclass(frozen=True, eq=False)
class LabelGraph(KeyedCache):  # eq. 9: A'
    """Nodes, labels, and the edges between them in one epoch.

    `A` is the adjacency of the `M` nodes, `Y` holds the shown labels, and `S` the label–label edges, which are absent
    (the paper's `0`) unless given.

    A layer reads a whole graph or a `graph.blocks.LabelBlock`, which computes `M` target nodes from `N ≥ M` source
    nodes with some of their edges. In a whole graph `M = N`.

    `without_labels` and `show` check what they get; the constructor does not. The tensors must not be changed: what is
    derived from them is cached, here what depends on the labels shown, and of the adjacency what does not.
    """

    adjacency: Adjacency
    shown: Tensor
    """`[S]` nodes that show their label, each once."""
    y: Tensor
    """`[S]` the class that each of them shows."""
    num_classes: int
    label_adjacency: Tensor | None = None
    """`[C, C]` non-negative weights of label–label edges, row = target; None for no such edges."""
    node_type: Tensor | None = None
    """`[N]` the types of the source nodes; None where all nodes are of one type."""

    @classmethod
    def without_labels(
        cls,
        adjacency: Adjacency,
        num_classes: int,
        label_adjacency: Tensor | None = None,
        node_type: Tensor | None = None,
    ) -> LabelGraph:
        """The graph in which no node shows its label."""
        num_classes = check_count("num_classes", num_classes)
        if label_adjacency is not None:
            label_adjacency = check_weight("label_adjacency", label_adjacency, (num_classes, num_classes), zeros=True)
        if node_type is not None:
            node_type = check_index("node_type", node_type, 2**31)
            if node_type.numel() != adjacency.num_cols:
                raise InputError(f"`node_type` must have a type for each of {adjacency.num_cols} nodes")
        empty = torch.empty(0, dtype=torch.long, device=adjacency.col.device)
        return cls(adjacency, empty, empty, num_classes, label_adjacency, node_type)

    def show(self, shown: Tensor, y: Tensor) -> LabelGraph:
        """Returns the graph in which the nodes `shown` show the classes `y`, and no other node shows its label.

        Args:
            shown: `[S]` nodes, each once, or a boolean mask `[M]`; copied, as `y`.
            y: `[S]` classes.
        """
        device = self.adjacency.col.device
        shown = check_index("shown", shown, self.num_nodes, distinct=True, mask=True, device=device)
        y = check_index("y", y, self.num_classes, device=device)
        if y.numel() != shown.numel():
            raise InputError(f"`y` must have a class for each of the {shown.numel()} nodes in `shown`, not {y.numel()}")
        return replace(self, shown=shown.clone(), y=y.clone())

    @property
    def num_shown(self) -> int:
        """`S`: how many nodes show their label."""
        return self.shown.numel()

    def hide(self, nodes: Tensor) -> LabelGraph:
        """Returns the graph in which none of `nodes`, an index or a boolean mask `[M]`, shows its label."""
        nodes = check_index("nodes", nodes, self.num_nodes, mask=True, device=self.adjacency.col.device)
        hidden = torch.zeros(self.num_nodes, dtype=torch.bool, device=nodes.device).index_fill(0, nodes, True)
        stays = ~hidden[self.shown]
        return replace(self, shown=self.shown[stays], y=self.y[stays])

    def layer(self, k: int) -> LabelGraph:
        """Returns what layer `k` (from 0) reads: this graph."""
        return self

    @property
    def at_input(self) -> LabelEdges:
        """The labels that the input nodes show."""
        return self.to_nodes

    @property
    def num_nodes(self) -> int:
        """`M`: number of target nodes."""
        return self.adjacency.num_rows

    @property
    def edge_cache(self) -> KeyedCache:
        """Caches what depends on the edges, degrees and types of the nodes, and not on the labels shown."""
        return self.adjacency

    @derived
    def to_nodes(self) -> LabelEdges:
        """`Y` of the target nodes: edges from labels to nodes."""
        return LabelEdges(self.shown, self.y, self.num_nodes, self.num_classes)

    @property
    def to_labels(self) -> LabelEdges:
        """`Y` of the source nodes, whose transpose `Yᵀ` holds the edges from nodes to labels."""
        return self.to_nodes

    @property
    def degree(self) -> Tensor:
        """`[M]` degrees in `A` of the target nodes."""
        return self.adjacency.degree

    @property
    def source_degree(self) -> Tensor:
        """`[N]` degrees in `A` of the source nodes."""
        return self.degree

    @property
    def valid_mask(self) -> Tensor | None:
        """`[M]` bool: which targets are nodes, and not padding; None without padding."""
        return None

    @property
    def multiplicity(self) -> Tensor | None:
        """`[M]` how many edges of the whole graph each edge of a target represents; None if all edges are here."""
        return None

    @property
    def label_multiplicity(self) -> Tensor | None:
        """`[C]` how many nodes of the whole graph each sender to a label represents; None if all are here."""
        return None

    @derived
    def label_count(self) -> Tensor:
        """`[C]` float: how many nodes show each class."""
        return self.to_labels.count.to(self.degree.dtype)

    @derived
    def label_degree_of_node(self) -> Tensor:
        """`[M]` float: 1 if a target node shows its label, else 0; the row sums of `Y`."""
        return torch.zeros_like(self.degree).index_fill(0, self.shown, 1.0)

    @derived
    def node_degree(self) -> Tensor:
        """`[M]` degrees in `A'` of the target nodes."""
        return self.degree + self.label_degree_of_node

    @property
    def source_node_degree(self) -> Tensor:
        """`[N]` degrees in `A'` of the source nodes."""
        return self.node_degree

    @derived
    def label_degree(self) -> Tensor:
        """`[C]` degrees of the labels in `A'`."""
        return self.label_count if self.label_adjacency is None else self.label_count + self.label_adjacency.sum(1)

    @derived
    def label_relations(self) -> Tensor:
        """`[C]` of how many kinds (from nodes, from labels) the incoming edges of each label are, at least 1."""
        relations = (self.label_count > 0).to(self.label_count.dtype)
        if self.label_adjacency is not None:
            relations = relations + (self.label_adjacency.sum(1) > 0).to(relations.dtype)
        return relations.clamp(min=1)

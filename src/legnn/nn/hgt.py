"""HGT, the heterogeneous graph transformer (Hu et al., 2020), over a label graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.errors import InputError
from legnn.graph.label_graph import LabelGraph
from legnn.lazy import lazy_module
from legnn.nn.layer import LabelLayer, LayerOptions, Linear, Nodes, channels_per_head, targets_of
from legnn.nn.relations import SINGLE_RELATION, Relation, relation_graph
from legnn.ops.propagate import label_gather

pyg_utils = lazy_module("torch_geometric.utils")


class HGT(LabelLayer):
    r"""`h_i' = σ(g_τ) (A_τ gelu(Σ_j α_ij v_j M_r + b)) + (1 - σ(g_τ)) h_i`, `α_ij = softmax_j(μ_r k_j W_r · q_i / √d)`.

    `q_i = Q_τ(i) h_i`, `k_j = K_τ(j) h_j` and `v_j = V_τ(j) h_j` are by the types `τ` of nodes; the matrices `W_r` and
    `M_r` `[d, d]` of each head and its prior `μ_r` are by the relation `r` of an edge. One softmax is over all
    neighbors of a node, of whatever relation. Labels are one more type: the label of a node is one more neighbor in its
    softmax, and the nodes that show a label are its neighbors; there may be no label–label edges. An edge of weight `w`
    counts as `w` edges. A softmax over sampled edges is biased. `projection_bias=False` leaves out the biases of `K`,
    `Q` and `V`. Options: see `LabelLayer`. No activation follows the gate.
    """

    activates = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        heads: int = 1,
        num_types: int = 1,
        relations: Sequence[Relation] = (),
        label_edges: bool = False,
        projection_bias: bool = True,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(in_channels, out_channels, **options)
        if self.enhanced and label_edges:
            raise InputError("hgt takes no label–label edges; use gcn, sage, gat or rgcn with them")
        self.num_types, self.relations = num_types, tuple(relations) or SINGLE_RELATION
        self.heads, width = heads, channels_per_head(out_channels, heads)

        def by_type(out: int, bias: bool = projection_bias) -> nn.ModuleList:
            return nn.ModuleList(Linear(in_channels, out, bias=bias) for _ in range(num_types))

        def of_labels(out: int, needed: bool, bias: bool = projection_bias) -> Any:
            return Linear(in_channels, out, bias=bias) if needed else None

        self.query = by_type(out_channels)  # Q_τ
        self.key_value = by_type(2 * out_channels)  # K_τ, V_τ
        self.out = by_type(out_channels, self.has_bias)  # A_τ
        self.gate = nn.Parameter(torch.ones(num_types))  # g_τ
        self.edges = nn.ModuleList(_RelationWeights(heads, width) for _ in self.relations)  # W_r, M_r, μ_r
        self.label_key_value = of_labels(2 * out_channels, self.enhanced)
        self.label_to_node = _RelationWeights(heads, width) if self.enhanced else None
        self.label_query = of_labels(out_channels, self.update_labels)
        self.label_out = of_labels(out_channels, self.update_labels, self.has_label_bias)
        self.label_gate: Any = nn.Parameter(torch.ones(())) if self.update_labels else None
        self.node_to_label: Any = _RelationWeights(heads, width) if self.update_labels else None

    def forward(
        self,
        x: Tensor,
        labels: Tensor | None,
        graph: LabelGraph,
        residual: Tensor | None = None,
        initial: Nodes | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """See `LabelLayer.forward`."""
        edges, states = relation_graph(graph, self.num_types, self.relations), targets_of(x, graph)
        queries = edges.targets.split(self.drop(states))
        query = edges.targets.join([self._by_head(q(part)) for q, part in zip(self.query, queries, strict=True)])
        sources = edges.sources.split(self.drop(x))
        sent = [self._by_head(linear(part), 2) for linear, part in zip(self.key_value, sources, strict=True)]
        # what is sent along each relation, one below the other
        table = torch.cat([
            self.edges[number](sent[source]) for number, (source, _) in enumerate(self.relations)
        ])  # fmt: skip
        adjacency = graph.adjacency
        score = _score(table, edges.table_row, query, adjacency.row)
        if adjacency.weight is not None:
            score = score + adjacency.weight.to(score.dtype).log()[:, None]
        from_label = None
        if labels is not None and self.label_key_value is not None and self.label_to_node is not None:
            label_sent = self._by_head(self.label_key_value(self.drop(labels)), 2)
            from_label = label_gather(graph.to_nodes, self.label_to_node(label_sent).flatten(1))
            from_label = from_label.unflatten(1, table.shape[1:])
            if graph.multiplicity is not None:
                # beside its label, each sampled neighbor counts for several
                score = score + graph.multiplicity.to(score.dtype).log().index_select(0, adjacency.row)[:, None]
        mixed = self._mix(graph, score, table, edges.table_row, query, from_label)
        parts = [out(F.gelu(part)) for out, part in zip(self.out, edges.targets.split(mixed.flatten(1)), strict=True)]
        gated = zip(parts, edges.targets.split(states), self.gate, strict=True)
        nodes = edges.targets.join([_gated(part, old, gate) for part, old, gate in gated])
        nodes = nodes if residual is None else nodes + targets_of(residual, graph)
        if labels is None or self.label_query is None:
            return nodes, None
        return nodes, self._new_labels(labels, edges.sources.join(sent), graph)

    def _mix(
        self, graph: LabelGraph, score: Tensor, table: Tensor, rows: Tensor, query: Tensor, from_label: Tensor | None
    ) -> Tensor:
        """`Σ_j α_ij v_j M_r` `[M, heads, d]`, over neighbors and the label."""
        target = graph.adjacency.row.long()
        if from_label is not None:
            score = torch.cat([score, _score(from_label, None, query, graph.shown)])
            target = torch.cat([target, graph.shown])
        attention = pyg_utils.softmax(score, target, num_nodes=graph.num_nodes).to(table.dtype)[..., None]
        edges = rows.numel()
        mixed = torch.zeros_like(query).index_add(
            0, graph.adjacency.row, attention[:edges] * table[:, 1].index_select(0, rows)
        )
        return mixed if from_label is None else mixed.index_add(0, graph.shown, attention[edges:] * from_label[:, 1])

    def _new_labels(self, labels: Tensor, sent: Tensor, graph: LabelGraph) -> Tensor:
        """`[C, out]` from the nodes that show each label, `sent` being keys and values `[N, 2, heads, d]`."""
        senders, query = graph.to_labels, self._by_head(self.label_query(self.drop(labels)))
        table = self.node_to_label(sent.index_select(0, senders.shown))
        attention = pyg_utils.softmax(_score(table, None, query, senders.y), senders.y, num_nodes=graph.num_classes)
        mixed = torch.zeros_like(query).index_add(0, senders.y, attention.to(table.dtype)[..., None] * table[:, 1])
        return _gated(self.label_out(F.gelu(mixed.flatten(1))), labels, self.label_gate)

    def _by_head(self, rows: Tensor, parts: int | None = None) -> Tensor:
        """`[n, heads, d]`, or `[n, parts, heads, d]`, from the columns of a product."""
        return rows.unflatten(1, (self.heads, -1) if parts is None else (parts, self.heads, -1))


class _RelationWeights(nn.Module):
    """`W_r`, `M_r` and `μ_r` of one relation."""

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2, heads, width, width))
        for matrix in self.weight.flatten(0, 1):
            nn.init.xavier_uniform_(matrix)
        self.prior = nn.Parameter(torch.ones(heads))

    def forward(self, sent: Tensor) -> Tensor:
        """`μ k W / √d` and `v M` for keys and values `[n, 2, heads, d]`, in the same shape."""
        scale = torch.stack([self.prior / math.sqrt(sent.size(-1)), torch.ones_like(self.prior)])
        weight = (self.weight * scale[..., None, None]).to(sent.dtype)
        return torch.einsum("nphd,phde->nphe", sent, weight)


def _score(table: Tensor, rows: Tensor | None, query: Tensor, target: Tensor) -> Tensor:
    """`k · q` `[E, heads]` of the keys in `table` `[n, 2, heads, d]`, in single precision at least."""
    keys = table[:, 0] if rows is None else table[:, 0].index_select(0, rows)
    dtype = torch.promote_types(keys.dtype, torch.float32)
    return (keys * query.index_select(0, target)).sum(-1, dtype=dtype)


def _gated(new: Tensor, old: Tensor, gate: Tensor) -> Tensor:
    """`σ(g) new + (1 - σ(g)) old`."""
    return torch.lerp(old, new, gate.sigmoid().to(new.dtype))

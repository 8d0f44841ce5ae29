"""GAT over a label graph."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.graph import LabelGraph
from legnn.nn.layer import Normalize, channels_per_head, column, glorot, typed_linear
from legnn.ops import class_attention, label_gather, neighbor_attention


class GAT(nn.Module):
    r"""`h_i' = Σ_j α_ij W_φ(j) h_j + b_φ(i)`, `α_ij = softmax_j LeakyReLU(s_φ(j) · W h_j + t_φ(i) · W h_i)`.

    `φ` is the type of a node, N or L: each type has its own matrix and its own attention vectors, one for a node as the
    source of a message and one as its target (the two halves of the paper's `a_φ`). Heads are concatenated.

    With `normalize="joint"` the softmax is over all that come in along `A'`; with `"relation"` one softmax is taken
    within each kind of edge, and the kinds a node really has are averaged. An edge of weight `w` counts as `w` edges.

    `target_attention=False` drops `t`; `symmetric_norm=True` sends `h_j / √d_j` and receives `√d_i Σ …`, which makes
    uniform attention equal GCN. Both are the published code's settings for ogbn-arxiv. `label_edges` says that the
    graph will have label–label edges.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        heads: int = 1,
        target_attention: bool = True,
        symmetric_norm: bool = False,
        negative_slope: float = 0.2,
        enhanced: bool = True,
        update_labels: bool = True,
        normalize: Normalize = "relation",
        label_edges: bool = False,
    ) -> None:
        super().__init__()
        self.enhanced, self.update_labels, self.normalize = enhanced, enhanced and update_labels, normalize
        self.heads, self.symmetric_norm, self.negative_slope = heads, symmetric_norm, negative_slope
        self.node = typed_linear(in_channels, out_channels)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.source = _attention_vectors(heads, out_channels)
        self.target = _attention_vectors(heads, out_channels) if target_attention else None
        self.label_source: nn.Parameter | None = None
        self.label_target: nn.Parameter | None = None
        if self.enhanced:
            self.label = typed_linear(in_channels, out_channels)
        # within the relation a node's one label edge has attention 1 whatever its score: without label–label edges
        # nothing would ever train these vectors
        if self.enhanced and (normalize == "joint" or (label_edges and self.update_labels)):
            self.label_source = _attention_vectors(heads, out_channels)
        if self.update_labels:
            self.label_bias = nn.Parameter(torch.zeros(out_channels))
            # within one relation a label's own score is the same for all its nodes and falls out of the softmax;
            # LeakyReLU keeps it from falling out entirely, so it stays in both normalizations
            self.label_target = _attention_vectors(heads, out_channels) if target_attention else None

    def forward(self, x: Tensor, labels: Tensor | None, graph: LabelGraph) -> tuple[Tensor, Tensor | None]:
        """Shapes: `x` `[M, in]`, `labels` `[C, in]` or None; gives `[M, out]`, `[C, out]` or None."""
        from_nodes = self.node(x).unflatten(1, (self.heads, -1))
        enhanced = labels is not None and self.enhanced
        joint = enhanced and self.normalize == "joint"
        source, target = _score(from_nodes, self.source), _score(from_nodes, self.target)
        assert source is not None
        degree = graph.node_degree if joint else graph.adjacency.degree
        nodes, log_denominator = neighbor_attention(
            graph.adjacency, self._send(from_nodes, degree), source, target, self.negative_slope
        )
        if not enhanced or labels is None:
            return self._receive(nodes, degree).flatten(1) + self.bias, None

        from_labels = self.label(labels).unflatten(1, (self.heads, -1))
        label_source = _score(from_labels, self.label_source)
        label_degree = graph.label_degree if joint else graph.label_count
        message = label_gather(self._send(from_labels, label_degree), graph.y)
        if joint:
            assert label_source is not None
            score = self._edge_score(label_gather(label_source, graph.y), target, graph.shown)
            # one more edge in the softmax of the nodes that show a label
            share = torch.sigmoid(score - log_denominator[graph.shown])[..., None]
            nodes = nodes.index_add(0, graph.shown, share * (message - nodes[graph.shown]))
            nodes = self._receive(nodes, degree).flatten(1)
        else:
            # a node has one label edge: its attention is 1, its degree in the relation is 1
            nodes = self._receive(nodes, degree).index_add(0, graph.shown, message).flatten(1)
            nodes = nodes / column(graph.node_relations, nodes)
        new_labels = self._labels(from_nodes, source, from_labels, label_source, graph) if self.update_labels else None
        return nodes + self.bias, new_labels

    def _labels(
        self, from_nodes: Tensor, source: Tensor, from_labels: Tensor, label_source: Tensor | None, graph: LabelGraph
    ) -> Tensor:
        joint = self.normalize == "joint"
        target = _score(from_labels, self.label_target)
        score = self._edge_score(source[graph.shown], target, graph.y)
        # in the relation a node has degree 1, jointly its degree in A'
        sent = self._send(from_nodes, graph.node_degree)[graph.shown] if joint else from_nodes[graph.shown]
        labels, log_denominator = class_attention(sent, score, graph.y, graph.num_classes)
        degree = graph.label_degree if joint else graph.label_count
        if graph.label_adjacency is None:
            return self._receive(labels, degree).flatten(1) + self.label_bias

        if label_source is None:
            raise ValueError("the graph has label–label edges; make the layer with label_edges=True")
        among = graph.label_adjacency.to(labels.dtype)
        among_degree = graph.label_degree if joint else among.sum(1)
        along, log_among = _dense_attention(
            among, self._send(from_labels, among_degree), label_source, target, self.negative_slope
        )
        if joint:
            both = torch.stack([log_denominator, log_among])
            share = torch.softmax(both.masked_fill(both.isneginf().all(0), 0.0), 0)[..., None]
            labels = self._receive(share[0] * labels + share[1] * along, degree)
        else:
            labels = self._receive(labels, degree) + self._receive(along, among_degree)
            labels = labels / graph.label_relations.to(labels.dtype)[:, None, None]
        return labels.flatten(1) + self.label_bias

    def _edge_score(self, source: Tensor, target: Tensor | None, target_index: Tensor) -> Tensor:
        return F.leaky_relu(source if target is None else source + target[target_index], self.negative_slope)

    def _send(self, values: Tensor, degree: Tensor) -> Tensor:
        return values * _root(degree, values).reciprocal() if self.symmetric_norm else values

    def _receive(self, values: Tensor, degree: Tensor) -> Tensor:
        return values * _root(degree, values) if self.symmetric_norm else values


def _root(degree: Tensor, like: Tensor) -> Tensor:
    """`√d` `[n, 1, 1]`, 1 where nothing comes in."""
    return degree.masked_fill(degree == 0, 1.0).to(like.dtype).sqrt()[:, None, None]


def _attention_vectors(heads: int, out_channels: int) -> nn.Parameter:
    return glorot(heads, channels_per_head(out_channels, heads))


def _score(values: Tensor, vectors: Tensor | None) -> Tensor | None:
    """`a · W h` per head: `[n, heads, D]` with `[heads, D]` to `[n, heads]`."""
    return None if vectors is None else (values * vectors).sum(-1)


def _dense_attention(
    adjacency: Tensor, values: Tensor, source: Tensor, target: Tensor | None, negative_slope: float
) -> tuple[Tensor, Tensor]:
    """`neighbor_attention` for the few label–label edges, over a dense `[C, C]` adjacency."""
    score = source[None] if target is None else source[None] + target[:, None]
    score = F.leaky_relu(score, negative_slope).expand(*adjacency.shape, -1) + adjacency.log()[..., None]
    # a label with no label edge has only -inf to take the softmax of; its attention is zero, not NaN
    connected = (adjacency.sum(1) > 0)[:, None, None]
    score = score.masked_fill(~connected, 0.0)
    log_denominator = torch.logsumexp(score, 1).masked_fill(~connected[:, 0], -torch.inf)
    return torch.einsum("cdh,dhf->chf", torch.softmax(score, 1) * connected, values), log_denominator

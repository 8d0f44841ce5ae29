"""GAT over a label graph."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.graph import LabelGraph
from legnn.nn.layer import Normalize, biased, channels_per_head, glorot, inverse, scale_dtype, typed_linear
from legnn.nn.product import product
from legnn.ops import Attended, AttentionConfig, Scales, attend, label_gather
from legnn.ops.runtime.padding import pad_columns


class GAT(nn.Module):
    r"""`h_i' = Σ_j α_ij W_φ(j) h_j + b_φ(i)`, `α_ij = softmax_j LeakyReLU(s_φ(j) · W h_j + t_φ(i) · W h_i)`.

    `φ` is the type of a node, N or L: each type has its own matrix and its own attention vectors, one for a node as the
    source of a message and one as its target (the two halves of the paper's `a_φ`). AttentionConfig are concatenated.

    With `normalize="joint"` the softmax is over all that come in along `A'`; with `"relation"` one softmax is taken
    within each kind of edge, and the kinds a node really has are averaged. An edge of weight `w` counts as `w` edges.

    `target_attention=False` drops `t`; `symmetric_norm=True` sends `h_j / √d_j` and receives `√d_i Σ …`, which makes
    uniform attention equal GCN. Both are the published code's settings for ogbn-arxiv. `label_edges` says that the
    graph will have label–label edges; `bias=False` leaves out the nodes' bias, which a batch norm would take off again.
    """

    reads_by_products = True

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
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.out_channels = out_channels
        self.enhanced, self.update_labels, self.normalize = enhanced, enhanced and update_labels, normalize
        self.heads, self.symmetric_norm, self.negative_slope = heads, symmetric_norm, negative_slope
        self.node = typed_linear(in_channels, out_channels)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
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

    def forward(
        self, x: Tensor, labels: Tensor | None, graph: LabelGraph, add: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Shapes: `x` `[M, in]`, `labels` `[C, in]` or None; gives `[M, out]`, `[C, out]` or None."""
        enhanced = labels is not None and self.enhanced
        kind = self.normalize if enhanced else "vanilla"
        dtype = scale_dtype(x)
        scales = graph.cached(
            ("gat", kind, self.symmetric_norm, dtype), lambda: _scales(graph, kind, self.symmetric_norm, dtype)
        )
        sent = product(x, self._node_weight())
        add = None if add is None else add[: graph.num_nodes]
        from_labels = message = label_target = None
        if labels is not None and enhanced:
            from_labels = self.label(labels)[:, : self.out_channels].unflatten(1, (self.heads, -1))
            message = self._send(from_labels, graph.label_degree if kind == "joint" else graph.label_count).flatten(1)
            label_target = _score(from_labels, self.label_target)
        attended = attend(
            graph,
            sent,
            message if kind == "relation" else None,
            label_target,
            # jointly, the label's edge has to join what comes from the neighbors first
            None if kind == "joint" else add,
            scales,
            AttentionConfig(self.out_channels, self.heads, self.target is not None, self.negative_slope),
            classes=enhanced and self.update_labels,
        )
        nodes = attended.nodes
        if from_labels is not None and message is not None:
            label_source = _score(from_labels, self.label_source)
            if kind == "joint":
                assert label_source is not None
                nodes = self._with_label_edge(attended, sent, message, label_source, graph)
                nodes = nodes if add is None else nodes + add
        nodes = biased(nodes, self.bias)
        if attended.labels is None or from_labels is None:
            return nodes, None
        return nodes, self._labels(attended, from_labels, label_source, label_target, graph)

    def _node_weight(self) -> Tensor:
        """`W_N`, and below it `a W_N` for the attention vectors `a`: values and scores are one product."""
        weight = self.node.weight
        by_head = weight.unflatten(0, (self.heads, -1))
        rows = [weight, torch.einsum("hd,hdi->hi", self.source, by_head)]
        if self.target is not None:
            rows.append(torch.einsum("hd,hdi->hi", self.target, by_head))
        return torch.cat(rows)

    def _with_label_edge(
        self, attended: Attended, sent: Tensor, message: Tensor, label_source: Tensor, graph: LabelGraph
    ) -> Tensor:
        """The label's edge joins the softmax of the nodes that show one, through the logarithm of its denominator."""
        nodes, shown = attended.nodes, graph.shown
        score = label_gather(graph, label_source)
        if self.target is not None:
            begin = self.out_channels + self.heads
            score = score + sent[:, begin : begin + self.heads].index_select(0, shown)
        score = F.leaky_relu(score, self.negative_slope)
        log_denominator = _counted(attended.log_denominator, graph.multiplicity).index_select(0, shown).to(score.dtype)
        share = torch.sigmoid(score - log_denominator).repeat_interleave(self.out_channels // self.heads, 1)
        change = share * (label_gather(graph, message) - nodes.index_select(0, shown)[:, : self.out_channels])
        nodes = nodes.index_add(0, shown, pad_columns(change, nodes.size(1)))
        return nodes * _root(graph.node_degree, nodes) if self.symmetric_norm else nodes

    def _labels(
        self,
        attended: Attended,
        from_labels: Tensor,
        label_source: Tensor | None,
        target: Tensor | None,
        graph: LabelGraph,
    ) -> Tensor:
        assert attended.labels is not None
        assert attended.label_log_denominator is not None
        joint = self.normalize == "joint"
        labels = attended.labels.unflatten(1, (self.heads, -1))
        degree = graph.label_degree if joint else graph.label_count
        bias = self.label_bias.to(labels.dtype)
        if graph.label_adjacency is None:
            return self._receive(labels, degree).flatten(1) + bias

        if label_source is None:
            raise ValueError("the graph has label–label edges; make the layer with label_edges=True")
        among = graph.label_adjacency.to(labels.dtype)
        among_degree = graph.label_degree if joint else among.sum(1)
        along, log_among = _dense_attention(
            among, self._send(from_labels, among_degree), label_source, target, self.negative_slope
        )
        if joint:
            log_denominator = _counted(attended.label_log_denominator, graph.label_multiplicity)
            both = torch.stack([log_denominator.to(log_among.dtype), log_among])
            share = torch.softmax(both.masked_fill(both.isneginf().all(0), 0.0), 0)[..., None]
            labels = self._receive(share[0] * labels + share[1] * along, degree)
        else:
            labels = self._receive(labels, degree) + self._receive(along, among_degree)
            labels = labels / graph.label_relations.to(labels.dtype)[:, None, None]
        return labels.flatten(1) + bias

    def _send(self, values: Tensor, degree: Tensor) -> Tensor:
        return values / _root(degree, values)[..., None] if self.symmetric_norm else values

    def _receive(self, values: Tensor, degree: Tensor) -> Tensor:
        return values * _root(degree, values)[..., None] if self.symmetric_norm else values


def _scales(graph: LabelGraph, kind: str, symmetric: bool, dtype: torch.dtype) -> Scales:
    """Without `symmetric`, all there is to scale is the mean over the relations."""
    # jointly, what arrives is scaled after the label's edge has joined in; in the relation to its label a node has
    # degree 1
    if kind == "joint":
        root = inverse(graph.source_node_degree, dtype).sqrt() if symmetric else None
        return Scales(source=root, classes=root)
    root = inverse(graph.source_degree, dtype).sqrt() if symmetric else None
    receive = None if root is None else inverse(graph.degree, dtype).rsqrt()
    if kind == "vanilla":
        return Scales(source=root, target=receive)
    share = inverse(graph.node_relations, dtype)
    return Scales(source=root, target=share if receive is None else share * receive, label=share)


def _counted(log_denominator: Tensor, multiplicity: Tensor | None) -> Tensor:
    """The logarithm of a sum of which each term stands for several."""
    return log_denominator if multiplicity is None else log_denominator + multiplicity.log()[:, None]


def _root(degree: Tensor, like: Tensor) -> Tensor:
    """`√d` `[n, 1]`, 1 where nothing comes in."""
    return degree.masked_fill(degree == 0, 1.0).to(like.dtype).sqrt()[:, None]


def _attention_vectors(heads: int, out_channels: int) -> nn.Parameter:
    return glorot(heads, channels_per_head(out_channels, heads))


def _score(values: Tensor, vectors: Tensor | None) -> Tensor | None:
    """`a · W h` per head: `[n, heads, D]` with `[heads, D]` to `[n, heads]`."""
    return None if vectors is None else (values * vectors.to(values.dtype)).sum(-1)


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

"""The layers as the paper writes them, with `A'` built as a dense matrix: their specification.

Slow, and quadratic in memory. The tests compare the values and gradients of every layer with it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.graph.label_graph import LabelGraph
from legnn.nn.gat import GAT
from legnn.nn.gcn import GCN
from legnn.nn.gcnii import GCNII
from legnn.nn.layer import add_bias
from legnn.nn.normalization import Normalization
from legnn.nn.propagated import APPNP, DAGNN
from legnn.nn.published import PublishedGAT, PublishedNormalization
from legnn.nn.sage import SAGE


def dense_blocks(graph: LabelGraph, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """`A` `[M, M]`, `Y` `[M, C]` and `S` `[C, C]`, with targets as rows."""
    M, C = graph.num_nodes, graph.num_classes
    A, Y, S = (torch.zeros(shape, dtype=dtype) for shape in ((M, M), (M, C), (C, C)))
    weight = torch.ones(graph.adjacency.num_edges) if graph.adjacency.weight is None else graph.adjacency.weight
    for source, target, value in zip(*graph.adjacency.edge_index.tolist(), weight.tolist(), strict=True):
        A[target, source] += value
    Y[graph.shown, graph.y] = 1
    return A, Y, S if graph.label_adjacency is None else graph.label_adjacency.to(dtype)


def dense_layer(layer: GCN | SAGE | GAT, x: Tensor, labels: Tensor, graph: LabelGraph) -> tuple[Tensor, Tensor]:
    """`H_N'` `[M, out]` and `H_L'` `[C, out]` of a label-enhanced layer: `H' = Â' [H_N W_N; H_L W_L] + …`."""
    assert layer.label is not None
    M = graph.num_nodes
    values = torch.cat([layer.node(x), layer.label(labels)])
    target = _target_scores(layer, x, labels) if isinstance(layer, GAT) else None
    out = _over_relations(
        graph, layer.normalization, values, lambda A, degree: _propagate(layer, A, degree, values, target, M)
    )
    if isinstance(layer, SAGE):
        assert layer.label_root is not None
        return out[:M] + layer.root(x), out[M:] + layer.label_root(labels)
    return add_bias(out[:M], layer.bias), add_bias(out[M:], layer.label_bias)


def dense_gcnii(
    layer: GCNII, x: Tensor, labels: Tensor, graph: LabelGraph, initial: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """`H_N'` `[M, D]` and `H_L'` `[C, D]`: `H' = ((1 - α) Â' H + α H⁰) ((1 - β) I + β W)`."""
    assert layer.label is not None
    alpha, beta, M = layer.restart, layer.beta, graph.num_nodes
    Z = (1 - alpha) * dense_gcn(layer.normalization, torch.cat([x, labels]), graph) + alpha * torch.cat([*initial])
    W_N, W_L = layer.node.weight.T, layer.label.weight.T
    return (1 - beta) * Z[:M] + beta * Z[:M] @ W_N, (1 - beta) * Z[M:] + beta * Z[M:] @ W_L


def dense_gcn(normalization: Normalization, H: Tensor, graph: LabelGraph) -> Tensor:
    """`Â' H` `[M + C, D]` with GCN's `Â = D^{-1/2} A D^{-1/2}`."""
    return _over_relations(graph, normalization, H, lambda A, degree: _symmetric(A, degree) @ H)


def dense_appnp(model: APPNP, initial: tuple[Tensor, Tensor], graph: LabelGraph) -> Tensor:
    """Logits `[M, C]`: `Z ← (1 - α) Â' Z + α Z⁰`, `hops` times."""
    Z = Z_0 = torch.cat([*initial])
    for _ in range(model.num_stages):
        Z = (1 - model.restart) * dense_gcn(model.normalization, Z, graph) + model.restart * Z_0
    return Z[: graph.num_nodes]


def dense_dagnn(model: DAGNN, initial: tuple[Tensor, Tensor], graph: LabelGraph) -> Tensor:
    """Logits `[M, C]`: `Σ_k sigmoid(Z^k s) Z^k` of the nodes, `Z^k = Â' Z^{k-1}`, `k` up to `hops`."""
    Z, s = torch.cat([*initial]), model.gate.weight.T
    total = torch.sigmoid(Z @ s) * Z
    for _ in range(model.num_stages):
        Z = dense_gcn(model.normalization, Z, graph)
        total = total + torch.sigmoid(Z @ s) * Z
    return total[: graph.num_nodes]


def _over_relations(
    graph: LabelGraph, normalization: Normalization, values: Tensor, propagate: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """`propagate(edges, degrees of their sources)` of `A'` as a whole, or the mean of its relations, `[M + C, out]`."""
    A, Y, S = dense_blocks(graph, values.dtype)
    A, M = torch.cat([torch.cat([A, Y], 1), torch.cat([Y.T, S], 1)]), graph.num_nodes  # A'
    if normalization.kind == "joint":
        return propagate(A, A.sum(1))
    published = normalization if isinstance(normalization, PublishedNormalization) else None
    node_weight = 1.0 if published is None else published.node_weight
    is_label = torch.arange(A.size(0)) >= M
    out, total = torch.zeros_like(values), torch.zeros_like(A[0])
    for to_label, from_label in product((False, True), repeat=2):
        relation = A * (is_label == to_label)[:, None] * (is_label == from_label)
        # within a type the degree of a source is that of its incoming edges, as in PyG
        source_degree = relation.sum(1 if to_label == from_label else 0)
        weight = 1.0 if to_label or from_label else node_weight
        out = out + weight * propagate(relation, source_degree)
        total += weight * (relation.sum(1) > 0)
    if published is not None and published.absent_label == "zero":
        total[:M] = node_weight + 1
    return out / total.masked_fill(total == 0, 1.0)[:, None]


def _propagate(
    layer: GCN | SAGE | GAT, A: Tensor, source_degree: Tensor, values: Tensor, target: Tensor | None, M: int
) -> Tensor:
    """`Â values` for the edges `A` `[M + C, M + C]` of one relation, or of all."""
    degree = A.sum(1)
    if isinstance(layer, GCN):
        return _symmetric(A, source_degree) @ values
    if isinstance(layer, SAGE):  # Â = D^{-1} A
        return (_power(degree, -1.0)[:, None] * A) @ values
    # Â_ij = A_ij exp β_ij / Σ_k A_ik exp β_ik,  β_ij = LeakyReLU(s_φ(j) · W h_j + t_φ(i) · W h_i)
    values = sent = values.unflatten(1, (layer.attention.heads, -1))
    if layer.normalization.target:  # what is sent is W h_j / √d_j
        sent = values / source_degree.masked_fill(source_degree == 0, 1.0).sqrt()[:, None, None]
    is_scaled = isinstance(layer.normalization, PublishedNormalization) and layer.normalization.scaled_scores
    scored = sent if is_scaled else values
    source = _scores(scored, layer.source, layer.label_source, M)
    score = F.leaky_relu(source if target is None else source + target[:, None], layer.attention.negative_slope)
    exponent = A[..., None] * score.exp()
    total = exponent.sum(1, keepdim=True)
    attention = exponent / total.masked_fill(total == 0, 1.0)
    if layer.normalization.target:  # Â = D^{1/2} softmax(β) D^{-1/2}
        attention = attention * degree.masked_fill(degree == 0, 1.0).sqrt()[:, None, None]
    return torch.einsum("ijh,jhd->ihd", attention, sent).flatten(1)


def _target_scores(layer: GAT, x: Tensor, labels: Tensor) -> Tensor | None:
    """`t_φ · W_φ h`, or `t_φ · B_φ h` with a matrix of its own, `[M + C, heads]`."""
    if not layer.attention.use_target_score:
        return None
    assert layer.label is not None
    node, label, vectors = layer.node, layer.label, (layer.target, layer.label_target)
    if isinstance(layer, PublishedGAT):
        node = layer.node if layer.target_map is None else layer.target_map
        label = layer.label if layer.label_target_map is None else layer.label_target_map
        vectors = (layer.source, layer.label_source) if layer.is_shared else vectors
    by_head = torch.cat([node(x), label(labels)]).unflatten(1, (layer.attention.heads, -1))
    return _scores(by_head, *vectors, x.size(0))


def _scores(by_head: Tensor, node_vectors: Tensor | None, label_vectors: Tensor | None, M: int) -> Tensor:
    """`a_φ · W_φ h` `[M + C, heads]`, zero for a type without attention vectors `[heads, D]`."""
    parts = ((by_head[:M], node_vectors), (by_head[M:], label_vectors))
    return torch.cat([(part * (0 if vectors is None else vectors)).sum(-1) for part, vectors in parts])


def _symmetric(A: Tensor, source_degree: Tensor) -> Tensor:
    """`Â = D^{-1/2} A D^{-1/2}`."""
    return _power(A.sum(1), -0.5)[:, None] * A * _power(source_degree, -0.5)


def _power(degree: Tensor, exponent: float) -> Tensor:
    return degree.pow(exponent).masked_fill(degree == 0, 0.0)

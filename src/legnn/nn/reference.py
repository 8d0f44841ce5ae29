"""The layers as the paper writes them, with `A'` built as a dense matrix: the specification of GCN, SAGE and GAT.

Slow, and quadratic in memory. The tests compare the values and gradients of every layer with it.
"""

from __future__ import annotations

from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.graph import LabelGraph
from legnn.nn.gat import GAT
from legnn.nn.gcn import GCN
from legnn.nn.layer import add_bias
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
    A, Y, S = dense_blocks(graph, x.dtype)
    A, M = torch.cat([torch.cat([A, Y], 1), torch.cat([Y.T, S], 1)]), graph.num_nodes  # A'
    values = torch.cat([layer.node(x), layer.label(labels)])
    if layer.normalization.kind == "joint":
        out = _propagate(layer, A, A.sum(1), values, M)
    else:
        is_label = torch.arange(A.size(0)) >= M
        out, num_relations = torch.zeros_like(values), torch.zeros_like(A[0])
        for target, source in product((False, True), repeat=2):
            relation = A * (is_label == target)[:, None] * (is_label == source)
            # within a type the degree of a source is that of its incoming edges, as in PyG
            source_degree = relation.sum(1 if target == source else 0)
            out = out + _propagate(layer, relation, source_degree, values, M)
            num_relations += relation.sum(1) > 0
        out = out / num_relations.clamp(min=1)[:, None]
    if isinstance(layer, SAGE):
        assert layer.label_root is not None
        return out[:M] + layer.root(x), out[M:] + layer.label_root(labels)
    return add_bias(out[:M], layer.bias), add_bias(out[M:], layer.label_bias)


def _propagate(layer: GCN | SAGE | GAT, A: Tensor, source_degree: Tensor, values: Tensor, M: int) -> Tensor:
    """`Â values` for the edges `A` `[M + C, M + C]` of one relation, or of all."""
    degree = A.sum(1)
    if isinstance(layer, GCN):  # Â = D^{-1/2} A D^{-1/2}
        return (_power(degree, -0.5)[:, None] * A * _power(source_degree, -0.5)) @ values
    if isinstance(layer, SAGE):  # Â = D^{-1} A
        return (_power(degree, -1.0)[:, None] * A) @ values
    # Â_ij = A_ij exp β_ij / Σ_k A_ik exp β_ik,  β_ij = LeakyReLU(s_φ(j) · W h_j + t_φ(i) · W h_i)
    by_head = values.unflatten(1, (layer.attention.heads, -1))
    source = _scores(by_head, layer.source, layer.label_source, M)
    target = _scores(by_head, layer.target, layer.label_target, M)
    score = F.leaky_relu(source[None, :] + target[:, None], layer.attention.negative_slope)
    exponent = A[..., None] * score.exp()
    total = exponent.sum(1, keepdim=True)
    attention = exponent / total.masked_fill(total == 0, 1.0)
    if layer.normalization.target:  # Â = D^{1/2} softmax(β) D^{-1/2}
        root, source_root = (one.masked_fill(one == 0, 1.0).sqrt() for one in (degree, source_degree))
        attention = root[:, None, None] * attention / source_root[:, None]
    return torch.einsum("ijh,jhd->ihd", attention, by_head).flatten(1)


def _scores(by_head: Tensor, node_vectors: Tensor | None, label_vectors: Tensor | None, M: int) -> Tensor:
    """`a_φ · W_φ h` `[M + C, heads]`, zero for a type without attention vectors `[heads, D]`."""
    parts = ((by_head[:M], node_vectors), (by_head[M:], label_vectors))
    return torch.cat([(part * (0 if vectors is None else vectors)).sum(-1) for part, vectors in parts])


def _power(degree: Tensor, exponent: float) -> Tensor:
    return degree.pow(exponent).masked_fill(degree == 0, 0.0)

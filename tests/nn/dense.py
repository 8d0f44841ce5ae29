"""The paper's layers written out with dense matrices: `A' = [[A, Y], [Yᵀ, S]]` is really built here."""

import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.graph import LabelGraph
from legnn.nn import GAT, GCN, SAGE


def dense_blocks(graph: LabelGraph, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`A` [M, M], `Y` [M, C], `S` [C, C]."""
    A = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=like.dtype)
    weight = graph.adjacency.weight
    weight = torch.ones(graph.adjacency.num_edges) if weight is None else weight
    for source, target, value in zip(*graph.adjacency.edge_index.tolist(), weight.tolist(), strict=True):
        A[target, source] += value
    Y = torch.zeros(graph.num_nodes, graph.num_classes, dtype=like.dtype)
    for node, label in zip(graph.shown.tolist(), graph.y.tolist(), strict=True):
        Y[node, label] = 1
    S = torch.zeros(graph.num_classes, graph.num_classes, dtype=like.dtype)
    return A, Y, S if graph.label_adjacency is None else graph.label_adjacency.to(like.dtype)


def joint(A: Tensor, Y: Tensor, S: Tensor) -> Tensor:
    return torch.cat([torch.cat([A, Y], 1), torch.cat([Y.T, S], 1)])


def power(degree: Tensor, exponent: float) -> Tensor:
    return torch.where(degree > 0, degree.clamp(min=1e-300) ** exponent, torch.zeros_like(degree))


class Weights:
    """From a block of edges to the weights a backbone gives them, `[targets, sources]` (per head for GAT)."""

    def __init__(self, layer: GCN | SAGE | GAT, x: Tensor, labels: Tensor) -> None:
        self.layer = layer
        if isinstance(layer, GAT):
            heads = layer.heads

            def scores(h: Tensor, vectors: Tensor | None) -> Tensor:
                if vectors is None:
                    return torch.zeros(len(h), heads, dtype=h.dtype)
                return (h.view(len(h), heads, -1) * vectors).sum(-1)

            from_nodes, from_labels = layer.node(x), layer.label(labels)
            self.source = torch.cat([scores(from_nodes, layer.source), scores(from_labels, layer.label_source)])
            self.target = torch.cat([scores(from_nodes, layer.target), scores(from_labels, layer.label_target)])

    def __call__(self, block: Tensor, rows: slice, cols: slice) -> Tensor:
        """`rows` and `cols` say where in `A'` the block stands; the result is `[heads, targets, sources]`."""
        out_degree, in_degree = block.sum(0), block.sum(1)
        if isinstance(self.layer, GCN):
            # a square block is symmetric in its degrees: those of incoming edges, as in PyG
            source_degree = in_degree if rows == cols else out_degree
            return (power(in_degree, -0.5)[:, None] * block * power(source_degree, -0.5))[None]
        if isinstance(self.layer, SAGE):
            return (power(in_degree, -1.0)[:, None] * block)[None]
        score = F.leaky_relu(self.source[None, cols] + self.target[rows, None], self.layer.negative_slope)
        exponent = block[..., None] * score.exp()
        total = exponent.sum(1, keepdim=True)
        attention = torch.where(total > 0, exponent / total.clamp(min=1e-300), torch.zeros_like(exponent)).permute(
            2, 0, 1
        )
        if self.layer.symmetric_norm:
            source_degree = in_degree if rows == cols else out_degree
            one_or = lambda degree: torch.where(degree > 0, degree, torch.ones_like(degree))  # noqa: E731
            attention = one_or(in_degree).sqrt()[:, None] * attention * one_or(source_degree).rsqrt()
        return attention


def dense_layer(layer: GCN | SAGE | GAT, x: Tensor, labels: Tensor, graph: LabelGraph) -> tuple[Tensor, Tensor]:
    """`H_N'` and `H_L'` of an enhanced layer, by the equations alone."""
    A, Y, S = dense_blocks(graph, x)
    M, C = Y.shape
    N, L = slice(0, M), slice(M, M + C)
    heads = layer.heads if isinstance(layer, GAT) else 1
    sent = torch.cat([layer.node(x), layer.label(labels)]).view(M + C, heads, -1).transpose(0, 1)
    weights = Weights(layer, x, labels)
    if layer.normalize == "joint":
        everything = slice(0, M + C)
        total = weights(joint(A, Y, S), everything, everything) @ sent
    else:
        total = torch.zeros_like(sent)
        kinds = torch.zeros(M + C, dtype=x.dtype)
        for block, rows, cols in ((A, N, N), (Y, N, L), (Y.T, L, N), (S, L, L)):
            total[:, rows] = total[:, rows] + weights(block, rows, cols) @ sent[:, cols]
            kinds[rows] += (block.sum(1) > 0).to(x.dtype)
        total = total / kinds.clamp(min=1)[:, None]
    out = total.transpose(0, 1).reshape(M + C, -1)
    if isinstance(layer, SAGE):
        return out[N] + layer.root(x), out[L] + layer.label_root(labels)
    return out[N] + layer.bias, out[L] + layer.label_bias

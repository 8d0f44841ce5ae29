"""Base classes and functions of models that tell node types and relations apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.baselines.projected import ProjectedModel
from legnn.config.model import ModelSettings
from legnn.errors import InputError
from legnn.graph import LabelGraph
from legnn.nn import DataShape
from legnn.nn.gat import COLUMNS
from legnn.nn.layer import Linear, Nodes, channels_per_head, glorot, glorot_linear, linear
from legnn.nn.relations import RelationGraph, relation_graph
from legnn.ops import AttentionConfig, Scales, attend, drop

SLOPE = 0.2
"""Slope of LeakyReLU below zero, in all of these designs."""

Parts = Sequence[Tensor]
"""`[n_t, D]` of each node type."""


class TypedLayer(nn.Module):
    """The sizes that layers share, and their dropout."""

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__()
        self.channels, self.heads, self.dropout = settings.hidden, settings.attention.heads, settings.dropout
        self.types, self.relations = data.types, tuple(data.relations)
        # the numbers of the relations to each type
        self.into = [[k for k, (_, target) in enumerate(self.relations) if target == t] for t in range(self.types)]

    def compared(self) -> list[str]:
        """The numbers of relations that are not the only one to their target type."""
        return [str(number) for numbers in self.into if len(numbers) > 1 for number in numbers]

    def maps(self, number: int, *, bias: bool = False) -> nn.ModuleList:
        """So many matrices `[D, D]`."""
        D = self.channels
        return nn.ModuleList(Linear(D, D) if bias else glorot_linear(D, D) for _ in range(number))

    def vectors(self, number: int) -> nn.Parameter:
        """So many vectors, in parts for each head `[number, heads, D / heads]`."""
        return glorot(number, self.heads, channels_per_head(self.channels, self.heads))

    def drop(self, x: Tensor) -> Tensor:
        """`dropout(x)` in training."""
        return drop(x, self.dropout, training=self.training)


class TypedModel(ProjectedModel):
    """`H⁰ = X P + b` with a matrix `P` for each type, layers over the relations, and a linear classifier.

    A layer is called with the states of the source nodes by type, those of the target nodes by type, and the edges by
    relation; it returns the new states of the target nodes by type.
    """

    title: ClassVar[str]
    """As papers call it."""

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        if data.types < 2:
            raise InputError(
                f"{self.title} needs several node types, and this graph has one; choose another architecture, or a "
                f"graph with types"
            )
        super().__init__(settings, data)
        self.types, self.relations, self.dropout = data.types, tuple(data.relations), settings.dropout

    def run_layer(self, k: int, x: Parts, targets: Parts, edges: RelationGraph) -> Parts:
        """The states `[M_t, D]` after layer `k`, from `x` `[N_t, D]` and `targets` `[M_t, D]`."""
        return self.layers[k](x, targets, edges)

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph, initial: Nodes | None) -> Nodes:
        """`H^{k+1}` `[M, D]` from `H^k` `[N, D]`."""
        edges = relation_graph(block, self.types, self.relations)
        parts = self.run_layer(k, edges.sources.split(nodes), edges.targets.split(nodes), edges)
        return edges.targets.join(parts), None


def head_scores(values: Tensor, vectors: Tensor) -> Tensor:
    """`a · v` `[n, heads]` for `values` `[n, D]` and `vectors` `[heads, D / heads]`."""
    return (values.unflatten(1, vectors.shape) * vectors.to(values.dtype)).sum(-1)


def projected_scores(x: Tensor, module: nn.Module, vectors: Tensor) -> Tensor:
    """`a · W x` `[n, heads]` as `(a W) x`, without `W x`, for `vectors` as in `head_scores`."""
    rows = torch.einsum("hd,hdi->hi", vectors, module.get_parameter("weight").unflatten(0, vectors.shape))
    return linear(x, rows)


def weighted_sum(rows: Sequence[Tensor], scores: Tensor) -> Tensor:
    """`Σ_r softmax_r(scores_r) rows_r` in each head, for `rows` `[n, D]` and `scores` `[R, n, heads]`."""
    weight = torch.softmax(scores, 0).to(rows[0].dtype).unsqueeze(-1)
    by_head = [row.unflatten(1, (scores.size(-1), -1)) for row in rows]
    total = weight[0] * by_head[0]
    for share, row in zip(weight[1:], by_head[1:], strict=True):
        total = total + share * row
    return total.flatten(1)


def attend_relation(
    relation: LabelGraph, values: Tensor, source: Tensor, target: Tensor | None, slope: float = SLOPE
) -> tuple[Tensor, Tensor]:
    """`Σ_j α_ij v_j` with `α_ij = softmax_j LeakyReLU(source_j + target_i)` over the edges of one relation.

    Shapes: `values` `[N, D]`, `source` `[N, heads]`, `target` `[M, heads]` or None; returns `[M, D]`, zero for a node
    without neighbors, and the logarithm of the softmax's denominator `[M, heads]`, `-inf` there.
    """
    D, heads = values.size(1), source.size(1)
    columns = [values, source.to(values.dtype)]
    if target is not None:
        # `attend` reads the scores of targets from the first rows of the matrix: it must have a row for each
        rows = max(values.size(0), target.size(0))
        relation = relation.cached(
            "rows of targets", lambda: replace(relation, adjacency=replace(relation.adjacency, num_cols=rows))
        )
        columns = [F.pad(part, (0, 0, 0, rows - part.size(0))) for part in (*columns, target.to(values.dtype))]
    both = torch.cat(columns, 1)
    both = F.pad(both, (0, -both.size(1) % COLUMNS))
    config = AttentionConfig(D, heads, target is not None, slope)
    output = attend(relation, both, None, None, None, Scales(), config, update_labels=False)
    return output.nodes[:, :D], output.log_denominator


def edges_into(edges: RelationGraph, kind: int) -> list[tuple[int, int, LabelGraph]]:
    """Returns the number, the source type and the edges of every relation whose targets are of the type `kind`."""
    items = enumerate(edges.relations.items())
    return [(number, source, graph) for number, ((source, target), graph) in items if target == kind]

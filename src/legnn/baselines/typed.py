"""What models share that tell node types and relations apart."""

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
from legnn.nn.layer import Linear, Nodes, to_logits
from legnn.nn.layer import linear as matrix_product
from legnn.nn.relations import Relation, RelationGraph, relation_graph
from legnn.ops import AttentionConfig, Scales, attend

SLOPE = 0.2
"""Of LeakyReLU below zero, in all of these designs."""

Parts = Sequence[Tensor]
"""`[n_t, D]` of each node type."""


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
        self.types, self.relations = data.types, tuple(data.relations)
        self.channels, self.num_stages = settings.hidden, settings.layers
        self.layers = nn.ModuleList(self.make_layer(settings, k) for k in range(settings.layers))
        self.classifier = Linear(settings.hidden, data.classes)

    def make_layer(self, settings: ModelSettings, k: int) -> nn.Module:
        """Returns layer `k`, from 0."""
        raise NotImplementedError

    def run_layer(self, k: int, x: Parts, own: Parts, edges: RelationGraph) -> Parts:
        """The states `[M_t, D]` after layer `k`, from `x` `[N_t, D]` and `own` `[M_t, D]`."""
        return self.layers[k](x, own, edges)

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph, initial: Nodes | None) -> Nodes:
        """`H^{k+1}` `[M, D]` from `H^k` `[N, D]`."""
        edges = relation_graph(block, self.types, self.relations)
        parts = self.run_layer(k, edges.sources.split(nodes), edges.targets.split(nodes), edges)
        return edges.targets.join(parts), None

    def classify(self, nodes: Tensor) -> Tensor:
        """Logits `[n, C]`, in single precision at least."""
        return to_logits(self.classifier(nodes))


def incoming(relations: Sequence[Relation], kind: int) -> list[int]:
    """Returns the numbers of the relations whose targets are of the type `kind`."""
    return [number for number, (_, target) in enumerate(relations) if target == kind]


def linear(x: Tensor, module: nn.Module) -> Tensor:
    """`x W + b`."""
    out: Tensor = module(x)
    return out


def head_scores(values: Tensor, vectors: Tensor) -> Tensor:
    """`a · v` `[n, heads]` for `values` `[n, D]` and `vectors` `[heads, D / heads]`."""
    return (values.unflatten(1, vectors.shape) * vectors.to(values.dtype)).sum(-1)


def projected_scores(x: Tensor, module: nn.Module, vectors: Tensor) -> Tensor:
    """`a · W x` `[n, heads]` as `(a W) x`, without `W x`, for `vectors` as in `head_scores`."""
    rows = torch.einsum("hd,hdi->hi", vectors, module.get_parameter("weight").unflatten(0, vectors.shape))
    return matrix_product(x, rows)


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
        relation = relation.cached("rows of targets", lambda: _with_columns(relation, rows))
        columns = [F.pad(one, (0, 0, 0, rows - one.size(0))) for one in (*columns, target.to(values.dtype))]
    both = torch.cat(columns, 1)
    both = F.pad(both, (0, -both.size(1) % COLUMNS))
    config = AttentionConfig(D, heads, target is not None, slope)
    output = attend(relation, both, None, None, None, Scales(), config, update_labels=False)
    return output.nodes[:, :D], output.log_denominator


def _with_columns(relation: LabelGraph, columns: int) -> LabelGraph:
    return replace(relation, adjacency=replace(relation.adjacency, num_cols=columns))


def edges_into(edges: RelationGraph, kind: int) -> list[tuple[int, int, LabelGraph]]:
    """Returns the number, the source type and the edges of every relation whose targets are of the type `kind`."""
    items = enumerate(edges.relations.items())
    return [(number, source, graph) for number, ((source, target), graph) in items if target == kind]

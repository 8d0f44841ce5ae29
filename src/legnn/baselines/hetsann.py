"""HetSANN (Hong et al., 2020): one softmax over the neighbors of all types, each mapped to the type of the target."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.baselines.typed import (
    Parts,
    TypedModel,
    attend_relation,
    edges_into,
    head_scores,
    linear,
    projected_scores,
    weighted_sum,
)
from legnn.config.model import ModelSettings
from legnn.nn.layer import channels_per_head, glorot, glorot_linear
from legnn.nn.relations import Relation, RelationGraph
from legnn.ops import drop


class HetSANN(TypedModel):
    """Layers of type-aware attention; the losses of its variants R and V (cycles and voices) are left out."""

    title = "HetSANN"

    def make_layer(self, settings: ModelSettings, k: int) -> nn.Module:
        """A layer with weights of its own."""
        return HetSANNLayer(settings.hidden, settings.heads, self.types, self.relations, settings.dropout)


class HetSANNLayer(nn.Module):
    r"""For a node `i` of type `t`, in each head:

    `h_i' = elu(Σ_j α_ij W_r h_j + b_t + h_i)`, `α_ij = softmax_j LeakyReLU(a_r · W_r h_j + c_r · U_t h_i)`.

    `r` is the relation of an edge, from the type of `j` to `t`; the softmax is over all neighbors, of whatever
    relation. `U_t` maps a type to itself, and is `W_r` of the relation from `t` to `t` where there is one. Dropout is
    of what attention reads, and of `W_r h_j`.
    """

    def __init__(
        self, channels: int, heads: int, num_types: int, relations: tuple[Relation, ...], dropout: float
    ) -> None:
        super().__init__()
        width = channels_per_head(channels, heads)
        self.dropout = dropout
        self.relation = nn.ModuleList(glorot_linear(channels, channels) for _ in relations)  # W_r
        self.to_itself = {source: number for number, (source, target) in enumerate(relations) if source == target}
        others = [kind for kind in range(num_types) if kind not in self.to_itself]
        self.own = nn.ModuleDict({str(kind): glorot_linear(channels, channels) for kind in others})  # U_t
        self.source, self.target = glorot(len(relations), heads, width), glorot(len(relations), heads, width)  # a, c
        self.bias = nn.Parameter(torch.zeros(num_types, channels))  # b_t

    def forward(self, x: Parts, own: Parts, edges: RelationGraph) -> list[Tensor]:
        """Shapes: `x` `[N_t, D]` and `own` `[M_t, D]` of each type; returns `[M_t, D]` of each."""
        sent, receives = ([self._drop(part) for part in parts] for parts in (x, own))
        parts = []
        for kind, (mine, bias) in enumerate(zip(own, self.bias, strict=True)):
            out = mine + bias.to(mine.dtype)
            messages, logs = [], []
            for number, source, relation in edges_into(edges, kind):
                values = linear(sent[source], self.relation[number])
                target = projected_scores(receives[kind], self.own_map(kind), self.target[number])
                scores = head_scores(values, self.source[number])
                found, log_denominator = attend_relation(relation, self._drop(values), scores, target)
                messages.append(found)
                logs.append(log_denominator)
            if messages:
                out = out + _merge(messages, logs)
            parts.append(F.elu(out))
        return parts

    def own_map(self, kind: int) -> nn.Module:
        """`U_t` of the type `kind`."""
        return self.relation[self.to_itself[kind]] if kind in self.to_itself else self.own[str(kind)]

    def _drop(self, x: Tensor) -> Tensor:
        return drop(x, self.dropout, training=self.training)


def _merge(messages: list[Tensor], logs: list[Tensor]) -> Tensor:
    """One softmax over the edges of all relations, from those over each of them, by their denominators."""
    both = torch.stack(logs)
    # a node without any neighbors has messages of zero, whatever they weigh
    return weighted_sum(messages, both.masked_fill(both.isneginf().all(0), 0.0))

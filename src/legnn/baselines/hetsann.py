"""HetSANN (Hong et al., 2020): one softmax over the neighbors of all types, each mapped to the type of the target."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.baselines.typed import (
    Parts,
    TypedLayer,
    TypedModel,
    attend_relation,
    edges_into,
    head_scores,
    projected_scores,
    weighted_sum,
)
from legnn.config.model import ModelSettings
from legnn.nn import DataShape
from legnn.nn.layer import glorot_linear
from legnn.nn.relations import RelationGraph


class HetSANNLayer(TypedLayer):
    r"""For a node `i` of type `t`, in each head:

    `h_i' = elu(Σ_j α_ij W_r h_j + b_t + h_i)`, `α_ij = softmax_j LeakyReLU(a_r · W_r h_j + c_r · U_t h_i)`.

    `r` is the relation of an edge, from the type of `j` to `t`; the softmax is over all neighbors, of whatever
    relation. `U_t` maps a type to itself, and is `W_r` of the relation from `t` to `t` where there is one. Dropout is
    of what attention reads, and of `W_r h_j`.
    """

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.relation = self.maps(len(self.relations))  # W_r
        self.to_itself = {source: number for number, (source, target) in enumerate(self.relations) if source == target}
        others = [kind for kind in range(self.types) if kind not in self.to_itself]
        self.self_maps = nn.ModuleDict(
            {str(kind): glorot_linear(self.channels, self.channels) for kind in others}
        )  # U_t
        self.source, self.target = self.vectors(len(self.relations)), self.vectors(len(self.relations))  # a, c
        self.bias = nn.Parameter(torch.zeros(self.types, self.channels))  # b_t

    def forward(self, x: Parts, targets: Parts, edges: RelationGraph) -> list[Tensor]:
        """Shapes: `x` `[N_t, D]` and `targets` `[M_t, D]` of each type; returns `[M_t, D]` of each."""
        sent, receives = ([self.drop(part) for part in parts] for parts in (x, targets))
        parts = []
        for kind, (state, bias) in enumerate(zip(targets, self.bias, strict=True)):
            out = state + bias.to(state.dtype)
            messages, logs = [], []
            for number, source, relation in edges_into(edges, kind):
                values = self.relation[number](sent[source])
                target = projected_scores(receives[kind], self.target_map(kind), self.target[number])
                scores = head_scores(values, self.source[number])
                message, log_denominator = attend_relation(relation, self.drop(values), scores, target)
                messages.append(message)
                logs.append(log_denominator)
            if messages:
                # one softmax over the edges of all relations, from those over each of them, by their denominators;
                # a node without any neighbors has messages of zero, whatever they weigh
                both = torch.stack(logs)
                out = out + weighted_sum(messages, both.masked_fill(both.isneginf().all(0), 0.0))
            parts.append(F.elu(out))
        return parts

    def target_map(self, kind: int) -> nn.Module:
        """`U_t` of the type `kind`."""
        return self.relation[self.to_itself[kind]] if kind in self.to_itself else self.self_maps[str(kind)]


class HetSANN(TypedModel):
    """Layers of type-aware attention; the losses of its variants R and V (cycles and voices) are left out."""

    title = "HetSANN"
    layer_type = HetSANNLayer

"""HGConv (Yu et al., 2020): attention within each relation, then between the relations of a node."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.baselines.typed import (
    SLOPE,
    Parts,
    TypedModel,
    attend_relation,
    edges_into,
    head_scores,
    incoming,
    linear,
    projected_scores,
    weighted_sum,
)
from legnn.config.model import ModelSettings
from legnn.nn.layer import Linear, channels_per_head, glorot, glorot_linear
from legnn.nn.relations import Relation, RelationGraph
from legnn.ops import drop


class HGConv(TypedModel):
    """Hybrid micro/macro level convolution: `H^{k+1} = HGConvLayer(H^k)`, without activations or norms between."""

    title = "HGConv"

    def make_layer(self, settings: ModelSettings, k: int) -> nn.Module:
        """A layer with weights of its own."""
        return HGConvLayer(settings.hidden, settings.heads, self.types, self.relations, settings.dropout)


class HGConvLayer(nn.Module):
    r"""For a node `i` of type `t` and each relation `r` from a type `s` to `t`, in each head:

    `z_ir = relu(Σ_j α_ij W_s h_j)`, `α_ij = softmax_{j ∈ N_i^r} LeakyReLU(a_s · W_s h_j + c_s · W_t h_i)`;
    `u_ir = Q_r z_ir`, `β_ir = softmax_r LeakyReLU(m · C_t h_i + n · u_ir)`;
    `h_i' = σ(g_t) Σ_r β_ir u_ir + (1 - σ(g_t)) (R_t h_i + b_t)`.

    A node without neighbors in a relation has `z_ir = 0` there. Dropout is of what the attention within a relation
    reads, and of `Σ_r`.
    """

    def __init__(
        self, channels: int, heads: int, num_types: int, relations: tuple[Relation, ...], dropout: float
    ) -> None:
        super().__init__()
        width = channels_per_head(channels, heads)
        self.dropout = dropout

        def matrices(number: int) -> nn.ModuleList:
            return nn.ModuleList(glorot_linear(channels, channels) for _ in range(number))

        self.node = matrices(num_types)  # W_t
        self.source, self.target = glorot(num_types, heads, width), glorot(num_types, heads, width)  # a_s, c_s
        self.relation = matrices(len(relations))  # Q_r
        compares = [len(incoming(relations, kind)) > 1 for kind in range(num_types)]
        # of a type with one relation nothing would train its own
        self.center = nn.ModuleList(glorot_linear(channels, channels) if one else nn.Identity() for one in compares)
        self.macro = glorot(2, heads, width) if any(compares) else None  # m, n
        self.root = nn.ModuleList(Linear(channels, channels) for _ in range(num_types))  # R_t, b_t
        self.gate = nn.Parameter(torch.randn(num_types))  # g_t

    def forward(self, x: Parts, own: Parts, edges: RelationGraph) -> list[Tensor]:
        """Shapes: `x` `[N_t, D]` and `own` `[M_t, D]` of each type; returns `[M_t, D]` of each."""
        values = [linear(self._drop(part), node) for part, node in zip(x, self.node, strict=True)]
        receives = [self._drop(part) for part in own]
        parts = []
        for kind, (mine, root, gate) in enumerate(zip(own, self.root, self.gate, strict=True)):
            messages = []
            for number, source, relation in edges_into(edges, kind):
                scores = head_scores(values[source], self.source[source])
                target = projected_scores(receives[kind], self.node[kind], self.target[source])
                found, _ = attend_relation(relation, values[source], scores, target)
                messages.append(linear(F.relu(found), self.relation[number]))
            kept = linear(mine, root)
            together = self._weigh(messages, mine, kind) if messages else torch.zeros_like(kept)
            parts.append(torch.lerp(kept, together, gate.sigmoid().to(kept.dtype)))
        return parts

    def _weigh(self, messages: list[Tensor], own: Tensor, kind: int) -> Tensor:
        """`Σ_r β_ir u_ir` `[M_t, D]`; `u_ir` itself where there is one relation."""
        if len(messages) == 1:
            return messages[0]
        assert self.macro is not None
        center = projected_scores(own, self.center[kind], self.macro[0])
        scores = torch.stack([center + head_scores(one, self.macro[1]) for one in messages])
        return self._drop(weighted_sum(messages, F.leaky_relu(scores, SLOPE)))

    def _drop(self, x: Tensor) -> Tensor:
        return drop(x, self.dropout, training=self.training)

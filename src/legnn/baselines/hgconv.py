"""HGConv (Yu et al., 2020): attention within each relation, then between the relations of a node."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.baselines.typed import (
    SLOPE,
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


class HGConvLayer(TypedLayer):
    r"""For a node `i` of type `t` and each relation `r` from a type `s` to `t`, in each head:

    `z_ir = relu(Σ_j α_ij W_s h_j)`, `α_ij = softmax_{j ∈ N_i^r} LeakyReLU(a_s · W_s h_j + c_s · W_t h_i)`;
    `u_ir = Q_r z_ir`, `β_ir = softmax_r LeakyReLU(m · C_t h_i + n · u_ir)`;
    `h_i' = σ(g_t) Σ_r β_ir u_ir + (1 - σ(g_t)) (R_t h_i + b_t)`.

    A node without neighbors in a relation has `z_ir = 0` there. Dropout is of what the attention within a relation
    reads, and of `Σ_r`.
    """

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        D = self.channels
        self.node = self.maps(self.types)  # W_t
        self.source, self.target = self.vectors(self.types), self.vectors(self.types)  # a_s, c_s
        self.relation = self.maps(len(self.relations))  # Q_r
        compares = [len(numbers) > 1 for numbers in self.into]
        # of a type with one relation nothing would train its own
        self.center = nn.ModuleList(glorot_linear(D, D) if several else nn.Identity() for several in compares)  # C_t
        self.macro = self.vectors(2) if any(compares) else None  # m, n
        self.root = self.maps(self.types, bias=True)  # R_t, b_t
        self.gate = nn.Parameter(torch.randn(self.types))  # g_t

    def forward(self, x: Parts, targets: Parts, edges: RelationGraph) -> list[Tensor]:
        """Shapes: `x` `[N_t, D]` and `targets` `[M_t, D]` of each type; returns `[M_t, D]` of each."""
        values = [node(self.drop(part)) for part, node in zip(x, self.node, strict=True)]
        receives = [self.drop(part) for part in targets]
        parts = []
        for kind, (state, root, gate) in enumerate(zip(targets, self.root, self.gate, strict=True)):
            messages = []
            for number, source, relation in edges_into(edges, kind):
                scores = head_scores(values[source], self.source[source])
                target = projected_scores(receives[kind], self.node[kind], self.target[source])
                message, _ = attend_relation(relation, values[source], scores, target)
                messages.append(self.relation[number](F.relu(message)))
            residual = root(state)
            merged = self._weigh(messages, state, kind) if messages else torch.zeros_like(residual)
            parts.append(torch.lerp(residual, merged, gate.sigmoid().to(residual.dtype)))
        return parts

    def _weigh(self, messages: list[Tensor], state: Tensor, kind: int) -> Tensor:
        """`Σ_r β_ir u_ir` `[M_t, D]`; `u_ir` itself where there is one relation."""
        if len(messages) == 1:
            return messages[0]
        assert self.macro is not None
        center = projected_scores(state, self.center[kind], self.macro[0])
        scores = torch.stack([center + head_scores(message, self.macro[1]) for message in messages])
        return self.drop(weighted_sum(messages, F.leaky_relu(scores, SLOPE)))


class HGConv(TypedModel):
    """Hybrid micro/macro level convolution: `H^{k+1} = HGConvLayer(H^k)`, without activations or norms between."""

    title = "HGConv"
    layer_type = HGConvLayer

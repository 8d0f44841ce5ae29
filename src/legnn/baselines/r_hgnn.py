"""R-HGNN (Yu et al., 2021): a representation of a node for each relation, and of each relation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.baselines.typed import (
    SLOPE,
    Parts,
    TypedLayer,
    TypedModel,
    attend_relation,
    head_scores,
    projected_scores,
    weighted_sum,
)
from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.nn import DataShape
from legnn.nn.features import Features
from legnn.nn.layer import Linear, Nodes, channels_per_head, glorot, glorot_linear
from legnn.nn.relations import Relation, RelationGraph
from legnn.ops.rows import apply_norm

Slots = Sequence[tuple[Tensor, ...]]
"""`[n_t, D]` of each node type, and of each relation to it."""

RELATION_CHANNELS = 8
"""Channels of the representation of a relation, in each head."""


class RHGNNLayer(TypedLayer):
    r"""For a node `i` of type `t` and each relation `r` from a type `s` to `t`, in each head:

    `z_ir = σ(g_t) relu(Σ_j α_ij W_s h_jr') + (1 - σ(g_t)) (R_t h_ir + b_t)`, `r'` the reverse of `r`,
    `α_ij = softmax_{j ∈ N_i^r} LeakyReLU(a_r · W_s h_jr' + c_r · W_t h_ir)`, `(c_r, a_r) = e_r A_r`;
    `h_ir' = norm(Σ_q β_iq z_iq)`, `β_iq = softmax_q LeakyReLU(m_r · z_iq)` over the relations `q` to `t`;
    `e_r' = P_r e_r + p_r`.

    Dropout is of what attention reads, and of `Σ_q`.
    """

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        width, of_relation = channels_per_head(self.channels, self.heads), RELATION_CHANNELS * self.heads
        self.node = self.maps(self.types)  # W_t
        self.attention = nn.ModuleList(glorot_linear(of_relation, 2 * self.channels) for _ in self.relations)  # A_r
        self.relation = nn.ModuleList(Linear(of_relation, of_relation) for _ in self.relations)  # P_r, p_r
        self.root = self.maps(self.types, bias=True)  # R_t, b_t
        self.gate = nn.Parameter(torch.randn(self.types))  # g_t
        self.crossing = nn.ParameterDict({name: glorot(self.heads, width) for name in self.compared()})  # m_r
        self.norm = None
        if settings.norm != "none":
            self.norm = nn.ModuleList(nn.LayerNorm(self.channels) for _ in range(self.types))

    def forward(self, x: Slots, targets: Slots, edges: RelationGraph, state: Tensor) -> list[list[Tensor]]:
        """`[M_t, D]` of each type and relation, from `x` `[N_t, D]`, `targets` `[M_t, D]` and `state` `[R, …]`."""
        messages = []
        for number, ((source, target), relation) in enumerate(edges.relations.items()):
            vectors = self.attention[number](state[number][None])
            toward, away = vectors.view(2, self.heads, -1)
            back = (target, source)
            sent = x[source][self.slot(back) if back in self.relations else 0]
            values = self.node[source](self.drop(sent))
            scores = projected_scores(
                self.drop(targets[target][self.slot((source, target))]), self.node[target], toward
            )
            messages.append(attend_relation(relation, values, head_scores(values, away), scores)[0])
        return [self._cross(kind, target, messages) for kind, target in enumerate(targets)]

    def _cross(self, kind: int, targets: tuple[Tensor, ...], messages: list[Tensor]) -> list[Tensor]:
        """`h_ir'` `[M_t, D]` for each relation to the type `kind`; of a type without any, `R_t h_i + b_t`."""
        numbers, share = self.into[kind], self.gate[kind].sigmoid()
        if not numbers:
            return [self._normed(self.root[kind](targets[0]), kind)]
        rows = []
        for number, target in zip(numbers, targets, strict=False):
            root = self.root[kind](target)
            rows.append(torch.lerp(root, F.relu(messages[number]), share.to(root.dtype)))
        if len(rows) > 1:
            vectors = [self.crossing[str(number)] for number in numbers]
            scores = [torch.stack([head_scores(row, vector) for row in rows]) for vector in vectors]
            rows = [self.drop(weighted_sum(rows, F.leaky_relu(score, SLOPE))) for score in scores]
        return [self._normed(row, kind) for row in rows]

    def propagate(self, state: Tensor) -> Tensor:
        """`e_r'` `[R, …]` of each relation."""
        return torch.stack([module(row[None])[0] for row, module in zip(state, self.relation, strict=True)])

    def slot(self, relation: Relation) -> int:
        """The position of the representation for `relation` among those of its target type."""
        return self.into[relation[1]].index(self.relations.index(relation))

    def _normed(self, x: Tensor, kind: int) -> Tensor:
        return x if self.norm is None else apply_norm(cast(nn.LayerNorm, self.norm[kind]), x)


class Fusion(TypedLayer):
    r"""`h_i = Σ_r γ_ir V_r h_ir`, `γ_ir = softmax_r LeakyReLU(V_r h_ir · U_r e_r)` in each head.

    `h_i = h_ir` for a type with one relation.
    """

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        heads, width, compared = self.heads, channels_per_head(self.channels, self.heads), self.compared()
        self.node = nn.ParameterDict({name: glorot(heads, width, width) for name in compared})  # V_r
        self.relation = nn.ParameterDict({name: glorot(heads, RELATION_CHANNELS, width) for name in compared})  # U_r

    def forward(self, x: list[list[Tensor]], state: Tensor) -> list[Tensor]:
        """`[M_t, D]` of each type, from `[M_t, D]` of each type and relation, and `state` `[R, …]`."""
        return [self._fuse(numbers, rows, state) for numbers, rows in zip(self.into, x, strict=True)]

    def _fuse(self, numbers: list[int], rows: list[Tensor], state: Tensor) -> Tensor:
        if len(rows) == 1:
            return rows[0]
        mapped, scores = [], []
        for number, row in zip(numbers, rows, strict=True):
            weight, query = self.node[str(number)], state[number].unflatten(0, (self.heads, -1))
            values = torch.einsum("nhd,hde->nhe", row.unflatten(1, (self.heads, -1)), weight.to(row.dtype)).flatten(1)
            scores.append(head_scores(values, torch.einsum("hc,hcd->hd", query, self.relation[str(number)])))
            mapped.append(values)
        fused = weighted_sum(mapped, F.leaky_relu(torch.stack(scores), SLOPE))
        return self.drop(fused)


class RHGNN(TypedModel):
    """Layers as in `RHGNNLayer`, then one representation of a node from those of its relations, as in `Fusion`.

    The state of a node has `D` columns for each relation into its type, side by side; at first they are equal. What a
    type with fewer relations than another does not need is zero. Any `norm` is a layer norm for each type.
    """

    title = "R-HGNN"
    layer_type = RHGNNLayer

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.relation_state = glorot(len(self.relations), RELATION_CHANNELS * settings.attention.heads)  # e_r
        self.fusion = Fusion(settings, data)
        self.hidden, self.slots = settings.hidden, max(map(len, self.fusion.into))
        self.channels = self.slots * settings.hidden

    def encode(self, inputs: Features, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """`H⁰` `[n, slots D]`: the projected features, once for each relation."""
        return self.projected(inputs).repeat(1, self.slots), None

    def run_layer(self, k: int, x: Parts, targets: Parts, edges: RelationGraph) -> Parts:
        """The representations after layer `k`; after the last layer fused, in the first `D` columns."""
        state: Tensor = self.relation_state
        layers = cast(list[RHGNNLayer], list(self.layers))
        for earlier in layers[:k]:
            state = earlier.propagate(state)
        by_type = layers[k](*([part.split(self.hidden, 1) for part in parts] for parts in (x, targets)), edges, state)
        if k + 1 == self.num_stages:
            by_type = [[fused] for fused in self.fusion(by_type, layers[k].propagate(state))]
        return [F.pad(states := torch.cat(slots, 1), (0, self.channels - states.size(1))) for slots in by_type]

    def classify(self, nodes: Tensor) -> Tensor:
        """Logits `[n, C]` from the fused representations."""
        return super().classify(nodes[:, : self.hidden])

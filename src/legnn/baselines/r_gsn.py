"""R-GSN (Wu et al., 2021): attention within relations, and relations weighed by how like their mean they are."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.baselines.typed import Parts, TypedLayer, TypedModel, attend_relation, edges_into, head_scores
from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.nn import DataShape
from legnn.nn.features import Features
from legnn.nn.layer import Nodes, glorot
from legnn.nn.relations import RelationGraph
from legnn.ops import drop
from legnn.ops.rows import apply_norm

MOMENTUM = 0.1
"""Momentum of the running means of messages, as in a batch norm."""


class RGSNLayer(TypedLayer):
    r"""For a node `i` of type `t` and each relation `r` to `t`, with `n(v) = v / ‖v‖`:

    `m_ir = n(Σ_j α_ij W_r h_j)`, `α_ij = softmax_{j ∈ N_i^r} a_r · n(h_j)`;
    `m_i = Σ_r β_r m_ir`, `β_r = softmax_r n(m̄_r) · n(Σ_q m̄_q)`, `m̄_r` the mean of `m_ir` over the nodes of `t`;
    `h_i' = norm_t(R_t h_i + b_t + s_t ‖R_t h_i + b_t‖ n(m_i))`.

    The authors' score of an edge has another term, which depends on its target alone: the softmax cancels it. They
    take `m̄_r` over a batch. Here it is one over the batch in training, and a running mean in evaluation, so that a
    prediction does not depend on what else is predicted.
    """

    running: Tensor

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.relation = self.maps(len(self.relations))  # W_r
        self.source = glorot(len(self.relations), 1, self.channels)  # a_r
        self.root = self.maps(self.types, bias=True)  # R_t, b_t
        self.scale = nn.Parameter(torch.ones(self.types))  # s_t
        self.norm = nn.ModuleList(nn.LayerNorm(self.channels) for _ in range(self.types))
        self.register_buffer("running", torch.zeros(len(self.relations), self.channels))  # m̄_r

    def forward(self, x: Parts, targets: Parts, edges: RelationGraph) -> list[Tensor]:
        """Shapes: `x` `[N_t, D]` and `targets` `[M_t, D]` of each type; returns `[M_t, D]` of each."""
        unit = [F.normalize(part) for part in x]
        parts = []
        for kind, (state, root, norm) in enumerate(zip(targets, self.root, self.norm, strict=True)):
            messages = []
            for number, source, relation in edges_into(edges, kind):
                score = head_scores(unit[source], self.source[number])
                values = self.relation[number](x[source])
                # a slope of 1 leaves the scores as they are
                messages.append(F.normalize(attend_relation(relation, values, score, None, slope=1.0)[0]))
            out = root(state)
            if messages:
                share = self._shares(kind, messages).to(out.dtype)
                total = sum(part * row for part, row in zip(share, messages, strict=True))
                out = out + self.scale[kind].to(out.dtype) * out.norm(dim=1, keepdim=True) * F.normalize(total)
            assert isinstance(norm, nn.LayerNorm)
            parts.append(apply_norm(norm, out))
        return parts

    def _shares(self, kind: int, messages: list[Tensor]) -> Tensor:
        """`β_r` of the relations to the type `kind`."""
        numbers = self.into[kind]
        if self.training:
            dtype = torch.promote_types(messages[0].dtype, torch.float32)
            mean = torch.stack([row.sum(0, dtype=dtype) / max(row.size(0), 1) for row in messages])
            if messages[0].size(0):
                with torch.no_grad():
                    # indices are numbers of the host: no transfer
                    for number, part in zip(numbers, mean, strict=True):
                        self.running[number].lerp_(part.to(self.running.dtype), MOMENTUM)
        else:
            mean = torch.stack([self.running[number] for number in numbers])
        whole = mean.sum(0, keepdim=True)
        return torch.softmax((F.normalize(mean) * F.normalize(whole)).sum(1), 0)


class RGSN(TypedModel):
    """`H⁰ = norm(X P + b)`, then layers as in `RGSNLayer`, with ReLU and dropout between them.

    The authors' last layer gives the logits; here all layers have `D` channels, and a linear classifier follows.
    """

    title = "R-GSN"
    layer_type = RGSNLayer

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.norm = nn.LayerNorm(settings.hidden)

    def encode(self, inputs: Features, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """`H⁰` `[n, D]`."""
        return apply_norm(self.norm, self.projected(inputs)), None

    def run_layer(self, k: int, x: Parts, targets: Parts, edges: RelationGraph) -> Parts:
        """The states after layer `k`, activated."""
        parts = super().run_layer(k, x, targets, edges)
        return [drop(F.relu(part), self.dropout, training=self.training) for part in parts]

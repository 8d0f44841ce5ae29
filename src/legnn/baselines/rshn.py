"""RSHN (Zhu et al., 2019): representations of relations from the graph of relations that follow each other."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.baselines.propagation import neighbor_sum
from legnn.baselines.typed import Parts, TypedModel, edges_into
from legnn.config.model import ModelSettings
from legnn.nn import DataShape
from legnn.nn.layer import Linear, glorot_linear, unsqueeze_as
from legnn.nn.relations import Relation, RelationGraph
from legnn.ops import drop


class RSHN(TypedModel):
    r"""`h_i' = dropout(tanh(W (h_i + 1 / |N_i| Σ_j e_r(ij) ∘ h_j)))` in each layer, `e_r` as in `RelationEmbedding`.

    The mean is over the neighbors of all relations; the authors' code has a sum, in which a node with thousands of
    neighbors saturates tanh.
    """

    title = "RSHN"

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.embedding = RelationEmbedding(self.relations, settings.hidden)

    def layer_type(self, settings: ModelSettings, data: DataShape) -> nn.Module:
        """Makes `W`."""
        return glorot_linear(settings.hidden, settings.hidden)

    def run_layer(self, k: int, x: Parts, targets: Parts, edges: RelationGraph) -> Parts:
        """The states after layer `k`."""
        embedding = self.embedding().to(x[0].dtype)
        parts = []
        for kind, state in enumerate(targets):
            total, degree = torch.zeros_like(state), state.new_zeros(state.size(0), dtype=torch.float32)
            for number, source, relation in edges_into(edges, kind):
                sums = neighbor_sum(relation, x[source])
                total, degree = total + embedding[number] * sums, degree + relation.degree
            mean = total / unsqueeze_as(degree.masked_fill(degree == 0, 1.0), total)
            new = torch.tanh(self.layers[k](state + mean))
            parts.append(drop(new, self.dropout, training=self.training))
        return parts


class RelationEmbedding(nn.Module):
    r"""`E = relu(X + P X) L + l` `[R, D]`, by attention over the coarsened line graph, whose nodes are the relations.

    Two relations are joined in it if one ends at the type where the other starts, so that a walk can follow both. The
    features of a relation are one-hot, `X = I`; `P = softmax(β S)` over the relations that are joined to it and itself,
    with `S` the weights of the joints, of length 1 in a row, and 1 of a relation with itself. The authors weigh a joint
    by how often random walks pass it; here all weigh the same.
    """

    joined: Tensor

    def __init__(self, relations: tuple[Relation, ...], channels: int) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.ones(()))
        self.project = Linear(len(relations), channels)  # L, l
        joined = [[a != b and (a[1] == b[0] or b[1] == a[0]) for b in relations] for a in relations]
        self.register_buffer("joined", torch.tensor(joined), persistent=False)

    def forward(self) -> Tensor:
        """`[R, D]`."""
        identity = torch.eye(self.joined.size(0), dtype=self.beta.dtype, device=self.beta.device)
        weight = F.normalize(self.joined.to(identity.dtype)) + identity  # S
        scores = (self.beta * weight).masked_fill(weight == 0, -torch.inf)
        return self.project(F.relu(identity + torch.softmax(scores, 1)))

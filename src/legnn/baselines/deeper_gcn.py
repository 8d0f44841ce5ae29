"""DeeperGCN (Li et al., 2020): many layers with softmax aggregation and residuals before the activation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from legnn.baselines.projected import ProjectedModel
from legnn.baselines.propagation import neighbor_sum
from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph
from legnn.nn import DataShape
from legnn.nn.block import NormActDropout, make_norm
from legnn.nn.layer import Linear, Nodes, targets_of
from legnn.ops import apply_norm_act_dropout

EPSILON = 1e-7
LEAST = -80.0
"""Least exponent, beside the largest of all nodes: below it weights would be zero, and nothing divides by their sum."""


class GENLayer(nn.Module):
    r"""`MLP(h_i + Σ_j softmax_j(t m_j) m_j)` with messages `m_j = h_j + ε` of states that are not negative.

    As PyG's `GENConv`: the softmax is over the neighbors, in each channel, `t` is learned, and the MLP has two matrices
    with the norm between them. A weight depends on the neighbor and the sum alone, so that the aggregation is
    `A (e ∘ m) / A e` with `e = exp(t m)`: there is no tensor of edges times channels.
    """

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__()
        channels, self.temperature = settings.hidden, nn.Parameter(torch.ones(()))
        self.expand = Linear(channels, 2 * channels, bias=False)
        self.norm = make_norm(settings.norm, 2 * channels)
        self.contract = Linear(2 * channels, channels, bias=False)

    def forward(self, x: Tensor, graph: LabelGraph) -> Tensor:
        """Shapes: `x` `[N, D]`; returns `[M, D]`."""
        x = targets_of(x, graph) + self.aggregate(x, graph)
        return self.contract(apply_norm_act_dropout(self.expand(x), self.norm, 0.0, training=self.training))

    def aggregate(self, x: Tensor, graph: LabelGraph) -> Tensor:
        """`Σ_j softmax_j(t m_j) m_j` `[M, D]`, zero without neighbors."""
        message = x.to(torch.promote_types(x.dtype, torch.float32)) + EPSILON
        exponent = self.temperature * message
        # a factor of all weights, which the division cancels
        largest = exponent.detach().amax(0)
        weight = (exponent - largest).clamp(min=LEAST).exp()
        total, weights = (neighbor_sum(graph, rows) for rows in (weight * message, weight))
        return (total / weights.where(weights > 0, 1.0)).to(x.dtype)


class DeeperGCN(ProjectedModel):
    r"""`H⁰ = dropout(X) P + b`, `H^{k+1} = H^k + GEN_k(dropout(relu(norm_k(H^k))))`; `GEN` is a `GENLayer`.

    The logits are `dropout(relu(norm(H^K))) W + b`.
    """

    layer_type = GENLayer

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.acts = nn.ModuleList(NormActDropout(settings, settings.hidden) for _ in range(settings.layers + 1))

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph, initial: Nodes | None) -> Nodes:
        """`H^{k+1}` `[M, D]`."""
        return targets_of(nodes, block) + self.layers[k](self.acts[k](nodes), block), None

    def classify(self, nodes: Tensor) -> Tensor:
        """`dropout(relu(norm(H^K))) W + b` `[n, C]`."""
        return super().classify(self.acts[-1](nodes))

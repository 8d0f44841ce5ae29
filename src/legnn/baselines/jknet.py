"""Jumping knowledge networks (Xu et al., 2018): the outputs of all layers reach the classifier."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from legnn.baselines.propagation import GCN_NORMALIZATION, gcn_propagate
from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.nn import DataShape
from legnn.nn.base import FeatureModel
from legnn.nn.block import NormActDropout
from legnn.nn.features import Features
from legnn.nn.layer import Linear, Nodes, add_bias, glorot, glorot_linear, linear, targets_of, to_logits
from legnn.nn.message_passing import pass_linear_messages


class JKNet(FeatureModel):
    """`H^k = dropout(relu(norm(Â H^{k-1} W_k + b_k)))`, `H⁰ = dropout(X)`, a GCN whose layers are joined.

    | `jump` | logits |
    |---|---|
    | concat | `[H¹ ‖ … ‖ H^K] W + b`, computed as the sum of `H^k W^(k)` |
    | max | `max(H¹, …, H^K) W + b` |

    States are `[H^k ‖ J^k]`, where `J^k` is this sum, or maximum, over the first `k` layers.
    """

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        hidden, layers = settings.hidden, settings.layers
        self.hidden, self.num_stages = hidden, layers
        self.sums = settings.jknet.mode == "concat"
        self.channels = hidden + (data.classes if self.sums else hidden)
        self.project = glorot_linear(self.in_channels, hidden)  # W_1
        self.weights = nn.ParameterList(glorot(hidden, hidden) for _ in range(layers - 1))  # W_2, …
        # a batch norm would cancel the bias
        has_bias = settings.bias and settings.norm != "batch"
        self.bias = nn.Parameter(torch.zeros(layers, hidden)) if has_bias else None
        self.acts = nn.ModuleList(NormActDropout(settings, hidden) for _ in range(layers))
        self.classifier = Linear(layers * hidden if self.sums else hidden, data.classes)

    def encode(self, inputs: Features, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """`X W_1`, and the columns of `J`."""
        nodes = self.projected(inputs)
        joined = nodes.new_zeros(nodes.size(0), self.channels - self.hidden)
        return torch.cat([nodes, joined], 1), None

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph, initial: Nodes | None) -> Nodes:
        """`[H^{k+1} ‖ J^{k+1}]` from `[H^k ‖ J^k]`; after the last stage `J` alone."""
        h = nodes[:, : self.hidden]
        if k == 0:
            # encode has multiplied by W_1 already, before any neighbor is read
            h = gcn_propagate(block, h)
        else:
            weight = self.weights[k - 1]
            h = pass_linear_messages(block, h, weight, None, None, GCN_NORMALIZATION, update_labels=False)[0]
        h = self.acts[k](add_bias(h, None if self.bias is None else self.bias[k]))
        joined = linear(h, self.classifier.weight[:, k * self.hidden : (k + 1) * self.hidden]) if self.sums else h
        if k:
            before = targets_of(nodes, block)[:, self.hidden :]
            joined = before + joined if self.sums else torch.maximum(before, joined)
        return joined if k + 1 == self.num_stages else torch.cat([h, joined], 1), None

    def classify(self, nodes: Tensor) -> Tensor:
        """Logits `[n, C]` from `J^K`."""
        if self.sums:
            return to_logits(add_bias(nodes, self.classifier.bias))
        return to_logits(self.classifier(nodes))

"""SIGN (Frasca et al., 2020): a perceptron on features that were propagated beforehand."""

from __future__ import annotations

from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.baselines.propagation import gcn_propagate
from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.nn import DataShape
from legnn.nn.base import FeatureModel
from legnn.nn.block import make_norm
from legnn.nn.features import Features, project, to_sparse_if_faster
from legnn.nn.layer import Linear, Nodes, add_bias, linear, targets_of, to_logits
from legnn.ops import drop
from legnn.ops.rows import apply_norm


class Branch(nn.Module):
    """`dropout(prelu(norm(dropout(x) Θ + b)))`."""

    def __init__(self, in_channels: int, settings: ModelSettings) -> None:
        super().__init__()
        self.input_dropout, self.dropout = settings.input_dropout, settings.dropout
        self.linear = Linear(in_channels, settings.hidden)
        self.norm = make_norm(settings.norm, settings.hidden)
        self.slope = nn.Parameter(torch.tensor(0.25))

    def forward(self, x: Features) -> Tensor:
        """Shapes: `x` `[n, F]`; returns `[n, D]`."""
        h = project(x, self.linear, self.input_dropout, training=self.training)
        h = h if self.norm is None else apply_norm(self.norm, h)
        return drop(F.prelu(h, self.slope.to(h.dtype)), self.dropout, training=self.training)


class SIGN(FeatureModel):
    """`Z = [B_0(X) ‖ B_1(Â X) ‖ … ‖ B_K(Â^K X)]`, and `Z Ω + b` are the logits; `B_k` is a `Branch`.

    Computed as the sum of `B_k(Â^k X) Ω_k`: states are `[Â^k X ‖ the sum below k]`. In the full batch `Â^k X` is
    computed once for each `inputs`, which are recognized by identity, so that their contents must not change.
    """

    takes_sparse = False
    # each of them has a first matrix
    decayed = ("branches",)

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.num_stages, self.hidden, self.channels = (
            settings.appnp.hops,
            settings.hidden,
            self.in_channels + data.classes,
        )
        self.branches = nn.ModuleList(Branch(self.in_channels, settings) for _ in range(settings.appnp.hops + 1))
        self.classifier = Linear((settings.appnp.hops + 1) * settings.hidden, data.classes)  # Ω

    def forward(self, inputs: Tensor, graph: LabelGraph | SampledLabelGraph) -> Tensor:
        """Logits `[M, C]`; over a whole graph from hops that are computed once."""
        if isinstance(graph, SampledLabelGraph):
            return super().forward(inputs, graph)
        return self._logits(reduce(torch.add, (self._branch(k, x) for k, x in enumerate(self._hops(inputs, graph)))))

    def encode(self, inputs: Tensor, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """`X`, and the columns of the sum."""
        total = inputs.new_zeros(inputs.size(0), self.num_classes)
        return torch.cat([inputs, total], 1), None

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph, initial: Nodes | None) -> Nodes:
        """`[Â^{k+1} X ‖ the sum up to k]` from `[Â^k X ‖ the sum below k]`."""
        target_x, total = self._split(targets_of(nodes, block))
        # no parameter is in it: a gradient would travel along the edges for nothing
        x = self._split(nodes.detach())[0]
        return torch.cat([gcn_propagate(block, x), total + self._branch(k, target_x.detach())], 1), None

    def classify(self, nodes: Tensor) -> Tensor:
        """Logits `[n, C]`."""
        x, total = self._split(nodes)
        return self._logits(total + self._branch(self.num_stages, x.detach()))

    def _split(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        return nodes[:, : self.in_channels], nodes[:, self.in_channels :]

    def _branch(self, k: int, x: Features) -> Tensor:
        """`B_k(x) Ω_k` `[n, C]`."""
        part = self.classifier.weight[:, k * self.hidden : (k + 1) * self.hidden]
        return linear(self.branches[k](x), part)

    def _logits(self, total: Tensor) -> Tensor:
        return to_logits(add_bias(total, self.classifier.bias))

    @torch.inference_mode(False)
    @torch.no_grad()
    def _hops(self, inputs: Tensor, graph: LabelGraph) -> list[Features]:
        """`Â^k X` for `k` from 0 to `K`, each sparse where that is faster."""
        key = inputs, self.num_stages
        last: dict[tuple[Tensor, int], list[Features]] = graph.adjacency.cached("hops of the last inputs", dict)
        if key not in last:
            x, hops = inputs, [self._compact(inputs)]
            for _ in range(self.num_stages):
                x = gcn_propagate(graph, x)
                hops.append(self._compact(x))
            # those of earlier inputs would take memory for nothing
            last.clear()
            last[key] = hops
        return last[key]

    def _compact(self, x: Tensor) -> Features:
        # entries of sparse features are kept in single precision
        return to_sparse_if_faster(x.to(torch.promote_types(x.dtype, torch.float32)), x.dtype)

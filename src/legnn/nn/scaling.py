"""Scaling of features by statistics that are kept with the weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

ENTRIES = 1 << 24
"""Entries of the features in one chunk when statistics are computed."""


class FeatureScale(nn.Module):
    """Scales features by statistics that are saved with the weights: a graph that has grown is scaled as the first was.

    With several node types, each has statistics of its own, a row of `mean` and `deviation` `[T, F]`.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, kind: str, in_channels: int, num_types: int = 1) -> None:
        super().__init__()
        self.kind = kind
        types = [] if num_types == 1 else [num_types]
        if kind == "standard":
            self.register_buffer("mean", torch.zeros(*types, in_channels))
            self.register_buffer("deviation", torch.ones(*types, in_channels))
        elif kind == "entries":
            self.register_buffer("deviation", torch.ones(types))

    @torch.no_grad()
    def fit(self, x: Tensor, node_type: Tensor | None = None) -> None:
        """Computes the statistics of `x` `[M, F]`, separately for each of `node_type` `[M]`."""
        kinds = [...] if node_type is None else node_type.unique().tolist()
        for kind in kinds:
            part = x if node_type is None else x[node_type == kind]
            if self.kind == "entries":
                # chunk by chunk: x in double precision may not fit into memory
                chunks = part.split(max(ENTRIES // max(part.size(1), 1), 1))
                total = sum(float(chunk.double().square().sum()) for chunk in chunks)
                self.deviation[kind] = math.sqrt(total / max(int(torch.count_nonzero(part)), 1)) or 1.0
            elif self.kind == "standard":
                self.mean[kind] = mean = part.mean(0)
                deviation = part.std(0, correction=0)
                self.deviation[kind] = deviation.masked_fill(deviation < 1e-6 * (1 + mean.abs()), 1.0)

    def forward(self, x: Tensor, node_type: Tensor | None = None) -> Tensor:
        """`[n, F]` to `[n, F]`; `node_type` `[n]` where there are several types."""
        if self.kind == "row":
            return x / x.abs().sum(1, keepdim=True).clamp(min=1e-12)
        if self.kind == "standard":
            mean, deviation = (v if node_type is None else v[node_type] for v in (self.mean, self.deviation))
            return (x - mean) / deviation
        if self.kind == "entries":
            return x / (self.deviation if node_type is None else self.deviation[node_type][:, None])
        return x

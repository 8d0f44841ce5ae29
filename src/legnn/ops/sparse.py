"""The neighbor sum as PyTorch's own sparse product: no tensor per edge, and the backward pass is one too."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from legnn.graph.adjacency import Adjacency


class _NeighborSum(torch.autograd.Function):
    # PyTorch would differentiate its own sparse product by transposing the matrix in every backward pass;
    # the adjacency has its transpose at hand
    @staticmethod
    def forward(ctx: Any, x: Tensor, adjacency: Adjacency) -> Tensor:
        ctx.adjacency = adjacency
        return adjacency.csr @ x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.adjacency.transpose.csr @ gradients[0], None


def neighbor_sum(adjacency: Adjacency, x: Tensor) -> Tensor:
    """`A x`, equal to `reference.neighbor_sum`."""
    out: Tensor = _NeighborSum.apply(x, adjacency)
    return out

"""Sums over rows as PyTorch's own sparse product: no tensor per entry, and the backward pass is one too."""

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


class _ProjectEntries(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: Adjacency, values: Tensor, order: Tensor) -> Tensor:
        ctx.rows, ctx.values, ctx.order = rows, values, order
        return rows.csr_with(values) @ weight.T

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        turned = ctx.rows.transpose.csr_with(ctx.values[ctx.order])
        return (turned @ gradients[0]).T, None, None, None


def project_entries(rows: Adjacency, values: Tensor, order: Tensor, weight: Tensor) -> Tensor:
    """`X P`, equal to `reference.project_entries`."""
    out: Tensor = _ProjectEntries.apply(weight, rows, values, order)
    return out

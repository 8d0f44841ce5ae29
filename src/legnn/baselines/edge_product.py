"""The product with a sparse matrix whose entries are trained."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from legnn.graph import Adjacency, LabelGraph
from legnn.ops import Scales, propagate_messages

CHUNK = 2**26
"""Most entries of the two matrices of rows that a gradient of the edges takes at once."""


def edge_product(adjacency: Adjacency, weight: Tensor, x: Tensor) -> Tensor:
    """`out_i = Σ_e w_e x_j` over the edges `e = (i, j)`, differentiable in `weight` `[edges]` and `x` `[cols, D]`.

    No tensor of features per edge is kept: the gradient of an edge, `g_i · x_j`, is computed in chunks of edges.
    """
    return _EdgeProduct.apply(adjacency, weight, x)


class _EdgeProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, adjacency: Adjacency, weight: Tensor, x: Tensor) -> Tensor:
        ctx.adjacency = adjacency
        ctx.save_for_backward(weight, x)
        return _sum(adjacency.with_weight(weight), x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        weight, x = ctx.saved_tensors
        adjacency, gradient = ctx.adjacency, gradients[0].contiguous()
        d_weight = d_x = None
        if ctx.needs_input_grad[1]:
            # of two rows, the products are summed in the precision of the weights
            edges = max(CHUNK // max(x.size(1), 1), 1)
            parts = zip(adjacency.row.split(edges), adjacency.col.split(edges), strict=True)
            products = (gradient.index_select(0, row).to(weight.dtype) * x.index_select(0, col) for row, col in parts)
            d_weight = torch.cat([product.sum(1) for product in products]).to(weight.dtype)
        if ctx.needs_input_grad[2]:
            d_x = _sum(adjacency.with_weight_both_ways(weight).transpose, gradient)
        return None, d_weight, d_x


def _sum(adjacency: Adjacency, x: Tensor) -> Tensor:
    """`A x`."""
    graph = LabelGraph.without_labels(adjacency, 1)
    return propagate_messages(graph, x, None, None, Scales(), update_labels=False)[0]

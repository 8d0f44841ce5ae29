"""The matrix products of the layers, with padding and precision."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from legnn.ops.runtime.padding import padded_width


def product(x: Tensor, weight: Tensor, add: Tensor | None = None) -> Tensor:
    """`x Wᵀ`, or `add + x Wᵀ`, in the precision of `x`, with `padded_width(out)` columns.

    Shapes: `x` `[n, in]` or wider, `weight` `[out, in]`, `add` as the result.
    """
    return _Product.apply(x, weight, add)[0]


def product_and_pass(
    x: Tensor, weight: Tensor, add: Tensor | None = None, *, rows: int | None = None
) -> tuple[Tensor, Tensor]:
    """`x Wᵀ`, or `add + x Wᵀ`, of the first `rows` of `x` (or all), and all of `x` again for one more product.

    The product that computes the gradient of this one accumulates into the gradient of that product, which saves two
    passes over `[n, in]`. The gradient is changed in place: the returned `x` must have no other reader.
    """
    if add is x:
        # x + x Wᵀ = x (1 + W)ᵀ: nothing to add to [n, out]
        weight, add = weight + torch.eye(weight.size(0), dtype=weight.dtype, device=weight.device), None
    return _Product.apply(x, weight, add, rows)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, add: Tensor | None, rows: int | None = None
    ) -> tuple[Tensor, Tensor]:
        ctx.shape, ctx.dtype, ctx.rows = weight.shape, weight.dtype, x.size(0)
        wide = padded_width(weight.size(0), x), x.size(1)
        if weight.dtype != x.dtype or weight.shape != wide:
            padded = x.new_zeros(wide)
            padded[: weight.size(0), : weight.size(1)] = weight
            weight = padded
        factor = x if rows is None else x[:rows]
        ctx.save_for_backward(factor, weight)
        ctx.set_materialize_grads(False)
        return factor @ weight.T if add is None else torch.addmm(add, factor, weight.T), x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        out, passed = gradients
        if out is None:
            return passed, None, None, None
        d_x = d_weight = None
        if ctx.needs_input_grad[0]:
            if passed is None and x.size(0) == ctx.rows:
                d_x = out @ weight
            else:
                d_x = x.new_zeros(ctx.rows, x.size(1)) if passed is None else passed
                d_x[: x.size(0)].addmm_(out, weight)
        if ctx.needs_input_grad[1]:
            d_weight = (out.T @ x)[: ctx.shape[0], : ctx.shape[1]].to(ctx.dtype)
        return d_x, d_weight, out if ctx.needs_input_grad[2] else None, None

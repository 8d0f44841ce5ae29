"""The matrix product of every layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from legnn.ops.layout import lanes


def product(x: Tensor, weight: Tensor, add: Tensor | None = None) -> Tensor:
    """`x Wᵀ`, or `add + x Wᵀ`, in the precision of `x` and as wide as `lanes` says.

    Shapes: `x` `[n, in]` or wider, `weight` `[out, in]`, `add` as the result.
    """
    out: Tensor = _Product.apply(x, weight, add)[0]
    return out


def product_and_pass(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """`x Wᵀ`, and `x` again for one more product.

    The gradient of that product is added to within the product that gives the gradient of this one, which saves two
    passes over `[n, in]`. It is overwritten: whoever else reads `x` must not read it from here.
    """
    out, passed = _Product.apply(x, weight, None)
    return out, passed


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, add: Tensor | None) -> tuple[Tensor, Tensor]:
        ctx.shape, ctx.kind = weight.shape, weight.dtype
        wide = lanes(weight.size(0), x), x.size(1)
        if weight.dtype != x.dtype or weight.shape != wide:
            filled = x.new_zeros(wide)
            filled[: weight.size(0), : weight.size(1)] = weight
            weight = filled
        ctx.save_for_backward(x, weight)
        ctx.set_materialize_grads(False)
        return x @ weight.T if add is None else torch.addmm(add, x, weight.T), x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        out, passed = gradients
        if out is None:
            return passed, None, None
        d_x = d_weight = None
        if ctx.needs_input_grad[0]:
            d_x = out @ weight if passed is None else passed.addmm_(out, weight)
        if ctx.needs_input_grad[1]:
            d_weight = (out.T @ x)[: ctx.shape[0], : ctx.shape[1]].to(ctx.kind)
        return d_x, d_weight, out if ctx.needs_input_grad[2] else None

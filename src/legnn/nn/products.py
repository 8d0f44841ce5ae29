"""The matrix products of the layers, with padding and precision."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from legnn.ops.product import multiply, takes_few_rows
from legnn.ops.product import weight_gradient as few_rows_gradient
from legnn.ops.runtime.gradients import apply_function
from legnn.ops.runtime.padding import padded_width

PARTS, MANY_ROWS = 64, 512
"""In TF32 a GPU sums over very many rows faster in parts: 64 of them, if each has so many rows."""


class ProjectedNodes(NamedTuple):
    """`H = X Pᵀ` `[M, D]`, which is not computed: `H Wᵀ = X (W P)ᵀ`.

    With fewer features than channels that is less work, forward and backward. Only products read it.
    """

    x: Tensor
    """`X` `[M, F]`."""
    weight: Tensor
    """`P` `[D, F]`."""

    def size(self, axis: int) -> int:
        """`M` or `D`."""
        return self.x.size(0) if axis == 0 else self.weight.size(0)

    def multiply(self, weight: Tensor, add: Tensor | None) -> Tensor:
        """`H Wᵀ`, or `add + H Wᵀ`, `[M, out]`."""
        dtype = self.x.dtype
        return product(self.x, weight.to(dtype) @ self.weight.to(dtype), add)


def product(x: Tensor | ProjectedNodes, weight: Tensor, add: Tensor | None = None) -> Tensor:
    """`x Wᵀ`, or `add + x Wᵀ`, in the precision of `x`, with `padded_width(out)` columns.

    Shapes: `x` `[n, in]` or wider, `weight` `[out, in]`, `add` as the result.
    """
    if isinstance(x, ProjectedNodes):
        return x.multiply(weight, add)
    return apply_function(_Product, x, weight, add)[0]


def product_and_pass(
    x: Tensor, weight: Tensor, add: Tensor | None = None, *, rows: int | None = None
) -> tuple[Tensor, Tensor]:
    """`x Wᵀ`, or `add + x Wᵀ`, of the first `rows` of `x` (or all), and all of `x` again for one more product.

    The product that computes the gradient of this one accumulates into the gradient of that product, which saves two
    passes over `[n, in]`. The gradient is changed in place: the returned `x` must have no other reader.
    """
    if isinstance(x, ProjectedNodes):
        return x.multiply(weight, add), x
    if add is x:
        # x + x Wᵀ = x (1 + W)ᵀ: nothing to add to [n, out]
        weight, add = weight + torch.eye(weight.size(0), dtype=weight.dtype, device=weight.device), None
    return apply_function(_Product, x, weight, add, rows)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, add: Tensor | None, rows: int | None = None
    ) -> tuple[Tensor, Tensor]:
        ctx.shape, ctx.dtype, ctx.rows = weight.shape, weight.dtype, x.size(0)
        ctx.set_materialize_grads(False)
        wide = padded_width(weight.size(0), x), x.size(1)
        ctx.few_rows = add is None and rows is None and takes_few_rows(x)
        if ctx.few_rows:
            ctx.save_for_backward(x, weight)
            # the gradient reads it on this stream, and another that made it must not use its memory before that
            x.record_stream(torch.cuda.current_stream(x.device))
            return multiply(x, weight.T, x, wide[0]), x.view_as(x)
        if weight.shape != wide:
            padded = x.new_zeros(wide)
            padded[: weight.size(0), : weight.size(1)] = weight
            weight = padded
        # a no-op for what was padded
        weight = weight.to(x.dtype)
        factor = x if rows is None else x[:rows]
        ctx.save_for_backward(factor, weight)
        out = factor @ weight.T if add is None else torch.addmm(add, factor, weight.T)
        return out, x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        out, passed = gradients
        if out is None:
            return passed, None, None, None
        d_x = d_weight = None
        d_add = out if ctx.needs_input_grad[2] else None
        if ctx.few_rows:
            if ctx.needs_input_grad[0]:
                d_x = multiply(out, weight, x, x.size(1))
                d_x = d_x if passed is None else d_x + passed
            if ctx.needs_input_grad[1]:
                d_weight = few_rows_gradient(out, x, weight)
            return d_x, d_weight, None, None
        if ctx.needs_input_grad[0]:
            if x.is_cuda and x.dtype == torch.float32:
                # in TF32 the GPU reads both matrices along the rows that are summed over: else it takes twice as long
                weight = weight.T.contiguous().T
            if passed is None and x.size(0) == ctx.rows:
                d_x = out @ weight
            else:
                d_x = x.new_zeros(ctx.rows, x.size(1)) if passed is None else passed
                d_x[: x.size(0)].addmm_(out, weight)
        if ctx.needs_input_grad[1]:
            d_weight = weight_gradient(out, x)[: ctx.shape[0], : ctx.shape[1]].to(ctx.dtype)
        return d_x, d_weight, d_add, None


def sums_in_parts(x: Tensor) -> bool:
    """Whether a sum over the rows of `x` is computed in parts."""
    return x.is_cuda and x.dtype == torch.float32 and x.size(0) // PARTS >= MANY_ROWS


def weight_gradient(out: Tensor, x: Tensor) -> Tensor:
    """`outᵀ x` `[out, in]`, a sum over all rows."""
    if not sums_in_parts(x):
        return out.T @ x
    length = x.size(0) // PARTS
    split = PARTS * length
    parts = [one[:split].reshape(PARTS, length, -1) for one in (out, x)]
    total = torch.bmm(parts[0].transpose(1, 2), parts[1]).sum(0)
    return total if split == x.size(0) else total.addmm_(out[split:].T, x[split:])

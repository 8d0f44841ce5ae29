"""The matrix products of the layers, with padding and precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from legnn.ops import add_labels_
from legnn.ops.product import multiply, takes_few_rows, weight_gradient
from legnn.ops.runtime.bf16 import is_rounded
from legnn.ops.runtime.gradients import apply_function
from legnn.ops.runtime.padding import padded_width

if TYPE_CHECKING:
    from legnn.ops.csr.label_edges import LabelEdges

PARTS, MANY_ROWS = 64, 512
"""In TF32 a GPU sums over very many rows faster in parts: 64 of them, if each has so many rows."""


class ProjectedNodes(NamedTuple):
    """`H = X Pᵀ + Y L` `[M, D]`, which is not computed: `H Wᵀ = X (W P)ᵀ + Y (L Wᵀ)`.

    With fewer features than channels that is less work, forward and backward. Only products read it.
    """

    x: Tensor
    """`X` `[M, F]`."""
    weight: Tensor
    """`P` `[D, F]`."""
    labels: Tensor | None = None
    """`L` `[C, D]`."""
    edges: LabelEdges | None = None
    """`Y`."""

    def size(self, axis: int) -> int:
        """`M` or `D`."""
        return self.x.size(0) if axis == 0 else self.weight.size(0)

    def multiply(self, weight: Tensor, add: Tensor | None) -> Tensor:
        """`H Wᵀ`, or `add + H Wᵀ`, `[M, out]`."""
        out = product(self.x, weight @ self.weight, add)
        if self.labels is None or self.edges is None:
            return out
        return add_labels_(self.edges, out, product(self.labels, weight))


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
        if is_rounded(factor, weight.size(0)):
            factor, weight = factor.bfloat16(), weight.bfloat16()
        ctx.save_for_backward(factor, weight)
        if add is not None and add.dtype == factor.dtype:
            return torch.addmm(add, factor, weight.T), x.view_as(x)
        out = (factor @ weight.T).to(x.dtype)
        return out if add is None else out.add_(add), x.view_as(x)

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
                d_weight = weight_gradient(out, x, weight)
            return d_x, d_weight, None, None
        dtype, out = out.dtype, out.to(x.dtype)
        if ctx.needs_input_grad[0]:
            if x.is_cuda and x.dtype == torch.float32:
                # in TF32 the GPU reads both matrices along the rows that are summed over: else it takes twice as long
                weight = weight.T.contiguous().T
            if passed is None and x.size(0) == ctx.rows:
                d_x = (out @ weight).to(dtype)
            else:
                d_x = x.new_zeros(ctx.rows, x.size(1), dtype=dtype) if passed is None else passed
                rows = d_x[: x.size(0)]
                if rows.dtype == x.dtype:
                    rows.addmm_(out, weight)
                else:
                    # rounded factors: PyTorch adds no product of bf16 to float32
                    rows.add_(out @ weight)
        if ctx.needs_input_grad[1]:
            d_weight = _weight_gradient(out, x)[: ctx.shape[0], : ctx.shape[1]].to(ctx.dtype)
        return d_x, d_weight, d_add, None


def _weight_gradient(out: Tensor, x: Tensor) -> Tensor:
    """`outᵀ x` `[out, in]`, a sum over all rows."""
    length = x.size(0) // PARTS
    if not x.is_cuda or x.dtype != torch.float32 or length < MANY_ROWS:
        return out.T @ x
    split = PARTS * length
    parts = [one[:split].reshape(PARTS, length, -1) for one in (out, x)]
    total = torch.bmm(parts[0].transpose(1, 2), parts[1]).sum(0)
    return total if split == x.size(0) else total.addmm_(out[split:].T, x[split:])

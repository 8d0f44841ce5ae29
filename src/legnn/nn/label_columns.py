"""Labels as columns beside the features: the product that projects both, `[dropout(X) ‖ Y] [P ‖ L]ᵀ`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from legnn.nn.products import sums_in_parts, weight_gradient
from legnn.ops import class_sum
from legnn.ops.runtime.streams import run_beside

if TYPE_CHECKING:
    from legnn.ops.csr.label_edges import LabelEdges


def project_columns(
    columns: Tensor, factor: Tensor, weight: Tensor, labels: Tensor, edges: LabelEdges, features: int
) -> Tensor:
    """`columns factorᵀ` `[n, D]` with padding columns, and the gradients of the parts of `factor`.

    Args:
        columns: `[n, features + C]` with padding columns, `dropout(X) ‖ Y`, which has no gradient.
        factor: `ops.augment.augmented_weight` of the next two.
        weight: `P` `[D, F]`.
        labels: `Lᵀ` `[C, D]`.
        edges: `Y`.
        features: columns of `X`, `F` or more.
    """
    return _ProjectColumns.apply(weight, labels, columns, factor.detach(), edges, features)


class _ProjectColumns(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, labels: Tensor, columns: Tensor, factor: Tensor, edges: LabelEdges, features: int
    ) -> Tensor:
        ctx.save_for_backward(columns)
        ctx.of_weight, ctx.of_labels = (weight.shape, weight.dtype), (labels.shape, labels.dtype)
        ctx.rest = edges, features
        return columns @ factor.T

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (columns,), (edges, features), out = ctx.saved_tensors, ctx.rest, gradients[0]
        (shape, dtype), (labels_shape, labels_dtype) = ctx.of_weight, ctx.of_labels
        if sums_in_parts(columns):
            # a tile of this product has 128 columns: labels beside 128 features would be another one, mostly empty
            d_weight, d_labels = run_beside(
                out, lambda: weight_gradient(out, columns[:, :features]), lambda: class_sum(edges, out)
            )
        else:
            both = weight_gradient(out, columns)
            d_weight, d_labels = both, both[:, features : features + labels_shape[0]].T
        d_weight, d_labels = d_weight[: shape[0], : shape[1]], d_labels[:, : labels_shape[1]]
        return _contiguous(d_weight, dtype), _contiguous(d_labels, labels_dtype), *[None] * 4


def _contiguous(x: Tensor, dtype: torch.dtype) -> Tensor:
    """A copy in rows without gaps, in one launch; PyTorch would copy another gradient of a parameter once more."""
    return torch.empty(x.shape, dtype=dtype, device=x.device).copy_(x)

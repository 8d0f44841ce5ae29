"""Labels as columns beside the features, so that one product projects both: `[dropout(X) ‖ Y] [P ‖ L]ᵀ`.

A product by cuBLAS takes no rows of labels along. Added to its output they are a pass of their own, and so is their
gradient; as columns they are a small part of what it reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from legnn.ops import select
from legnn.ops.norm_act_dropout import draw_seed
from legnn.ops.runtime.padding import padded_width

if TYPE_CHECKING:
    from legnn.ops.csr.label_edges import LabelEdges

ALIGNED = 64
"""Columns that rows are a multiple of in memory, 128 bytes in bf16."""


def takes_columns(x: Tensor, dropout: float) -> bool:
    """Whether labels should be columns beside `dropout(x)` in training: on a GPU, where that is a copy of `x`."""
    # a gradient of the features would be one of the columns, too
    return dropout > 0 and x.is_cuda and not x.requires_grad and select.kernels_for(x) is select.TRITON


def augmented_width(x: Tensor, num_classes: int) -> int:
    """The columns of `augment`: `F + C`, with padding."""
    return x.size(1) + padded_width(num_classes, x)


def augment(x: Tensor, edges: LabelEdges, dropout: float) -> Tensor:
    """`dropout(X) ‖ Y` `[n, F + C]` with padding columns, which are zero, in one pass over `x` `[n, F]`."""
    from legnn.ops.augment.triton_kernels import write_augmented

    columns = augmented_width(x, edges.num_classes)
    # rows that begin where lines of the cache do are written faster
    out = x.new_empty(x.size(0), ALIGNED * -(-columns // ALIGNED))[:, :columns]
    write_augmented(x.contiguous(), edges.label_of, dropout, draw_seed(x), out)
    return out


def augmented_weight(weight: Tensor, labels: Tensor, x: Tensor) -> Tensor:
    """`P ‖ L` `[D, F + C]` in the precision of `x` `[n, F]`, with zeros where `augment` has padding, and padding rows.

    Shapes: `weight` `P` `[D, F]` or narrower, `labels` `Lᵀ` `[C, D]`.
    """
    out = x.new_zeros(padded_width(weight.size(0), x), augmented_width(x, labels.size(0)))
    out[: weight.size(0), : weight.size(1)] = weight
    out[: weight.size(0), x.size(1) : x.size(1) + labels.size(0)] = labels.T
    return out

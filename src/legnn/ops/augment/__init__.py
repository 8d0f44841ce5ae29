"""Labels as columns beside the features, so that one product projects both: `[dropout(X) ‖ Y] [P ‖ L]ᵀ`.

A product by cuBLAS takes no rows of labels along. Added to its output they are a pass of their own, and so is their
gradient; as columns they are a small part of what it reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from legnn.ops import select
from legnn.ops.norm_act_dropout import draw_seed
from legnn.ops.runtime.padding import padded_width

if TYPE_CHECKING:
    from legnn.ops.csr.label_edges import LabelEdges


def takes_columns(x: Tensor, dropout: float) -> bool:
    """Whether labels should be columns beside `dropout(x)` in training: on a GPU, where that is a copy of `x`."""
    # a gradient of the features would be one of the columns, too
    return dropout > 0 and x.is_cuda and not x.requires_grad and select.kernels_for(x) is select.TRITON


def augmented_like(x: Tensor, num_classes: int) -> Tensor:
    """A matrix for `dropout(X) ‖ Y` `[n, F + C]`, with padding columns, not yet written."""
    return x.new_empty(x.size(0), x.size(1) + padded_width(num_classes, x))


def write_features(out: Tensor, x: Tensor, dropout: float) -> None:
    """Writes `dropout(x)` `[n, F]` into the first columns of `out`."""
    from legnn.ops.norm_act_dropout.triton_kernels import scale_act_dropout

    scale_act_dropout(x.contiguous(), None, None, dropout, draw_seed(x), relu=False, out=out)


def write_labels(out: Tensor, edges: LabelEdges, features: int) -> None:
    """Writes `Y` `[n, C]`, and zeros into the padding, into the columns of `out` from `features` on."""
    from legnn.ops.augment.triton_kernels import write_one_hot

    write_one_hot(edges.label_of, out, features)


def augmented_weight(weight: Tensor, labels: Tensor, features: int) -> Tensor:
    """`P ‖ L` `[D, F + C]` for `weight` `P` `[D, F]` or narrower, and `labels` `Lᵀ` `[C, D]`."""
    padding = weight.new_zeros(weight.size(0), features - weight.size(1))
    return torch.cat([weight, padding, labels.T.to(weight.dtype)], 1)

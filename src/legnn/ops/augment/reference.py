"""Labels as columns in plain PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from legnn.ops.norm_act_dropout.reference import drop
from legnn.ops.runtime.padding import pad_columns, padded_width

if TYPE_CHECKING:
    from legnn.ops.csr.label_edges import LabelEdges


def augment(x: Tensor, edges: LabelEdges, dropout: float, seed: Tensor) -> Tensor:
    """`dropout(X) ‖ Y` `[n, F + C]`, with padding columns; a node that shows no label has zeros."""
    one_hot = pad_columns(one_hot_labels(edges, x.dtype), padded_width(edges.num_classes, x))
    return torch.cat([drop(x, dropout, seed), one_hot], 1)


def one_hot_labels(edges: LabelEdges, dtype: torch.dtype) -> Tensor:
    """`Y` `[n, C]` as a matrix."""
    out = torch.zeros(edges.num_nodes, edges.num_classes, dtype=dtype, device=edges.shown.device)
    out[edges.shown, edges.y] = 1
    return out

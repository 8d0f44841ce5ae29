"""Labels as columns in plain PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.ops.norm_act_dropout.reference import drop
from legnn.ops.runtime.padding import pad_columns, padded_width

if TYPE_CHECKING:
    from legnn.ops.csr.label_edges import LabelEdges


def augment(x: Tensor, edges: LabelEdges, dropout: float, seed: Tensor) -> Tensor:
    """`dropout(X) ‖ Y` `[n, F + C]`, with padding columns; a node that shows no label has zeros."""
    one_hot = F.one_hot(edges.label_of.long() + 1, edges.num_classes + 1)[:, 1:].to(x.dtype)
    return torch.cat([drop(x, dropout, seed), pad_columns(one_hot, padded_width(edges.num_classes, x))], 1)

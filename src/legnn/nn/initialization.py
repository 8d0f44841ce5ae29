"""The initial weights of the published code."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from legnn.nn.block import Block
from legnn.nn.encoder import Encoder

GAIN = math.sqrt(2)

MAPS = ("node.weight", "label.weight", "target_map.weight", "label_target_map.weight")
ROOTS = ("root.weight", "label_root.weight")
VECTORS = ("source", "target", "label_source", "label_target")


@torch.no_grad()
def initialize_as_published(encoder: Encoder, blocks: Sequence[Block], num_types: int = 1) -> None:
    """Draws the weights anew, with the distributions of the published code.

    | | distribution |
    |---|---|
    | `W_φ`, `B_φ` | Xavier normal, gain √2 |
    | residuals, and the roots of GraphSAGE | Xavier uniform, gain √2 |
    | attention vectors `[H, D]` | Xavier normal, gain √2, with fan-in `H D` and fan-out `D` |
    | `P_N`, `P_L` | uniform within `±1/√fan-in`: of a row of features, or `C` for one-hot labels |

    The classifier has PyTorch's own weights in any case; those of a lifted convolution are PyG's.
    """
    _uniform(encoder.project.weight, encoder.project.in_features // num_types)
    if encoder.labels in ("concat", "addition"):
        _uniform(encoder.label_rows, encoder.label_rows.size(0))
    elif encoder.labels == "enhanced":
        embedding = encoder.label_embedding
        if embedding.kind == "one-hot":
            _uniform(embedding.rows, embedding.rows.size(0))
        else:
            embedding.project.reset_parameters()
    for block in blocks:
        for residual in (block.residual, block.label_residual):
            if isinstance(residual, nn.Linear):
                nn.init.xavier_uniform_(residual.weight, GAIN)
        for name, parameter in block.layer.named_parameters():
            if name in MAPS:
                nn.init.xavier_normal_(parameter, GAIN)
            elif name in ROOTS:
                nn.init.xavier_uniform_(parameter, GAIN)
            elif name in VECTORS:
                nn.init.xavier_normal_(parameter[None], GAIN)


def _uniform(weight: Tensor, fan_in: int) -> None:
    nn.init.uniform_(weight, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

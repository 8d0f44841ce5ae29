"""Rows of matrices in plain PyTorch: scaled, cut, normalized."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.ops.runtime.padding import pad_columns
from legnn.ops.types import AttentionConfig

Norm = nn.BatchNorm1d | nn.LayerNorm


def scale_rows(x: Tensor, scale: Tensor | None) -> Tensor:
    """`scale ∘ x` for `x` `[n, ...]` and `scale` `[n]`, or `x` if it is None."""
    return x if scale is None else x * scale.to(x.dtype).view(-1, *[1] * (x.dim() - 1))


def split_scores(values_and_scores: Tensor, config: AttentionConfig) -> tuple[Tensor, Tensor | None]:
    """The scores of the nodes as sources and, with `config.use_target_score`, as targets, `[N, heads]` each."""
    first, second = config.channels, config.channels + config.heads
    target = values_and_scores[:, second : second + config.heads] if config.use_target_score else None
    return values_and_scores[:, first:second], target


def apply_norm(norm: Norm, x: Tensor, real: Tensor | None = None) -> Tensor:
    """`norm(x)` in the precision of `x`. Columns beyond those of the norm are padding and stay zero.

    A batch norm in training is over the rows that are `real` `[n]` bool, and the others are zero.
    """
    columns = x[:, : norm.weight.size(0)]
    if real is not None and isinstance(norm, nn.BatchNorm1d) and norm.training:
        columns = torch.zeros_like(columns).index_copy(0, real.nonzero().flatten(), norm(columns[real]))
    elif isinstance(norm, nn.LayerNorm):
        weight, bias = norm.weight.to(x.dtype), norm.bias.to(x.dtype)
        columns = F.layer_norm(columns, norm.normalized_shape, weight, bias, norm.eps)
    else:
        columns = norm(columns)
    return pad_columns(columns, x.size(1))

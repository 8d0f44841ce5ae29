"""Rows of matrices in plain PyTorch: scaled, cut, normalized."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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


def apply_norm(norm: Norm, x: Tensor, valid_mask: Tensor | None = None) -> Tensor:
    """`norm(x)` in the precision of `x`.

    A batch norm in training is over the rows in `valid_mask` `[n]` bool, and the others are zero.
    """
    if isinstance(norm, nn.LayerNorm):
        return F.layer_norm(x, norm.normalized_shape, norm.weight.to(x.dtype), norm.bias.to(x.dtype), norm.eps)
    if valid_mask is not None and norm.training:
        return torch.zeros_like(x).index_copy(0, valid_mask.nonzero().flatten(), norm(x[valid_mask]))
    return norm(x)

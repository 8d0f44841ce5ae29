"""Normalization, activation and dropout in plain PyTorch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.ops.runtime.hashing import WORD, random_words
from legnn.ops.runtime.padding import pad_columns

Norm = nn.BatchNorm1d | nn.LayerNorm


def apply_norm_act_dropout(
    x: Tensor, norm: Norm | None, dropout: float, seed: Tensor | None, real: Tensor | None = None
) -> Tensor:
    """`dropout(relu(norm(x)))` `[n, D]`, without dropout if `seed` is None; `real` as in `apply_norm`."""
    x = F.relu(x if norm is None else apply_norm(norm, x, real))
    return x if seed is None else drop(x, dropout, seed)


def apply_norm(norm: Norm, x: Tensor, real: Tensor | None = None) -> Tensor:
    """`norm(x)` in the precision of `x`. Columns beyond those of the norm are padding and stay zero.

    A batch norm in training is over the rows that are `real` `[n]` bool, and the others are zero.
    """
    columns = x[:, : norm.weight.size(0)]
    if real is not None and isinstance(norm, nn.BatchNorm1d) and norm.training:
        columns = torch.zeros_like(columns).index_copy(0, real.nonzero().flatten(), norm(columns[real]))
        return pad_columns(columns, x.size(1))
    if isinstance(norm, nn.LayerNorm):
        weight, bias = norm.weight.to(x.dtype), norm.bias.to(x.dtype)
        columns = F.layer_norm(columns, norm.normalized_shape, weight, bias, norm.eps)
    else:
        columns = norm(columns)
    return pad_columns(columns, x.size(1))


def running_statistics(norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor, float]:
    """The running mean and variance `[D]` of a batch norm, and its momentum."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.momentum is not None
    return norm.running_mean, norm.running_var, norm.momentum


def drop(x: Tensor, dropout: float, seed: Tensor) -> Tensor:
    """`x` `[n, D]` with the entries outside `keep_mask` set to zero and the others divided by `1 - dropout`."""
    return torch.where(keep_mask(x.size(0), x.size(1), dropout, seed), x / (1 - dropout), 0)


def keep_mask(rows: int, columns: int, dropout: float, seed: Tensor) -> Tensor:
    """`[rows, columns]` bool: the entries that dropout keeps.

    A hash of the row, the column and `seed` (two 32-bit words) decides, so that every form of the operation drops the
    same entries, in any order and on any number of threads.
    """
    low, high = seed.tolist()
    row, column = torch.arange(rows, device=seed.device), torch.arange(columns, device=seed.device)
    return random_words(row[:, None], column, (low, high)) >= drop_threshold(dropout)


def drop_threshold(dropout: float) -> int:
    """The number below which a random 32-bit word is with probability `dropout`."""
    return min(round(dropout * 2**32), WORD)

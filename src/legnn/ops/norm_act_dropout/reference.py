"""Normalization, activation and dropout in plain PyTorch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.ops.rows import Norm, apply_norm
from legnn.ops.runtime.hashing import WORD, random_words


def apply_norm_act_dropout(
    x: Tensor, norm: Norm | None, dropout: float, seed: Tensor | None, valid_mask: Tensor | None = None
) -> Tensor:
    """`dropout(relu(norm(x)))` `[n, D]`; `valid_mask` as in `apply_norm`."""
    return act_dropout(x if norm is None else apply_norm(norm, x, valid_mask), dropout, seed)


def act_dropout(x: Tensor, dropout: float, seed: Tensor | None) -> Tensor:
    """`dropout(relu(x))` `[n, D]`, without dropout if `seed` is None."""
    x = F.relu(x)
    return x if seed is None else drop(x, dropout, seed)


def batch_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float, valid_mask: Tensor | None) -> Tensor:
    """The columns of `x` `[n, D]` less their mean, over their standard deviation, times `weight`, plus `bias`.

    Both are over the rows in `valid_mask` `[n]` bool, and the others are zero. No running statistics are updated.
    """
    rows = (x if valid_mask is None else x[valid_mask]).to(weight.dtype)
    out = F.batch_norm(rows, None, None, weight, bias, training=True, eps=eps).to(x.dtype)
    return out if valid_mask is None else torch.zeros_like(x).index_copy(0, valid_mask.nonzero().flatten(), out)


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

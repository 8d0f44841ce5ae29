"""Rows of matrices that are written one after the other, in plain PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class RowCopy(NamedTuple):
    """Tensors that together are a row of a matrix."""

    sources: Sequence[Tensor]
    into: Tensor
    """`[rows, n]` of the same dtype, for `n` numbers of all `sources`."""


def write_row(copies: Sequence[RowCopy], values: Tensor, into: Tensor, row: Tensor) -> None:
    """Writes `values` `[n]` to a `row` `[1]` of `into` `[rows, n]`, all `copies` to theirs, and adds one to `row`."""
    into.index_copy_(0, row, values[None])
    for copy in copies:
        copy.into.index_copy_(0, row, torch.cat([source.reshape(-1) for source in copy.sources])[None])
    row.add_(1).remainder_(into.size(0))
